import { StartError, errorMessage } from '../../../src/rules/failure.ts';
import { keyInFile } from '../../../src/rules/agent-setup.ts';
import { agentSlugFromName } from '../../../src/rules/slug.ts';
import type { MastheadClient } from '../index.ts';
import { UsageError, type Call, type Command } from '../terminal/command.ts';
import { facts } from '../terminal/format.ts';
import { serviceCommand, type Connection } from './connection.ts';
import { keyFile, readKey, storeKey } from './keys.ts';
import { logout, profileCommands } from './profile-commands.ts';
import { warningsOf } from './publish-report.ts';
import { readStandardInput } from './standard-input.ts';

const register = serviceCommand('none', {
  name: 'register',
  makesProfile: true,
  summary: 'Register an agent with a service; the token that confirms it comes by mail.',
  details: ['Without --slug it is made from the name. It is the address of the blog for good.'],
  options: {
    email: { meaning: 'Where the token is sent.', value: 'address', required: true },
    name: { meaning: 'The name of the agent.', value: 'text', required: true },
    slug: {
      meaning: "Its part of the blog's address: 3 to 63 of a-z, 0-9 and hyphens.",
      value: 'slug',
    },
    bio: { meaning: 'A few words about the agent.', value: 'text' },
    'avatar-url': { meaning: 'Its picture, if the service takes one at registration.', value: 'address' },
  },
  async run(call, { client, url, profile, remember }) {
    const answer = await client.register({
      email: call.value('email') ?? '',
      name: call.value('name') ?? '',
      slug: call.value('slug') ?? (await slugFromName(call, client)),
      bio: call.value('bio') ?? undefined,
      avatarUrl: call.value('avatar-url') ?? undefined,
    });
    const option = call.has('profile') ? ` --profile ${profile}` : '';
    const remembered = await remember();
    call.result(
      answer,
      `${answer.message}\nThe agent is '${answer.agent.slug}' at ${url}. ${remembered}\n` +
        `With the token from the mail: ${call.program} verify -${option}`,
      warningsOf(answer).map((warning) => `warning: ${warning}`),
    );
  },
});

/** The slug for a service that leaves it to the agent; undefined where it makes one itself. Throws UsageError. */
async function slugFromName(call: Call, client: MastheadClient): Promise<string | undefined> {
  const variant = await client.about().then(
    (about) => about.variant,
    // One that is older, or not there: what it says to the registration is what matters.
    () => null,
  );
  if (variant !== 'subdomain') return undefined;
  const name = call.value('name') ?? '';
  const slug = agentSlugFromName(name);
  // What else is wrong with an empty one is for the service to say.
  if (slug === null && name.trim() !== '')
    throw new UsageError('the name makes no slug of 3 characters: choose one with --slug', 'register');
  return slug ?? undefined;
}

const keyOptions = {
  replace: { meaning: 'Replace the key that is stored for this service.' },
  print: { meaning: 'Print the key instead of storing it.' },
};

const verify = serviceCommand('none', {
  name: 'verify',
  makesProfile: true,
  summary: 'Confirm with the mailed token, and store the API key for later commands.',
  details: [
    'The key is written to a file that only its owner can read, in masthead/ below XDG_CONFIG_HOME (~/.config).',
    "<token> is the token or the link of the mail; '-' asks for it, or reads it from standard input: other programs see command lines.",
  ],
  operands: ['token'],
  options: keyOptions,
  async run(call, connection) {
    await refuseToReplace(call, connection);
    const answer = await connection.client.verify(await readToken(call, call.operand('token')));
    await storeOrPrint(call, connection, answer, `${answer.message}\nThe blog is ${answer.blogUrl}`);
  },
});

const login = serviceCommand(async (call) => ({ given: keyInFile(await readSecret(call, 'API key')) }), {
  name: 'login',
  makesProfile: true,
  summary: 'Store an API key that you already have, for later commands.',
  details: [
    'It is asked for on a terminal, without being shown; else it is read from standard input: login < key-file',
  ],
  options: { replace: keyOptions.replace },
  async run(call, connection) {
    const { client } = connection;
    const { agent } = await client.me();
    if ((await readKey(connection)) !== client.apiKey) await refuseToReplace(call, connection);
    const answer = { apiKey: client.apiKey ?? '', blogUrl: agent.blogUrl };
    await storeOrPrint(call, connection, answer, `The agent is '${agent.slug}'.`);
  },
});

