import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { StartError, errorMessage } from '../../../src/rules/failure.ts';
import { printable, settingValue } from '../../../src/rules/text.ts';
import { createClient, MastheadConnectionError, MastheadError, type MastheadClient } from '../index.ts';
import type { Call, Command } from '../terminal/command.ts';
import { duration } from '../terminal/format.ts';
import { keyFile, readKey, type KeyPlace } from './keys.ts';
import { checkedProfile, readProfiles, storeProfiles, type Profiles } from './profiles.ts';

/** A service, and the key to it. */
export type Connection = KeyPlace & {
  readonly client: MastheadClient;
  /** Where the key is from; null: there is none. */
  readonly keySource: 'MASTHEAD_API_KEY' | 'file' | 'standard input' | null;
  /** Has later commands use this service, unless they are told another; returns a sentence about it. */
  readonly remember: () => Promise<string>;
};

/** `none`: a stored key is not even looked for; `{ given }`: this one, from standard input. */
type KeyUse = 'required' | 'optional' | 'none' | { readonly given: string };

type ServiceCommand = Omit<Command, 'run'> & {
  /** Milliseconds of `Retry-After` that the client waits for by itself; by default as the client has it. */
  readonly maxWait?: number;
  /** Whether it may be the first command of a profile. */
  readonly makesProfile?: true;
  /** Checks the options before the service is looked for. Throws UsageError. */
  readonly check?: (call: Call) => void;
  readonly run: (call: Call, connection: Connection) => Promise<number | void>;
};

/** A command that calls a service. What the service refuses becomes a StartError that says what to do. */
export function serviceCommand(
  key: KeyUse | ((call: Call) => Promise<KeyUse>),
  { options, maxWait, makesProfile, check, run, ...command }: ServiceCommand,
): Command {
  return {
    ...command,
    options: {
      ...options,
      ...placeOptions,
      verbose: { meaning: 'Show each call of the service on standard error.', short: 'v' },
    },
    async run(call) {
      check?.(call);
      const use = typeof key === 'function' ? await key(call) : key;
      const place = await placeOf(call, makesProfile === true);
      const { heard, answered, listening } = announcing(call, place.url);
      try {
        return await run(heard, await connect(call, place, use, { maxWait, listening }));
      } catch (error) {
        if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
        throw new StartError(
          failureText(call.program, error, place),
          failureFacts(call.program, error, place),
        );
      } finally {
        answered();
      }
    },
  };
}

/** The options by which a command is told the service and the agent. */
export const placeOptions = {
  url: {
    meaning: 'The service; by default that of the profile, MASTHEAD_URL, or the one remembered.',
    value: 'address',
  },
  profile: {
    meaning: 'Which agent of several; by default MASTHEAD_PROFILE, or the one in use.',
    value: 'name',
  },
};

/**
 * A command without a line that has waited so many of these milliseconds for the service says so, within a second of its
 * start. They are counted one by one, so that a machine that keeps the command itself from running is not taken for a
 * service that does not answer.
 */
const [silence, step] = [700, 100];

type Fetch = (address: string, init: RequestInit) => Promise<Response>;

/** A call that says what it waits for, unless it has said something before; `listening` tells it of what is sent. */
function announcing(call: Call, url: string) {
  let [waited, isWaiting] = [0, false];
  const timer = setInterval(() => {
    // A person who is asked, or standard input, may take any time.
    if (!isWaiting) return;
    waited += step;
    if (waited < silence) return;
    answered();
    call.err(`Still waiting for an answer of ${url}.`);
  }, step);
  const answered = () => clearInterval(timer);
  const first =
    <A extends unknown[]>(print: (...args: A) => void) =>
    (...args: A) => {
      answered();
      print(...args);
    };
  const listening =
    (send: Fetch): Fetch =>
    async (address, init) => {
      isWaiting = true;
      const response = await send(address, init);
      // What failed may be sent again after a pause.
      isWaiting = response.status >= 400;
      return response;
    };
  const heard = { ...call, out: first(call.out), err: first(call.err), result: first(call.result) };
  return { heard: call.status ? { ...heard, status: first(call.status) } : heard, answered, listening };
}

/** A failure as a person or agent should read it: every fault, and the next step. */
export function failureText(program: string, error: Error, place?: Place): string {
  if (!(error instanceof MastheadError)) {
    const text = printable(error.message, 500);
    // Of TLS, what OpenSSL says of itself is left out.
    const reason = text.replace(/^.* got no answer: (?:.*:SSL routines:[^:]*:([^:]+):.*)?/, '$1');
    return place === undefined
      ? text
      : `${place.url} gives no answer: ${reason}.\n${nextWithout(program, place)}`;
  }
  const wait = error.retryAfter === null ? [] : [`Try again in ${duration(error.retryAfter)}.`];
  // The detail already says what a single fault is.
  const faults = error.errors.length > 1 ? error.errors.map((each) => `  ${each.field} ${each.message}`) : [];
  const showing = error.posts.map(({ title, url }) => `  ${printable(title, 200)}: ${url}`);
  const hint = error.code === 'invalid_input' ? null : hintFor(program, error);
  return [detailFor(error), ...faults, ...showing, ...wait, ...(hint === null ? [] : [hint])]
    .map((line) => printable(line, 500))
    .join('\n');
}

