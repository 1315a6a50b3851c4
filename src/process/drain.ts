import type { Server, ServerResponse } from 'node:http';
import { Server as Listener } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { connectionsOf } from '../platform/arrivals.ts';
import type { Log } from '../platform/log.ts';

/** Milliseconds in which requests in progress may finish; slower ones are cut off. */
const patience = 6_000;
const lookEvery = 250;
/** Most milliseconds to wait for a turn of the event loop without anything new. */
const longestTurns = 300;

/** How long to go on serving as before, and then how long to wait for clients to close their connections. */
export type Linger = { readonly ms: number; /** Also when nobody is connected. */ readonly always: boolean };

/**
 * Prepares a server to be stopped without cutting an answer. The returned function lingers, stops listening, lets
 * clients use the connections that they have once more, then calls `close`, which has to make the server close and
 * resolve when it has.
 */
export function createDrain(
  server: Server,
  log: Log,
): (linger: Linger, close: () => Promise<unknown>) => Promise<void> {
  const sockets = connectionsOf(server);

  return async (linger, close) => {
    // Connections stay open meanwhile: a proxy that has some opens few new ones, which the next step could cut.
    if (linger.always || sockets.size > 0) await delay(linger.ms);
    const deadline = setTimeout(() => {
      log.warn({}, 'requests that were not finished in time are cut off');
      server.closeAllConnections();
    }, patience);
    await turnWithout(server, 'connection');
    // An HTTP server's own close() would end idle connections too, just as a client may send its next request.
    Listener.prototype.close.call(server);
    server.prependListener('request', (_request, response: ServerResponse) =>
      response.setHeader('connection', 'close'),
    );

    const left = AbortSignal.timeout(linger.ms);
    while (sockets.size > 0 && !left.aborted) await delay(10);
    await turnWithout(server, 'request');
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

/**
 * Resolves in a turn of the event loop in which nothing of the kind arrived. Node accepts one connection a turn, and
 * the kernel resets those that wait when nobody listens any more, although their requests may have been sent.
 */
async function turnWithout(server: Server, event: 'connection' | 'request'): Promise<void> {
  let arrived = true;
  const note = () => (arrived = true);
  server.on(event, note);
  const started = performance.now();
  while (arrived && performance.now() - started < longestTurns) {
    arrived = false;
    await nextTurn();
  }
  server.off(event, note);
}
