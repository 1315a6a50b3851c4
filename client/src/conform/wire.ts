import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { errorMessage } from '../../../src/rules/failure.ts';
import { parseJson } from '../errors.ts';
import { Mismatch, OverLimit } from './check.ts';

/** One answer, as it came. */
export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly bytes: Buffer;
  /** The value at a path of names and indexes (`post.id`) of a JSON body; undefined where there is none. */
  at(path: string): unknown;
};

type WireOptions = {
  readonly key?: string | undefined;
  /** Sent as JSON; a string and bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends a call to the service; a path, or an absolute address such as a blog's. Redirects are not followed. */
export type Wire = (method: string, address: string, options?: WireOptions) => Promise<Answer>;

/** Seconds of `Retry-After` that a check waits for. */
const maxWait = 120;
/** How often a call is sent again that a busy service refuses with 503, and the longest `Retry-After` for that. */
const busy = { repeats: 5, seconds: 10 };
/** Milliseconds for one answer. */
const timeout = 60_000;
/** Bytes. */
const maxAnswer = 16_777_216;

/**
 * A wire to the service at `baseUrl`. Where a limit is used up it waits for `Retry-After`, and skips the check when
 * that is too long; what a busy service refuses it sends again. Each call has a connection of its own: a kept one may
 * be closed at the moment in which it is used again. Written on `node:http` and not on the SDK, so that the service
 * is checked and not both.
 */
export function createWire(baseUrl: string, onWait: (seconds: number) => void): Wire {
  return async (method, address, options = {}) => {
    const url = new URL(address, baseUrl);
    for (let repeats = 0; ; repeats++) {
      const answer = await send(method, url, options);
      const seconds = Number(answer.headers['retry-after'] ?? '60');
      if (answer.status === 503 && seconds <= busy.seconds && repeats < busy.repeats) {
        await pause(seconds * 1000);
        continue;
      }
      if (answer.status !== 429) return answer;
      if (!(seconds <= maxWait)) {
        throw new OverLimit(`the limit on ${method} ${shownPath(url)} is used up: for another ${seconds} s`);
      }
      onWait(seconds);
      await pause((seconds + 1) * 1000);
    }
  };
}

async function send(method: string, url: URL, { key, body, headers }: WireOptions): Promise<Answer> {
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const sent = body === undefined ? '' : isRaw ? body : JSON.stringify(body);
  try {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      agent: false,
      signal: AbortSignal.timeout(timeout),
      headers: {
        accept: '*/*',
        'user-agent': 'masthead-conform',
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        'content-length': Buffer.byteLength(sent),
        ...headers,
      },
      // Names below localhost are loopback (RFC 6761, 6.3), which not every resolver knows.
      lookup: (name, how, done) => lookup(name.endsWith('.localhost') ? 'localhost' : name, how, done),
    });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve).on('error', reject).end(sent);
    });
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxAnswer) throw new Error('longer than 16 MiB');
    }
    const bytes = Buffer.concat(chunks);
    const text = bytes.toString();
    const json = parseJson(text);
    const at = (path: string): unknown => valueAt(json, path);
    return { status: response.statusCode ?? 0, headers: response.headers, text, bytes, at };
  } catch (error) {
    throw new Mismatch(`an answer to ${method} ${shownPath(url)}`, `none (${errorMessage(error)})`);
  }
}

/** A path for the report: a link to upload stands for its agent. */
function shownPath({ pathname }: URL): string {
  return pathname.replace(/(?<=\/upload\/).+/, '…');
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
