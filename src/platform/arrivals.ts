import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { slice } from './slices.ts';

/** Not imported: an import reads all exports, and some of this one load a client of the web, of 13 MiB. */
export const http = process.getBuiltinModule('node:http');

/**
 * Milliseconds for which other work waits for connections, before it has a slice of its own. Each client that connects
 * waits for all that did before it, so they have most of the time: a thousand that also sent bodies were taken in 0.4 s with
 * this, in 1.3 s with two slices.
 */
const longest = 6 * slice;

/** Connections that come in. */
export type Arrivals = ReturnType<typeof createArrivals>;

/**
 * Tells while connections come in. libuv accepts one in each turn of the event loop (https://github.com/libuv/libuv/pull/3696),
 * so where each turn did other work too, a client that connects would wait behind some hundred others for a second.
 */
export function createArrivals() {
  let areComing = false;
  /** Until when other work waits at most, and until when it does not. */
  let [waitsUntil, goesOnUntil] = [0, 0];
  /** Since the last look. */
  let hasCome = false;

  function look(): void {
    const now = performance.now();
    areComing = hasCome && now < waitsUntil;
    hasCome = false;
    if (areComing) setImmediate(look);
    else if (now >= waitsUntil) goesOnUntil = now + slice;
  }

  return {
    /** To be called at each connection. */
    hasCome(): void {
      hasCome = true;
      const now = performance.now();
      if (areComing || now < goesOnUntil) return;
      areComing = true;
      waitsUntil = now + longest;
      setImmediate(look);
    },
    /** Whether more may come in the next turn of the event loop, for which other work waits. */
    areComing: (): boolean => areComing,
  };
}

/** Those of this process: it has one event loop. */
export const arrivals: Arrivals = createArrivals();

const connections = new WeakMap<Server, Set<Socket>>();

/** The open connections of a server, from the first call on. */
export function connectionsOf(server: Server): ReadonlySet<Socket> {
  const known = connections.get(server);
  if (known) return known;
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
}

/** The answer that a connection has, or waits for; null where no request of it was read since the last one. */
export function responseOn(socket: Socket): ServerResponse | null {
  // Node keeps it there, also to decide what is idle.
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return response instanceof http.ServerResponse ? response : null;
}