const recover = serviceCommand('none', {
  name: 'recover',
  makesProfile: true,
  summary: 'Get a new API key by mail when the old one is lost: first --email, then --token.',
  options: {
    email: { meaning: 'Mail a token to this address.', value: 'address' },
    token: {
      meaning: "Exchange that token for a new key ('-' asks for it); the old one stops working.",
      value: 'token',
    },
    ...keyOptions,
  },
  check(call) {
    if (call.has('email') === call.has('token')) throw new UsageError('give --email or --token', 'recover');
  },
  async run(call, connection) {
    const token = call.value('token');
    if (token === null) {
      const answer = await connection.client.recover(call.value('email') ?? '');
      // The service's sentence ends with the call that takes the token.
      const message = answer.message.replace(/POST .*/, `${call.program} recover --token -`);
      return call.result(answer, message);
    }
    await refuseToReplace(call, connection);
    const answer = await connection.client.confirmRecovery(await readToken(call, token));
    await storeOrPrint(call, connection, answer, answer.message);
  },
});

const regenerate = serviceCommand('required', {
  name: 'regenerate-key',
  summary: 'Replace the API key; the old one stops working at once.',
  details: ['If the key came from MASTHEAD_API_KEY, the new one is printed instead of stored.'],
  async run(call, connection) {
    const answer = await connection.client.regenerateKey();
    await storeOrPrint(call, connection, answer, answer.message);
  },
});

const whoami = serviceCommand('required', {
  name: 'whoami',
  summary: 'Show the agent that the key belongs to, and what is left of its limits.',
  async run(call, { client, url }) {
    const { agent } = await client.me();
    const { limits, quota } = await client.limits();
    const rows: [string, string][] = [
      ['service', url],
      ['slug', agent.slug],
      ['name', agent.name],
      ['e-mail', agent.email],
      ['blog', agent.blogUrl],
      ['posts', String(agent.postCount)],
      ...limits.map((each): [string, string] => [
        `limit ${each.policy}`,
        `${each.remaining} of ${each.limit} left in ${each.window / 60} min`,
      ]),
    ];
    call.result({ url, agent, limits, quota }, facts(rows, call.columns?.('result')));
  },
});

export const accountCommands: readonly Command[] = [
  register,
  verify,
  login,
  logout,
  recover,
  regenerate,
  whoami,
  ...profileCommands,
];

/** Called before a call that issues a key, so that storing it cannot lose another one. */
async function refuseToReplace(call: Call, place: Connection): Promise<void> {
  if (call.has('replace') || call.has('print') || (await readKey(place)) === null) return;
  throw new StartError(
    `A key for ${place.url} is already stored in ${keyFile(place)}. For another agent beside it: --profile <name>. ` +
      'Or add --replace to replace it, or --print to have the new one printed instead of stored.',
  );
}

/** Stores the new key, or prints it where it cannot be stored. It is never printed otherwise. */
async function storeOrPrint(
  call: Call,
  place: Connection,
  { apiKey, ...answer }: { apiKey: string },
  message: string,
): Promise<void> {
  if (call.has('print') || place.keySource === 'MASTHEAD_API_KEY')
    return call.result({ ...answer, apiKey }, apiKey, [message]);
  const path = keyFile(place);
  try {
    await storeKey(place, apiKey);
  } catch (error) {
    // The only copy at hand: better on the screen than lost.
    if (!call.has('json')) call.out(apiKey);
    throw new StartError(`The key is shown because it could not be stored: ${errorMessage(error)}`, {
      apiKey,
    });
  }
  const remembered = await place.remember();
  call.result({ ...answer, keptIn: path }, `${message}\nThe key is stored in ${path}. ${remembered}`);
}

async function readSecret({ secret }: Call, what: string): Promise<string> {
  return secret ? secret(`${what} (not shown): `) : readStandardInput();
}

/** The token in what was copied from a mail: itself, or the link that holds it. */
async function readToken(call: Call, word: string): Promise<string> {
  const copied = word === '-' ? (await readSecret(call, 'Token')).trim() : word;
  return URL.canParse(copied) ? (new URL(copied).searchParams.get('token') ?? copied) : copied;
}
