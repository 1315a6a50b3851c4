import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from './log.ts';

/** Milliseconds in which requests under way may end; whoever is slower is cut off. */
const patience = 6_000;
const lookEvery = 250;

/** How long to go on serving while every answer asks its client to leave. */
export type Linger = { readonly ms: number; /** Also when nobody is connected. */ readonly always: boolean };

/**
 * Prepares a server to be stopped without cutting an answer. The returned function lingers, then calls `close`,
 * which has to make the server close and resolve when it has.
 */
export function createDrain(
  server: Server,
  log: Log,
): (linger: Linger, close: () => Promise<unknown>) => Promise<void> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  return async (linger, close) => {
    // A kept connection that was just closed under a client's next request would be an answer cut.
    server.prependListener('request', (_request, response: ServerResponse) =>
      response.setHeader('connection', 'close'),
    );
    if (linger.always || sockets.size > 0) await delay(linger.ms);

    const deadline = setTimeout(() => {
      log.warn({}, 'requests that were not finished in time are cut off');
      server.closeAllConnections();
    }, patience);
    const silent = setInterval(() => {
      server.closeIdleConnections();
      // Browsers open connections ahead of need, which Node counts as busy.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }, lookEvery);
    await close().finally(() => {
      clearTimeout(deadline);
      clearInterval(silent);
    });
  };
}
