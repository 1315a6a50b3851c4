import http from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';

/** One request. */
export type RequestOptions = {
  /** GET unless told. */
  readonly method?: string;
  /** Path and query exactly as sent: nothing is resolved, escaped or normalised. `/` unless told. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Sent as it is, with its length. */
  readonly body?: string | Uint8Array;
  /** Value of the `Host` header, when it is not that of the base address. */
  readonly host?: string;
  /** For connections that are kept, and for https; without one, each request has a connection of its own. */
  readonly agent?: http.Agent;
  /** Longest silence of the server, in milliseconds: 60,000 by default. */
  readonly timeout?: number;
};

/** A whole answer. */
export type Answer = {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly bytes: Buffer;
  /** The body as UTF-8, unpacked where it came compressed. */
  readonly text: string;
  /** The body read as JSON. */
  json(): unknown;
  /** What the JSON body holds at a path such as `post.slug` or `errors.0.field`; undefined where it has none. */
  at(path: string): unknown;
};

/** Asks again while a document is not rendered in time: a machine with many tests is busy for a moment at times. */
export async function unlessBusy<Answered extends { readonly status: number; readonly text: string }>(
  ask: () => Promise<Answered>,
): Promise<Answered> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503 || !answer.text.includes('was not rendered in time')) return answer;
    await delay(200);
  }
}

/** Sends one request and reads the whole answer; rejects when it is cut short. Redirects are not followed. */
export function request(baseUrl: string, options: RequestOptions = {}): Promise<Answer> {
  const { protocol, hostname, port } = new URL(baseUrl);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers: http.OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (options.host !== undefined) headers['host'] = options.host;
  if (options.body !== undefined) headers['content-length'] = Buffer.byteLength(options.body);

  const sent = http.request({
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    method: options.method ?? 'GET',
    path: options.path ?? '/',
    headers,
    agent: options.agent ?? false,
    timeout: options.timeout ?? 60_000,
    // A redirect repeats what was asked for, of up to 32 KiB.
    maxHeaderSize: 80 * 1024,
  });
  sent.on('timeout', () => sent.destroy(new Error(`no answer to ${sent.method} ${sent.path}`)));
  sent.on('error', reject);
  sent.on('response', (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const text = decoded(bytes, response.headers['content-encoding']).toString('utf8');
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        rawHeaders: response.rawHeaders,
        bytes,
        text,
        json: () => JSON.parse(text),
        at: (path) => valueAt(JSON.parse(text), path),
      });
    });
  });
  sent.end(options.body);
  return promise;
}

function decoded(bytes: Buffer, encoding: string | undefined): Buffer {
  if (bytes.length === 0) return bytes;
  if (encoding === 'zstd') return zstdDecompressSync(bytes);
  if (encoding === 'gzip') return gunzipSync(bytes);
  return encoding === 'br' ? brotliDecompressSync(bytes) : bytes;
}

function valueAt(json: unknown, path: string): unknown {
  let value = json;
  for (const name of path.split('.')) {
    value =
      typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
  }
  return value;
}

/**
 * Sends bytes as they are to a port of 127.0.0.1 and returns, as Latin-1, all that comes back until the server
 * closes the connection or `quiet` milliseconds (60,000 by default) pass without a byte.
 */
export function rawRequest(port: number, bytes: string | Uint8Array, quiet = 60_000): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
  socket.setEncoding('latin1');
  socket.setTimeout(quiet, () => socket.destroy());
  socket.on('data', (text: string) => (received += text));
  // A server may well reset the connection of a client that misbehaves: only to fail to connect is a failure.
  socket.on('error', (error) => {
    if (socket.pending) reject(error);
  });
  socket.on('close', () => resolve(received));
  return promise;
}
