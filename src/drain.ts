import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from './log.ts';

/** Milliseconds in which requests in progress may finish; slower ones are cut off. */
const patience = 6_000;
const lookEvery = 250;

/** How long to go on serving while every answer asks its client to disconnect. */
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
    // Closing a kept connection just as its client sends the next request would lose an answer.
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
      // Browsers open connections in advance, which Node counts as busy.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }, lookEvery);
    await close().finally(() => {
      clearTimeout(deadline);
      clearInterval(silent);
    });
  };
}
