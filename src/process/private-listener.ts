import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ListenAddress } from '../config/config.ts';
import { http } from '../platform/arrivals.ts';
import { listenError } from './port.ts';

/** What is asked at an address of the private listener, and the answer to it. */
export type PrivateCall = { readonly path: string; readonly query: string };
export type PrivateAnswer = { readonly status: number; readonly text: string };

/**
 * Serves what is not for the public at an address of its own, for whoever reaches that. Throws StartError where it
 * cannot listen. Dispose of it to stop listening. `answer` must not throw.
 */
export async function listenPrivately(
  address: ListenAddress,
  answer: (call: PrivateCall) => Promise<PrivateAnswer>,
): Promise<AsyncDisposable> {
  const server = http.createServer((request, response) => void reply(request, response));

  async function reply({ method, url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', query = ''] = url.split('?');
    const isRead = method === 'GET' || method === 'HEAD';
    const { status, text } = isRead
      ? await answer({ path, query })
      : { status: 405, text: 'Only GET and HEAD.\n' };
    response.writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      ...(isRead ? {} : { allow: 'GET, HEAD' }),
    });
    response.end(method === 'HEAD' ? undefined : text);
  }

  try {
    await once(server.listen(address.port, address.host), 'listening');
  } catch (error) {
    throw listenError(error, address, { host: "INTERNAL_PORT's host", port: 'INTERNAL_PORT' });
  }
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
