import {
  createClient,
  MastheadConnectionError,
  MastheadError,
  type MastheadClient,
  type RetryOptions,
} from '../index.ts';
import { callsAsCommands } from '../../../src/rules/call-names.ts';
import { loadAgentSettings, serviceOrigin, type AgentSettings } from './settings.ts';
import { StartError } from '../../../src/rules/failure.ts';
import { printable } from '../../../src/rules/text.ts';
import { jsonOption, type Call, type Option } from '../terminal/command.ts';
import { keyFile, readKey } from './keys.ts';

/** Options of every command that calls a service. */
export const serviceOptions: Readonly<Record<string, Option>> = {
  url: { meaning: 'The service; MASTHEAD_URL unless told, else http://localhost:3000.', value: 'address' },
  ...jsonOption,
};

/** A service, and the key to it. */
export type Connection = {
  readonly client: MastheadClient;
  /** Origin of the service. */
  readonly url: string;
  /** Where the key is from; null: there is none. */
  readonly keySource: 'environment' | 'file' | 'given' | null;
  readonly configDir: string;
};

/** Somebody waits: a service that is not there is to be told of within seconds. */
const impatient: RetryOptions = { attempts: 4 };

export type ConnectionOptions = {
  /** `none`: it is not even looked for; `{ given }`: this one. */
  readonly key: 'required' | 'optional' | 'none' | { readonly given: string };
  readonly retry?: RetryOptions;
};

/** Runs the calls of a command. What the service refuses becomes a StartError that says what to do. */
export async function withService<T>(
  call: Call,
  options: ConnectionOptions,
  run: (connection: Connection) => Promise<T>,
): Promise<T> {
  try {
    return await run(await connect(call, options));
  } catch (error) {
    if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
    throw new StartError(failureText(call.program, error), failureFacts(call.program, error));
  }
}

/** A failure as a person or agent should read it: every fault, and the next step. */
export function failureText(program: string, error: Error): string {
  if (!(error instanceof MastheadError)) return printable(error.message, 500);
  const wait = error.retryAfter === null ? [] : [`Try again in ${duration(error.retryAfter)}.`];
  // With a single fault the detail already tells it.
  const faults = error.errors.length > 1 ? error.errors.map((each) => `  ${each.field} ${each.message}`) : [];
  const hint = error.code === 'invalid_input' ? null : hintFor(program, error);
  return [callsAsCommands(program, error.detail), ...faults, ...wait, ...(hint === null ? [] : [hint])]
    .map((line) => printable(line, 500))
    .join('\n');
}

/** The service's own hints name calls; where a command does the same, it is named. */
function hintFor(program: string, { code, hint }: MastheadError): string | null {
  if (code === 'unauthorized') return `For a new key: ${program} recover --email <address>`;
  return hint === null ? null : callsAsCommands(program, hint);
}

/** The same for programs. */
export function failureFacts(program: string, error: Error): Record<string, unknown> {
  if (!(error instanceof MastheadError)) return { success: false, code: 'no_answer', error: error.message };
  const { code, status, detail, errors, retryable, retryAfter, requestId } = error;
  const hint = hintFor(program, error);
  return { success: false, code, status, error: detail, errors, hint, retryable, retryAfter, requestId };
}

/** Seconds in words: `41 s`, `12 min 4 s`. */
export function duration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`;
}

/** Text of others without what a terminal would obey; lines and tabs stay. */
export function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '');
}

async function connect(call: Call, { key, retry = impatient }: ConnectionOptions): Promise<Connection> {
  const settings = loadAgentSettings(call.env);
  const given = call.value('url');
  const url = given === null ? settings.url : serviceOrigin(given, '--url');
  const { configDir } = settings;
  const { apiKey, source } = await findKey(key, settings, url);
  if (key === 'required' && apiKey === null) {
    throw new StartError(
      `There is no API key for ${url}, neither in MASTHEAD_API_KEY nor in ${keyFile(configDir, url)}. ` +
        `To get one: ${call.program} register, then ${call.program} verify. To keep one that you have: ${call.program} login. ` +
        'For another service: --url or MASTHEAD_URL.',
      { code: 'no_key' },
    );
  }
  if (apiKey !== null && !/^[\x21-\x7e]+$/.test(apiKey)) {
    const where = { environment: 'MASTHEAD_API_KEY', file: keyFile(configDir, url), given: 'standard input' };
    throw new StartError(`What ${where[source]} holds for ${url} is not an API key.`);
  }
  const client = createClient({ baseUrl: url, apiKey, userAgent: 'masthead', retry });
  return { client, url, keySource: apiKey === null ? null : source, configDir };
}

async function findKey(
  wanted: ConnectionOptions['key'],
  { apiKey, configDir }: AgentSettings,
  url: string,
): Promise<{ apiKey: string | null; source: NonNullable<Connection['keySource']> }> {
  if (typeof wanted === 'object') return { apiKey: wanted.given, source: 'given' };
  if (wanted !== 'none' && apiKey !== null) return { apiKey, source: 'environment' };
  return { apiKey: wanted === 'none' ? null : await readKey(configDir, url), source: 'file' };
}
