import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { uuidPattern } from '../../../src/rules/secrets.ts';
import { Mismatch, shownValue, Skipped } from './check.ts';

/** One answer, as it came. */
export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The value at a path of names and indexes (`post.id`) of a JSON body; undefined where there is none. */
  at(path: string): unknown;
};

type CallOptions = {
  readonly key?: string | undefined;
  /** Sent as JSON; a string as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends a call to the service; a path, or an absolute address such as a blog's. Redirects are not followed. */
export type Wire = (method: string, address: string, options?: CallOptions) => Promise<Answer>;

/** Seconds of `Retry-After` that a check waits for. */
const longestWait = 120;
/** Milliseconds for one answer. */
const patience = 30_000;
const longestAnswer = 16_777_216;

/**
 * A wire to the service at `baseUrl`. Where a limit is used up it waits as told, and skips the check when that is
 * too long. Written on `node:http` and not on the SDK, so that what is checked is the service and not both.
 */
export function createWire(baseUrl: string, onWait: (seconds: number) => void): Wire {
  return async (method, address, options = {}) => {
    const url = new URL(address, baseUrl);
    for (;;) {
      const answer = await send(method, url, options);
      if (answer.status !== 429) return answer;
      const seconds = Number(answer.headers['retry-after'] ?? '60');
      if (!(seconds <= longestWait)) {
        throw new Skipped(`the limit on ${method} ${url.pathname} is used up: for another ${seconds} s`);
      }
      onWait(seconds);
      await pause((seconds + 1) * 1000);
    }
  };
}

function send(method: string, url: URL, { key, body, headers = {} }: CallOptions): Promise<Answer> {
  const sent = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void =>
      reject(new Mismatch(`an answer to ${method} ${url.pathname}`, `none (${error.message})`));
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(
      url,
      {
        method,
        signal: AbortSignal.timeout(patience),
        headers: {
          accept: '*/*',
          'user-agent': 'masthead-conform',
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          'content-length': Buffer.byteLength(sent),
          ...headers,
        },
        // Names below localhost are loopback (RFC 6761, 6.3); not every resolver knows.
        lookup: (name, how, done) => lookup(name.endsWith('.localhost') ? 'localhost' : name, how, done),
      },
      (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('error', refuse).on('data', (chunk: Buffer) => {
          length += chunk.length;
          if (length > longestAnswer) response.destroy(new Error('longer than 16 MiB'));
          else chunks.push(chunk);
        });
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const json = parsed(text);
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            at: (path) => valueAt(json, path),
          });
        });
      },
    );
    request.on('error', refuse).end(sent);
  });
}

/** Skips nothing: throws Mismatch unless the status is one of these. */
export function expectStatus(answer: Answer, ...statuses: readonly number[]): Answer {
  if (statuses.includes(answer.status)) return answer;
  throw new Mismatch(`status ${statuses.join(' or ')}`, `${answer.status}: ${shownValue(answer.text)}`);
}

/** Throws Mismatch unless the call was refused. */
export function expectRefusal(answer: Answer): Answer {
  if (answer.status >= 400 && answer.status < 500) return answer;
  throw new Mismatch('a refusal (status 400 to 499)', `${answer.status}: ${shownValue(answer.text)}`);
}

/** Throws Mismatch unless the answer is a success that says so. */
export function expectSuccess(answer: Answer, ...statuses: readonly number[]): Answer {
  expectStatus(answer, ...statuses);
  return expectFields(answer, { success: 'true' });
}

/** Throws Mismatch unless the answer is a failure of our form, with this status and code. */
export function expectProblem(answer: Answer, status: number, code: string): Answer {
  expectStatus(answer, status);
  expectHeader(answer, 'content-type', /^application\/problem\+json/);
  expectValue('code', answer.at('code'), code);
  expectFields(answer, { success: 'false', type: 'url', title: 'text', detail: 'text', requestId: 'text' });
  expectValue('error (as detail)', answer.at('error'), answer.at('detail'));
  return answer;
}

export function expectHeader(answer: Answer, name: string, form: RegExp): void {
  const value = String(answer.headers[name] ?? '');
  if (!form.test(value)) throw new Mismatch(`header ${name} as ${String(form)}`, shownValue(value));
}

export function expectValue(what: string, received: unknown, expected: unknown): void {
  if (received === expected) return;
  throw new Mismatch(`${what} ${shownValue(expected)}`, shownValue(received));
}

/** The forms that fields have, by name. */
const forms = {
  true: (value: unknown) => value === true,
  false: (value: unknown) => value === false,
  boolean: (value: unknown) => typeof value === 'boolean',
  text: (value: unknown) => typeof value === 'string' && value !== '',
  uuid: (value: unknown) => typeof value === 'string' && uuidPattern.test(value),
  url: (value: unknown) => typeof value === 'string' && /^https?:/.test(value) && URL.canParse(value),
  time: (value: unknown) =>
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
  null: (value: unknown) => value === null,
  count: (value: unknown) => typeof value === 'number' && Number.isInteger(value) && value >= 0,
  array: (value: unknown) => Array.isArray(value),
} satisfies Record<string, (value: unknown) => boolean>;

/** Throws Mismatch unless every field has its form. */
export function expectFields(answer: Answer, fields: Readonly<Record<string, keyof typeof forms>>): Answer {
  for (const [path, form] of Object.entries(fields)) {
    const value = answer.at(path);
    if (!forms[form](value)) throw new Mismatch(`${path}: ${form}`, `${path}: ${shownValue(value)}`);
  }
  return answer;
}

/** A field that is a text. Throws Mismatch. */
export function textAt(answer: Answer, path: string): string {
  const value = answer.at(path);
  if (typeof value === 'string') return value;
  throw new Mismatch(`${path}: text`, `${path}: ${shownValue(value)}`);
}

/** The entries of a list. Throws Mismatch where there is no list. */
export function entriesAt(answer: Answer, path: string): readonly unknown[] {
  const value = answer.at(path);
  if (Array.isArray(value)) return value;
  throw new Mismatch(`${path}: array`, `${path}: ${shownValue(value)}`);
}

/** The value at a path within a parsed JSON value. */
export function valueAt(json: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null
          ? Object.getOwnPropertyDescriptor(value, name)?.value
          : undefined,
      json,
    );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
