import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';

import { createClient } from '../src/index.ts';
import type { ClientOptions, MastheadClient } from '../src/index.ts';

/** One call as the server saw it. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type Answer = {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly json?: unknown;
  /** In place of `json`: a page. */
  readonly text?: string;
};

/** An answer, or what happens to the connection instead: see {@link drop} and those after it. */
export type Step = Answer | ((response: ServerResponse) => void);

/** The connection ends before an answer. */
export const drop: Step = (response) => void response.socket?.destroy();

/** The connection ends inside the body of a success. */
export const cut: Step = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"success":true,', () => response.socket?.destroy());
};

/** A success begins, and its body never ends. */
export const begin: Step = (response) => {
  response.writeHead(200);
  response.write('begun');
};

/** No answer ever comes. */
export const hang: Step = () => {};

export type Script = {
  readonly client: MastheadClient;
  readonly baseUrl: string;
  readonly seen: Seen[];
  /** Milliseconds that the client would have waited, in order. */
  readonly pauses: number[];
};

/** A client whose calls get the given answers, one each and in order; its pauses take no time. */
export async function scripted(
  context: TestContext,
  steps: readonly Step[],
  options: Partial<ClientOptions> = {},
): Promise<Script> {
  const seen: Seen[] = [];
  const pauses: number[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const step = steps[seen.length] ?? { status: 500, text: 'no step left' };
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      if (typeof step === 'function') step(response);
      else answer(response, step);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert(address !== null && typeof address === 'object');
  const baseUrl = `http://127.0.0.1:${address.port}`;
  const client = createClient({
    baseUrl,
    apiKey: 'key-1',
    sleep: async (milliseconds) => void pauses.push(milliseconds),
    ...options,
  });
  return { client, baseUrl, seen, pauses };
}

function answer(
  response: ServerResponse,
  { status = 200, headers, json = { success: true }, text }: Answer,
): void {
  const type = text === undefined ? 'application/json' : 'text/html';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(text ?? JSON.stringify(json));
}

/** A failure as the service writes it. */
export function problem(status: number, code: string, extra: Record<string, unknown> = {}): Step {
  const detail = `detail of ${code}`;
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    json: {
      status,
      code,
      detail,
      error: detail,
      success: false,
      retryable: false,
      requestId: 'r-1',
      ...extra,
    },
  };
}
