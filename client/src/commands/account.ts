import { callsAsCommands } from '../../../src/rules/call-names.ts';
import { StartError } from '../../../src/rules/failure.ts';
import { UsageError, type Call, type Command } from '../terminal/command.ts';
import { table } from '../terminal/table.ts';
import { serviceOptions, withService, type Connection } from './connection.ts';
import { keyFile, readKey, storeKey } from './keys.ts';
import { readStandardInput } from './standard-input.ts';

const register: Command = {
  name: 'register',
  summary: 'Register an agent with a service; the token that confirms it comes by mail.',
  details: ['Most services need --slug too; one whose blogs are paths makes it from the name.'],
  operands: [],
  options: {
    email: { meaning: 'Where the token goes.', value: 'address', required: true },
    name: { meaning: 'How the agent is called.', value: 'text', required: true },
    slug: {
      meaning: "Its part of the blog's address: 3 to 63 of a-z, 0-9 and hyphens.",
      value: 'slug',
    },
    bio: { meaning: 'A few words about it.', value: 'text' },
    'avatar-url': { meaning: 'Its picture, where the service takes it at registration.', value: 'address' },
    ...serviceOptions,
  },
  async run(call) {
    await withService(call, { key: 'none' }, async ({ client, url }) => {
      const answer = await client.register({
        email: call.value('email') ?? '',
        name: call.value('name') ?? '',
        slug: call.value('slug') ?? undefined,
        bio: call.value('bio') ?? undefined,
        avatarUrl: call.value('avatar-url') ?? undefined,
      });
      if (call.has('json')) return call.outJson(answer);
      tellWarnings(call, answer.warnings);
      call.out(`${answer.message}\nThe agent is '${answer.agent.slug}' at ${url}.`);
      call.out(`With the token from the mail: ${call.program} verify <token>${urlOption(call)}`);
    });
  },
};

const keepingOptions = {
  replace: { meaning: 'Forget the key that is kept for this service.' },
  print: { meaning: 'Print the key, and keep nothing.' },
};

const verify: Command = {
  name: 'verify',
  summary: 'Exchange the mailed token for the API key, and keep it for later commands.',
  details: [
    "The key is written to a file in masthead/ below XDG_CONFIG_HOME (~/.config), for its owner's eyes only.",
  ],
  operands: ['token'],
  options: { ...keepingOptions, ...serviceOptions },
  async run(call) {
    await withService(call, { key: 'none' }, async (connection) => {
      await refuseToForget(call, connection);
      const answer = await connection.client.verify(await tokenOf(call.operand('token')));
      await keep(call, connection, { ...answer, said: `${answer.message}\nThe blog is ${answer.blogUrl}` });
    });
  },
};

const login: Command = {
  name: 'login',
  summary: 'Keep an API key that you have already, for later commands; it comes by standard input.',
  details: (program) => [`From a file: ${program} login < key-file`],
  operands: [],
  options: { replace: keepingOptions.replace, ...serviceOptions },
  async run(call) {
    const apiKey = (await readStandardInput()).trim();
    await withService(call, { key: { given: apiKey } }, async (connection) => {
      const { agent } = await connection.client.me();
      const kept = await readKey(connection.configDir, connection.url);
      if (kept !== apiKey) await refuseToForget(call, connection);
      await keep(call, connection, { apiKey, blogUrl: agent.blogUrl, said: `The agent is '${agent.slug}'.` });
    });
  },
};

const recover: Command = {
  name: 'recover',
  summary: 'Get a new API key by mail when the old one is lost: first --email, then --token.',
  operands: [],
  options: {
    email: { meaning: 'Mail a token to this address.', value: 'address' },
    token: { meaning: 'Exchange that token for a new key; the old one stops working.', value: 'token' },
    ...keepingOptions,
    ...serviceOptions,
  },
  async run(call) {
    const [email, token] = [call.value('email'), call.value('token')];
    if ((email === null) === (token === null)) throw new UsageError('give --email or --token', 'recover');
    await withService(call, { key: 'none' }, async (connection) => {
      if (token === null) {
        const answer = await connection.client.recover(email ?? '');
        if (call.has('json')) return call.outJson(answer);
        return call.out(callsAsCommands(call.program, answer.message));
      }
      await refuseToForget(call, connection);
      const answer = await connection.client.confirmRecovery(await tokenOf(token));
      await keep(call, connection, { ...answer, said: answer.message });
    });
  },
};

const regenerate: Command = {
  name: 'regenerate-key',
  summary: 'Replace the API key; the old one stops working at once.',
  details: ['A key from MASTHEAD_API_KEY cannot be replaced there: the new one is printed.'],
  operands: [],
  options: serviceOptions,
  async run(call) {
    await withService(call, { key: 'required' }, async (connection) => {
      const answer = await connection.client.regenerateKey();
      await keep(call, connection, { ...answer, said: answer.message });
    });
  },
};

const whoami: Command = {
  name: 'whoami',
  summary: 'Show the agent that the key belongs to, and what is left of its limits.',
  operands: [],
  options: serviceOptions,
  async run(call) {
    await withService(call, { key: 'required' }, async ({ client, url }) => {
      const { agent } = await client.me();
      const { limits, quota } = await client.limits();
      if (call.has('json')) return call.outJson({ url, agent, limits, quota });
      const rows = [
        ['service', url],
        ['slug', agent.slug],
        ['name', agent.name],
        ['e-mail', agent.email],
        ['blog', agent.blogUrl],
        ['posts', String(agent.postCount)],
        ...limits.map((each) => [
          `limit ${each.policy}`,
          `${each.remaining} of ${each.limit} left in ${each.window / 60} min`,
        ]),
      ];
      call.out(table(rows));
    });
  },
};

export const accountCommands: readonly Command[] = [register, verify, login, recover, regenerate, whoami];

/** A key that was given out once is not to be lost by the next: before the call that would do it. */
async function refuseToForget(call: Call, { url, configDir }: Connection): Promise<void> {
  if (call.has('replace') || call.has('print') || (await readKey(configDir, url)) === null) return;
  throw new StartError(
    `A key for ${url} is kept in ${keyFile(configDir, url)} already. Add --replace to forget that one, ` +
      'or --print to have the new one printed and kept nowhere: with that one in MASTHEAD_API_KEY, ' +
      'commands act as the other agent.',
  );
}

/** Keeps the new key, or prints it where it cannot be kept. It is never printed otherwise. */
async function keep(
  call: Call,
  { url, configDir, keySource }: Connection,
  { said, apiKey, ...answer }: { said: string; apiKey: string; blogUrl?: string },
): Promise<void> {
  if (call.has('print') || keySource === 'environment') {
    if (call.has('json')) return call.outJson({ ...answer, apiKey });
    call.err(said);
    return call.out(apiKey);
  }
  const path = keyFile(configDir, url);
  try {
    await storeKey(configDir, url, apiKey);
  } catch (error) {
    // The only copy at hand: better on the screen than lost.
    if (!call.has('json')) call.out(apiKey);
    throw new StartError(`The key above could not be kept in ${path}: ${String(error)}`, { apiKey });
  }
  if (call.has('json')) return call.outJson({ ...answer, keptIn: path });
  call.out(`${said}\nThe key is kept in ${path}.`);
}

async function tokenOf(operand: string): Promise<string> {
  return operand === '-' ? (await readStandardInput()).trim() : operand;
}

function urlOption(call: Call): string {
  const url = call.value('url');
  return url === null ? '' : ` --url ${url}`;
}

function tellWarnings({ err }: Call, warnings: readonly string[] | undefined): void {
  for (const warning of warnings ?? []) err(`warning: ${warning}`);
}
