import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { countBudgetHit } from '../platform/measured.ts';
import { createSlices } from '../platform/slices.ts';
import type { Arrivals } from '../platform/arrivals.ts';

/** Open connections of one address, and of all. */
const mostOfAddress = 1_024;
const mostOfAll = 8_192;

/**
 * Bounds open connections: beyond the budget of an address its oldest one without a request in progress is closed, or
 * else the new one; beyond that of all, one of the address that has most. `addressOf` is null for a trusted proxy,
 * whose connections are those of many and bounded by itself.
 */
export function limitConnections(server: Server, addressOf: (peer: string) => string | null): void {
  const addresses = new Map<string, Set<Socket>>();
  let total = 0;

  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket.remoteAddress ?? '');
    if (address === null) return;
    const own = addresses.get(address) ?? new Set();
    addresses.set(address, own.add(socket));
    total++;
    socket.once('close', () => {
      total--;
      if (own.delete(socket) && own.size === 0) addresses.delete(address);
    });
    const isOver = own.size > mostOfAddress;
    if (!isOver && total <= mostOfAll) return;
    countBudgetHit(isOver ? 'connections_client' : 'connections');
    closeOne(isOver ? own : largest(addresses), socket);
  });
}

/**
 * Begins connections in slices of the event loop's time, once no more of them come in, and reads nothing from those that
 * wait: they come by thousands. To be called before anything else listens.
 */
export function beginInSlices(server: Server, arrivals: Arrivals): void {
  const [begin] = server.listeners('connection') as ((socket: Socket) => void)[];
  if (begin === undefined) throw new Error('this server begins no connections');
  const inSlices = createSlices(arrivals.areComing);
  Object.assign(server, { pauseOnConnect: true });
  server.off('connection', begin);
  server.on('connection', (socket: Socket) => {
    arrivals.hasCome();
    inSlices(() => {
      if (socket.destroyed) return;
      begin.call(server, socket);
      socket.resume();
    });
  });
}

function closeOne(of: ReadonlySet<Socket>, newest: Socket): void {
  for (const socket of of)
    if (socket !== newest && !socket.destroyed && isIdle(socket)) return void socket.destroy();
  newest.destroy();
}

function largest(addresses: ReadonlyMap<string, ReadonlySet<Socket>>): ReadonlySet<Socket> {
  let most: ReadonlySet<Socket> = new Set();
  for (const own of addresses.values()) if (own.size > most.size) most = own;
  return most;
}

/** Whether it has no request that was read and is not answered. */
function isIdle(socket: Socket): boolean {
  // Node keeps the response there that is being made.
  return !Reflect.get(socket, '_httpMessage');
}
