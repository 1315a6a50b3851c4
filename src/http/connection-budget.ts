import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { countBudgetHit } from '../platform/measured.ts';
import { freeChunk } from '../platform/memory.ts';
import { createSlices } from '../platform/slices.ts';
import { connectionsOf, responseOn, type Arrivals } from '../platform/arrivals.ts';
import { endPacket, prepareParser, readAgain, stopReading, type AddressOf } from './parser.ts';

/** How many connections there may be of one address, and of all. */
type Most = { readonly ofAddress: number; readonly ofAll: number };
const mostOpen: Most = { ofAddress: 1_024, ofAll: 8_192 };

/**
 * Bounds open connections: beyond the budget of an address its oldest one without a request in progress is closed, or
 * else the new one; beyond that of all, one of the address that has most. `addressOf` is null for a trusted proxy,
 * whose connections are those of many and bounded by itself.
 */
export function limitConnections(server: Server, addressOf: (peer: string) => string | null): void {
  const open = new BoundedConnections(mostOpen);
  server.on('connection', (socket: Socket) => {
    const address = addressOf(socket.remoteAddress ?? '');
    if (address === null) return;
    const over = open.add(address, socket);
    socket.once('close', () => open.delete(address, socket));
    if (over) countBudgetHit(over === 'address' ? 'connections_client' : 'connections');
  });
}

/** Connections by address, so many at most: of too many of one address, or of the one that has most, one is closed. */
export class BoundedConnections {
  private readonly addresses = new Map<string, Set<Socket>>();
  private total = 0;
  private readonly most: Most;

  constructor(most: Most) {
    this.most = most;
  }

  /** Adds one, to be deleted when it is closed; says whose budget was full, if any. */
  add(address: string, socket: Socket): 'address' | 'all' | null {
    const own = this.addresses.get(address) ?? new Set();
    this.addresses.set(address, own.add(socket));
    this.total++;
    const isOver = own.size > this.most.ofAddress;
    if (!isOver && this.total <= this.most.ofAll) return null;
    closeOne(isOver ? own : largest(this.addresses), socket);
    return isOver ? 'address' : 'all';
  }

  delete(address: string, socket: Socket): void {
    const own = this.addresses.get(address);
    if (!own?.delete(socket)) return;
    this.total--;
    if (own.size === 0) this.addresses.delete(address);
  }
}

/** Connections that are begun in one turn of the event loop: the next one reads up to 64 KiB from each, and parses it. */
const mostBegun = 16;

/** Beside so many, connections that have sent nothing are not begun: Node's parser of each is 10 KB, which the allocator keeps. */
const manyOpen = 512;

/** Bytes that such ones may have sent while they wait to be begun; beyond that they are begun at once. */
const mostHeld = 1024 * 1024;

/** Milliseconds between looks for connections that have sent nothing for as long as Node lets a request's head take. */
const lookForSilent = 1_000;

/**
 * Begins connections in slices of the event loop's time, once no more of them come in, and reads nothing from those that
 * wait: they come by thousands. Beside many, one is begun when it sends something. To be called before anything else
 * listens; `addressOf` names who sends what is read in turns then.
 */
export function beginInSlices(server: Server, arrivals: Arrivals, addressOf: AddressOf): void {
  const [begin] = server.listeners('connection') as ((socket: Socket) => void)[];
  if (begin === undefined) throw new Error('this server begins no connections');
  const inSlices = createSlices({ isHeld: arrivals.areComing, most: mostBegun });
  /** Those that have sent nothing yet, and since when, the oldest first. */
  const silent = new Map<Socket, number>();
  /** Bytes that have come of those that wait to be begun. */
  let held = 0;
  Object.assign(server, { pauseOnConnect: true });
  server.off('connection', begin);
  const open = connectionsOf(server);
  server.on('connection', (socket: Socket) => {
    arrivals.hasCome();
    inSlices(() => {
      if (socket.destroyed) return;
      if (open.size <= manyOpen) start(socket);
      else {
        silent.set(socket, performance.now());
        socket.once('data', startWith).on('end', leave).on('error', leave).on('close', forget);
      }
      socket.resume();
    });
  });
  const timer = setInterval(closeSilent, lookForSilent).unref();
  server.once('close', () => clearInterval(timer));

  function start(socket: Socket): void {
    begin?.call(server, socket);
    prepareParser(server, socket, addressOf);
  }

  function startWith(this: Socket, first: Buffer): void {
    silent.delete(this);
    const { length } = first;
    if (held + length > mostHeld) return serve(this, first);
    held += length;
    stopReading(this);
    inSlices(() => {
      held -= length;
      serve(this, first);
    });
  }

  function serve(socket: Socket, first: Buffer): void {
    if (socket.destroyed) return;
    socket.off('end', leave).off('error', leave).off('close', forget);
    start(socket);
    // As Node leaves a connection that it begins: else the stream reads on where Node pauses it.
    socket.read(0);
    readAgain(socket);
    // To Node's parser, which reads what follows by itself, and copies what it gives on.
    socket.emit('data', first);
    endPacket(socket, first.length);
    freeChunk(first);
  }

  function leave(this: Socket): void {
    this.destroy();
  }

  function forget(this: Socket): void {
    silent.delete(this);
  }

  function closeSilent(): void {
    const oldest = performance.now() - (server.headersTimeout || Infinity);
    for (const [socket, since] of silent) {
      if (since > oldest) break;
      silent.delete(socket);
      inSlices(() => socket.bytesRead === 0 && socket.destroy());
    }
  }
}

function closeOne(of: ReadonlySet<Socket>, newest: Socket): void {
  for (const socket of of)
    if (socket !== newest && !socket.destroyed && responseOn(socket) === null) return void socket.destroy();
  newest.destroy();
}

function largest(addresses: ReadonlyMap<string, ReadonlySet<Socket>>): ReadonlySet<Socket> {
  let most: ReadonlySet<Socket> = new Set();
  for (const own of addresses.values()) if (own.size > most.size) most = own;
  return most;
}
