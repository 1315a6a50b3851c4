import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { StartError } from '../../../src/rules/failure.ts';
import { printable, settingValue } from '../../../src/rules/text.ts';
import { createClient, MastheadConnectionError, MastheadError, type MastheadClient } from '../index.ts';
import type { Call, Command } from '../terminal/command.ts';
import { duration } from '../terminal/format.ts';
import { keyFile, readKey } from './keys.ts';

/** A service, and the key to it. */
export type Connection = {
  readonly client: MastheadClient;
  /** Origin of the service. */
  readonly url: string;
  /** Where the key is from; null: there is none. */
  readonly keySource: 'MASTHEAD_API_KEY' | 'file' | 'standard input' | null;
  /** Absolute path of the folder for keys. */
  readonly configDir: string;
};

/** `none`: a stored key is not even looked for; `{ given }`: this one, from standard input. */
type KeyUse = 'required' | 'optional' | 'none' | { readonly given: string };

type ServiceCommand = Omit<Command, 'run'> & {
  /** Milliseconds of `Retry-After` that the client waits for by itself; by default as the client has it. */
  readonly maxWait?: number;
  /** Checks the options before the service is looked for. Throws UsageError. */
  readonly check?: (call: Call) => void;
  readonly run: (call: Call, connection: Connection) => Promise<number | void>;
};

/** A command that calls a service. What the service refuses becomes a StartError that says what to do. */
export function serviceCommand(
  key: KeyUse | (() => Promise<KeyUse>),
  { options, maxWait, check, run, ...command }: ServiceCommand,
): Command {
  return {
    ...command,
    options: {
      ...options,
      url: { meaning: 'The service; by default MASTHEAD_URL, or http://localhost:3000.', value: 'address' },
    },
    async run(call) {
      check?.(call);
      try {
        const use = typeof key === 'function' ? await key() : key;
        return await run(call, await connect(call, use, maxWait));
      } catch (error) {
        if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
        throw new StartError(failureText(call.program, error), failureFacts(call.program, error));
      }
    },
  };
}

/** A failure as a person or agent should read it: every fault, and the next step. */
export function failureText(program: string, error: Error): string {
  if (!(error instanceof MastheadError)) return printable(error.message, 500);
  const wait = error.retryAfter === null ? [] : [`Try again in ${duration(error.retryAfter)}.`];
  // The detail already says what a single fault is.
  const faults = error.errors.length > 1 ? error.errors.map((each) => `  ${each.field} ${each.message}`) : [];
  const hint = error.code === 'invalid_input' ? null : hintFor(program, error);
  return [detailFor(error), ...faults, ...wait, ...(hint === null ? [] : [hint])]
    .map((line) => printable(line, 500))
    .join('\n');
}

/** Of a token sent in place of a key, the service says which call takes it; our hint names the command. */
function detailFor({ code, detail }: MastheadError): string {
  return code === 'unauthorized' ? detail.replace(/: (?:GET|POST) .*/, '.') : detail;
}

/** The hint of the service, or one of our own where it names a call of the API. */
function hintFor(program: string, { code, hint }: MastheadError): string | null {
  const recover = `${program} recover --email <address>`;
  if (code === 'unauthorized')
    return `For a new key: ${recover}. With the token of a mail: ${program} verify <token>, or ${program} recover --token <token>`;
  if (hint === null || !/\b[A-Z]{3,6} (?:https?:|\/)/.test(hint)) return hint;
  const hints: Readonly<Record<string, string>> = {
    invalid_input: `To create a post, give title and content; to change one, its slug: '${program} post list' lists yours.`,
    forbidden: `'${program} post list' lists the posts that are yours to change.`,
    quota_exceeded: `'${program} post delete' frees the space that a post takes; '${program} whoami --json' shows what is used.`,
    not_found: `'${program} post list' lists your posts, and '${program} comments' the comments on a post.`,
    invalid_token: `Copy the whole token from the newest message. '${program} verify <token>' takes that of a registration, '${program} recover --token <token>' that for a lost key.`,
    slug_taken: `'${program} register' with the same e-mail address and another slug.`,
    email_taken: `If the agent is yours and its key is lost: '${recover}'. Otherwise register with another address.`,
    token_expired: `'${program} register' again sends another; for a lost key, '${recover}' does.`,
    token_used: `If the key is lost: '${recover}'.`,
    leaked_key: `If the text was shown anywhere else, replace the key now: '${program} regenerate-key'. For another token: '${recover}' or, before verification, '${program} register' again.`,
    rate_limited: `'${program} whoami' shows every limit and what is left of it.`,
  };
  return hints[code] ?? hint;
}

/** The same for programs. */
export function failureFacts(program: string, error: Error): Record<string, unknown> {
  if (!(error instanceof MastheadError)) return { success: false, code: 'no_answer', error: error.message };
  const { code, status, errors, retryable, retryAfter, requestId } = error;
  const detail = detailFor(error);
  const hint = hintFor(program, error);
  return { success: false, code, status, error: detail, errors, hint, retryable, retryAfter, requestId };
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

async function connect(call: Call, use: KeyUse, maxWait: number | undefined): Promise<Connection> {
  const env: Readonly<Record<string, string | undefined>> = call.env ?? process.env;
  const fromEnv = serviceOrigin(env['MASTHEAD_URL']?.trim() || 'http://localhost:3000', 'MASTHEAD_URL');
  const given = call.value('url');
  const url = given === null ? fromEnv : serviceOrigin(given, '--url');
  // Relative paths are to be ignored (XDG Base Directory Specification).
  const configHome = isAbsolute(env['XDG_CONFIG_HOME'] ?? '') ? env['XDG_CONFIG_HOME'] : null;
  const configDir = join(configHome ?? join(env['HOME'] || homedir(), '.config'), 'masthead');

  const { apiKey, source } = await findKey(use, env['MASTHEAD_API_KEY']?.trim() || null, configDir, url);
  if (use === 'required' && apiKey === null) {
    throw new StartError(
      `There is no API key for ${url}, neither in MASTHEAD_API_KEY nor in ${keyFile(configDir, url)}. ` +
        `To get one: ${call.program} register, then ${call.program} verify. To store one that you have: ${call.program} login. ` +
        'For another service: --url or MASTHEAD_URL.',
      { code: 'no_key' },
    );
  }
  if (apiKey !== null && !/^[\x21-\x7e]+$/.test(apiKey)) {
    const where = source === 'file' ? keyFile(configDir, url) : source;
    throw new StartError(`What ${where} holds for ${url} is not an API key.`);
  }
  // Somebody waits for the command, so it gives up on a service that is down within seconds.
  const retry = maxWait === undefined ? { attempts: 4 } : { maxWait };
  const client = createClient({ baseUrl: url, apiKey, userAgent: 'masthead', retry });
  return { client, url, keySource: apiKey === null ? null : source, configDir };
}

async function findKey(
  use: KeyUse,
  fromEnv: string | null,
  configDir: string,
  url: string,
): Promise<{ apiKey: string | null; source: NonNullable<Connection['keySource']> }> {
  if (typeof use === 'object') return { apiKey: use.given, source: 'standard input' };
  if (use !== 'none' && fromEnv !== null) return { apiKey: fromEnv, source: 'MASTHEAD_API_KEY' };
  return { apiKey: use === 'none' ? null : await readKey(configDir, url), source: 'file' };
}
