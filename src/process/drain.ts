import type { Server, ServerResponse } from 'node:http';
import { Server as Listener } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { connectionsOf, responseOn } from '../platform/arrivals.ts';
import type { Log } from '../platform/log.ts';

/** Milliseconds in which requests in progress may finish; slower ones are cut off. */
const patience = 6_000;
const lookEvery = 250;
/** Most milliseconds to wait for a turn of the event loop without anything new. */
const longestTurns = 300;
/** Milliseconds that such a turn may take, since what came in meanwhile is lost. One with nothing to do takes a tenth. */
const shortTurn = 0.2;

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
    for (const socket of sockets) closeWith(responseOn(socket));
    server.prependListener('request', (_request, response: ServerResponse) => closeWith(response));

    const left = AbortSignal.timeout(linger.ms);
    while (sockets.size > 0 && !left.aborted) await delay(10);
    await turnWithout(server, 'request');
    server.closeIdleConnections();
    const closeSilent = async () => {
      await turnWithout(server, 'request');
      server.closeIdleConnections();
      // Browsers open connections in advance, which Node counts as busy.
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    };
    const silent = setInterval(() => void closeSilent(), lookEvery);
    await close().finally(() => {
      clearTimeout(deadline);
      clearInterval(silent);
    });
  };
}

/** Says in an answer that it is the last one on its connection, so that a client sends no further request on it. */
function closeWith(response: ServerResponse | null): void {
  if (response?.headersSent === false) response.setHeader('connection', 'close');
}

/**
 * Resolves in a short turn of the event loop in which nothing of the kind arrived: the kernel resets connections that wait
 * when nobody listens any more, and those that are closed with something unread, although a request may have been sent.
 */
async function turnWithout(server: Server, event: 'connection' | 'request'): Promise<void> {
  let arrived = true;
  let took = 0;
  const note = () => (arrived = true);
  server.on(event, note);
  const started = performance.now();
  for (let last = started; (arrived || took > shortTurn) && last - started < longestTurns;) {
    arrived = false;
    await nextTurn();
    took = performance.now() - last;
    last += took;
  }
  server.off(event, note);
}