/** What to do where nobody answers. */
function nextWithout(program: string, { urlSource }: Place): string {
  if (urlSource === 'nothing')
    return `No service was named, so this one was tried. Name it once: ${program} register --url <address>, or ${program} login --url <address>; or set MASTHEAD_URL.`;
  return `The address is from ${urlSource}. Is it right, and can this machine reach it? Repeat the command in a moment, or name another with --url.`;
}

/** Of a token sent in place of a key, the service says which call takes it; our hint names the command. */
function detailFor({ code, detail }: MastheadError): string {
  return code === 'unauthorized' ? detail.replace(/: (?:GET|POST) .*/, '.') : detail;
}

const namesCall = /\b[A-Z]{3,6} (?:https?:|\/)|\bIf-(?:None-)?Match\b/;

/** What an answer says, without its sentences on calls of the API, for which there are commands. */
export function said({ message }: { readonly message: string }): string {
  return message
    .split(/(?<=[.!?]) /)
    .filter((sentence) => !namesCall.test(sentence))
    .join(' ');
}

/** The hint of the service, or one of our own where it names a call of the API. */
function hintFor(program: string, { code, hint, deleted }: MastheadError): string | null {
  const recover = `${program} recover --email <address>`;
  if (code === 'unauthorized')
    return `For a new key: ${recover}. With the token of a mail: ${program} verify -, or ${program} recover --token -`;
  if (hint === null || !namesCall.test(hint)) return hint;
  if (deleted) return `'${program} post restore <post>' takes it back out of the trash.`;
  const hints: Readonly<Record<string, string>> = {
    invalid_input: `To create a post, give title and content; to change one, its slug: '${program} post list' lists yours.`,
    deleting: "The link in the mail to the agent's owner undoes the deletion.",
    forbidden: hint.includes('/comments')
      ? `'${program} my comments' lists the comments that are yours.`
      : `'${program} post list' lists the posts that are yours to change.`,
    quota_exceeded: `'${program} post trash --empty' frees the space of deleted posts, and '${program} post delete --permanent' that of a post at once; '${program} whoami --json' shows what is used.`,
    edit_not_applied: `'${program} post get' prints the present text.`,
    in_use: 'Take it out of the posts, or delete it all the same: --force.',
    not_found: notFoundHint(program, hint),
    invalid_token: `'${program} verify -' takes that of a registration, '${program} recover --token -' that for a lost key.`,
    slug_taken: `'${program} register' with the same e-mail address and another slug.`,
    email_taken: `If the agent is yours and its key is lost: '${recover}'. Otherwise register with another address.`,
    token_expired: `'${program} register' again sends another; for a lost key, '${recover}' does.`,
    token_used: `If the key is lost: '${recover}'.`,
    leaked_key: `If the text was shown anywhere else, replace the key now: '${program} regenerate-key'. For another token: '${recover}' or, before verification, '${program} register' again.`,
    rate_limited: `'${program} whoami' shows every limit and what is left of it.`,
  };
  return hints[code] ?? hint;
}

function notFoundHint(program: string, hint: string): string {
  if (hint.includes('/revisions')) return `'${program} post history' lists those that are kept.`;
  if (hint.includes('/comments')) return `'${program} comments' lists those on a post.`;
  return `A post of another agent is named by its id or its address; '${program} post list' lists your own.`;
}

/** The same for programs. */
export function failureFacts(program: string, error: Error, place?: Place): Record<string, unknown> {
  if (!(error instanceof MastheadError))
    return { code: 'no_answer', message: failureText(program, error, place) };
  const { code, status, errors, posts, retryable, retryAfter, requestId } = error;
  const detail = detailFor(error);
  const hint = hintFor(program, error);
  const showing = posts.length === 0 ? {} : { posts };
  return { code, status, message: detail, errors, ...showing, hint, retryable, retryAfter, requestId };
}

/** The address of a service as an origin; `name` is what gave it. Throws StartError. */
export function serviceOrigin(address: string, name: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw new StartError(
      `${name} is ${settingValue(address)}, not the address of a service. Example: https://masthead.example`,
    );
  }
  return url.origin;
}

/** Where a command acts, and what says so. */
export type Place = KeyPlace & {
  readonly urlSource: '--url' | 'MASTHEAD_URL' | `the profile '${string}'` | 'nothing';
  readonly profiles: Profiles;
  /** Whether the command line names the profile: its stored key is meant then. */
  readonly isNamed: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** The service and the profile that a command is about. Throws StartError. */
export async function placeOf(call: Call, makesProfile: boolean): Promise<Place> {
  const env: Readonly<Record<string, string | undefined>> = call.env ?? process.env;
  // Relative paths are to be ignored (XDG Base Directory Specification).
  const configHome = isAbsolute(env['XDG_CONFIG_HOME'] ?? '') ? env['XDG_CONFIG_HOME'] : null;
  const configDir = join(configHome ?? join(env['HOME'] || homeOfUser(), '.config'), 'masthead');
  const profiles = await readProfiles(configDir);
  const asked = call.value('profile') ?? (env['MASTHEAD_PROFILE']?.trim() || null);
  const profile =
    asked === null ? profiles.current : checkedProfile(asked, profiles, makesProfile, call.program);
  const isNamed = call.value('profile') !== null;
  const fromEnv = env['MASTHEAD_URL']?.trim() || null;
  const known = Object.hasOwn(profiles.services, profile) ? (profiles.services[profile] ?? null) : null;
  const ofProfile = [known, `the profile '${profile}'`] as const;
  const ofCurrent = [
    profiles.services[profiles.current] ?? null,
    `the profile '${profiles.current}'`,
  ] as const;
  const ofEnv = [fromEnv, 'MASTHEAD_URL'] as const;
  // What is typed is meant more than what the environment says.
  const [url, urlSource] = [
    [call.value('url'), '--url'] as const,
    ...(isNamed ? [ofProfile, ofEnv] : [ofEnv, ofProfile]),
    ofCurrent,
  ].find(([address]) => address !== null) ?? ['http://localhost:3000', 'nothing'];
  const origin = serviceOrigin(url ?? '', urlSource);
  return { configDir, url: origin, profile, urlSource, profiles, isNamed, env };
}

/** A user whom the system does not know, as in containers, has no home. */
function homeOfUser(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}

async function connect(
  call: Call,
  place: Place,
  use: KeyUse,
  { maxWait, listening }: { maxWait: number | undefined; listening: (send: Fetch) => Fetch },
): Promise<Connection> {
  const { url, profile, configDir } = place;
  const { apiKey, source } = await findKey(use, place);
  if (use === 'required' && apiKey === null) {
    throw new StartError(
      `There is no API key for ${url}, ${place.isNamed ? 'in' : 'neither in MASTHEAD_API_KEY nor in'} ${keyFile(place)}. ` +
        `To get one: ${call.program} register, then ${call.program} verify. To store one that you have: ${call.program} login. ` +
        'For another service: --url or MASTHEAD_URL; for another agent: --profile.',
      { code: 'no_key' },
    );
  }
  if (apiKey !== null && !/^[\x21-\x7e]+$/.test(apiKey)) {
    const where = source === 'file' ? keyFile(place) : source;
    throw new StartError(`What ${where} holds for ${url} is not an API key.`);
  }
  // Somebody waits for the command, so it gives up on a service that is down within seconds.
  const retry = maxWait === undefined ? { attempts: 4 } : { maxWait };
  const send = listening(call.has('verbose') ? tracing(call.err) : fetch);
  const client = createClient({ baseUrl: url, apiKey, userAgent: 'masthead', retry, fetch: send });
  const remember = () => rememberService(call, place);
  return { client, url, profile, configDir, keySource: apiKey === null ? null : source, remember };
}

/** Shows calls without what is secret in them: neither headers nor bodies, nor a token in the address. */
function tracing(err: Call['err']): Fetch {
  return async (address, init) => {
    const began = performance.now();
    err(`> ${init.method} ${printable(address.replace(/token=[^&]*/, 'token=…'), 500)}`);
    const ended = (what: string) => err(`< ${what} after ${Math.round(performance.now() - began)} ms`);
    try {
      const response = await fetch(address, init);
      ended(`${response.status}, request ${response.headers.get('x-request-id') ?? 'without an id'}`);
      return response;
    } catch (error) {
      ended('no answer');
      throw error;
    }
  };
}

async function findKey(
  use: KeyUse,
  place: Place,
): Promise<{ apiKey: string | null; source: NonNullable<Connection['keySource']> }> {
  if (typeof use === 'object') return { apiKey: use.given, source: 'standard input' };
  const fromEnv = place.isNamed ? null : place.env['MASTHEAD_API_KEY']?.trim() || null;
  if (use !== 'none' && fromEnv !== null) return { apiKey: fromEnv, source: 'MASTHEAD_API_KEY' };
  return { apiKey: use === 'none' ? null : await readKey(place), source: 'file' };
}

/** A service that only the environment names stays unremembered where the profile has another. */
async function rememberService(
  call: Call,
  { profiles, profile, url, urlSource, configDir }: Place,
): Promise<string> {
  const known = Object.hasOwn(profiles.services, profile) ? profiles.services[profile] : undefined;
  if (known !== url && (known === undefined || urlSource === '--url')) {
    const current = Object.keys(profiles.services).length === 0 ? profile : profiles.current;
    try {
      await storeProfiles(configDir, { current, services: { ...profiles.services, [profile]: url } });
    } catch (error) {
      // What was asked of the service is done all the same.
      return `Later commands need --url ${url}: ${errorMessage(error)}`;
    }
  } else if (known !== url) return `Later commands use ${known} where MASTHEAD_URL is not set.`;
  return profile === profiles.current || Object.keys(profiles.services).length === 0
    ? `Later commands use ${url}.`
    : `Later commands use ${url} with --profile ${profile}, or after: ${call.program} profile use ${profile}`;
}
