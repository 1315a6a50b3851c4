import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { arrivals } from '../platform/arrivals.ts';
import { FairQueue } from '../platform/fair-queue.ts';

/** Of a body in chunks, bytes: smaller ones are handed over together, in pieces of so many at most. */
const smallChunk = 1_024;
const piece = 16 * 1024;
/** A packet with more chunks than that, which have fewer bytes on average, is refused: it may hold 10,000 of one byte. */
const mostTiny = 512;
const tiny = 32;
const nothing = Buffer.alloc(0);

/** The `code` of the error of a body in too many tiny chunks. */
export const tinyChunks = 'TINY_CHUNKS';

/** Given a piece of a body, or how much of a packet was parsed. */
type Hook = (this: Parser, given?: unknown) => unknown;

/**
 * Node's parser of a connection (lib/_http_common.js). It calls a hook with each piece of a body, at the end of a
 * message and after each packet, by numbers that its constructor names. Parsers are used again, for clients too.
 */
type Parser = {
  readonly constructor: {
    readonly kOnBody: number;
    readonly kOnMessageComplete: number;
    readonly kOnExecute: number;
  };
  readonly incoming: IncomingMessage | null;
  onIncoming: () => number;
  [hook: number]: Hook | undefined;
};

function parserOf(socket: Socket): Parser | null {
  return (Reflect.get(socket, 'parser') as Parser | null | undefined) ?? null;
}

/** What Node reads from, and notes there whether it wants to. */
type Handle = { readonly reading: boolean; readStart(): unknown; readStop(): unknown };

/** Null once it is closed. */
function handleOf(socket: Socket): Handle | null {
  return Reflect.get(socket, '_handle') as Handle | null;
}

/** Connections that are not read, until when. */
const stopped = new WeakMap<Socket, PromiseWithResolvers<void>>();

/**
 * Reads nothing of a connection until {@link readAgain}. To pause it would not do: Node resumes it when a part of a body
 * is taken, or an answer has left.
 */
export function stopReading(socket: Socket): void {
  const handle = handleOf(socket);
  if (!handle) return;
  handle.readStop();
  handle.readStart = () => 0;
  stopped.set(socket, Promise.withResolvers());
}

/** Reads a connection again that is stopped, unless Node has paused it meanwhile. */
export function readAgain(socket: Socket): void {
  const handle = handleOf(socket);
  if (handle) {
    // That of its class is seen again.
    Reflect.deleteProperty(handle, 'readStart');
    if (handle.reading) handle.readStart();
  }
  stopped.get(socket)?.resolve();
  stopped.delete(socket);
}

/**
 * What resolves when a connection that is stopped is read again, or closed; null: it is read. What it is answered waits
 * for that: a proxy then sends calls of other clients over it, which would wait for the turn of this one.
 */
export function untilRead(socket: Socket): Promise<void> | null {
  return stopped.get(socket)?.promise ?? null;
}

/** Parses no more of the packet that is being parsed: one of 64 KiB may hold 1,800 requests, which is 0.1 s of work. */
export function stopParsing(socket: Socket): void {
  const parser = parserOf(socket);
  // The result for each request: below zero, the parser has failed.
  if (parser) parser.onIncoming = () => -1;
}

/** Who sends: of a connection to which no request has come yet, by its socket alone. */
export type AddressOf = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string;

/**
 * Bounds how many packets are read of connections, all together, in so many ms: what it returns is to be called with the
 * connection of each packet, and reads no more from one beyond that until it is its turn. Owners take turns.
 */
export function createPace({ most, every }: { most: number; every: number }) {
  const waiting = new FairQueue<Socket>();
  /** Whose each is, of those that wait. */
  const owners = new Map<Socket, string>();
  let packets = 0;
  let timer: NodeJS.Timeout | null = null;

  function readOn(): void {
    timer = null;
    // New connections go first.
    if (arrivals.areComing()) return readOnLater();
    packets = 0;
    for (let n = 0; n < most; n++) {
      const socket = waiting.take();
      if (socket === undefined) break;
      owners.delete(socket);
      socket.off('close', forget);
      readAgain(socket);
    }
    if (waiting.size > 0) readOnLater();
  }

  function forget(this: Socket): void {
    waiting.delete(owners.get(this) ?? '', this);
    owners.delete(this);
    readAgain(this);
  }

  function readOnLater(): void {
    timer ??= setTimeout(readOn, every);
  }

  return (socket: Socket, addressOf: AddressOf): void => {
    readOnLater();
    if (packets++ < most) return;
    stopReading(socket);
    // Behind a proxy that of the last request, not of the connection: see untilRead, if it is complete.
    const owner = addressOf(parserOf(socket)?.incoming ?? { socket, headers: {} });
    owners.set(socket, owner);
    waiting.add(owner, socket);
    socket.once('close', forget);
  };
}

/** What Node reads at once, bytes. */
const packet = 64 * 1024;
/** Full packets, after which libuv would go on reading, up to 32 of one connection; and all of bodies that nobody wants. */
const readInTurn = createPace({ most: 16, every: 4 });
/** Packets of small chunks, each of which takes a ms or more. */
const readSlowly = createPace({ most: 1, every: 8 });

/** What can be done with the bodies that a parser reads. */
type Bodies = {
  /** To be called before the parser serves a connection. */
  begin: (connection: Socket, addressOf: AddressOf) => void;
  /** To be called after each packet, with its length. */
  endPacket: (connection: Socket, length: unknown) => void;
  /** Gives the rest of this body to nobody, and closes the connection once it has sent so many bytes in all. */
  drop: (most: number) => void;
};

const bodies = new WeakMap<Parser, Bodies>();

/**
 * Hands the small chunks of a body over together: each by itself is 12 us of work, and one client that sends them would
 * hold up all others. Ends a connection with too many tiny ones at once. To be called when a connection has begun, for
 * {@link dropRest} too.
 */
export function prepareParser(server: Server, socket: Socket, addressOf: AddressOf): void {
  const parser = parserOf(socket);
  if (!parser?.[parser.constructor.kOnExecute]) return;
  let own = bodies.get(parser);
  if (own === undefined) bodies.set(parser, (own = createBodies(server, parser)));
  own.begin(socket, addressOf);
}

/** To be called after a packet that Node did not read by itself, with its length. */
export function endPacket(socket: Socket, length: number): void {
  const parser = parserOf(socket);
  if (parser) bodies.get(parser)?.endPacket(socket, length);
}

/**
 * Reads the rest of a body without making anything of it; closes the connection once it has sent so many bytes in all.
 */
export function dropRest(request: IncomingMessage, most: number): void {
  const parser = parserOf(request.socket);
  if (parser?.incoming === request && !request.complete) bodies.get(parser)?.drop(most);
}

function createBodies(server: Server, parser: Parser): Bodies {
  const { kOnBody, kOnMessageComplete, kOnExecute } = parser.constructor;
  const { [kOnBody]: handOn, [kOnMessageComplete]: complete } = parser;
  let socket: Socket | null = null;
  let addressOf: AddressOf = () => '';
  /** Bytes of the connection, while a body is dropped. */
  let mostRead: number | null = null;
  let isRefused = false;
  /** Of the packet. */
  let [chunks, bytes] = [0, 0];
  let [gathered, used] = [nothing, 0];

  function handOver(): void {
    if (used === 0) return;
    // Of its own size: it may wait for its turn.
    const all = Buffer.allocUnsafeSlow(used);
    gathered.copy(all, 0, 0, used);
    used = 0;
    handOn?.call(parser, all);
  }

  function add(this: Parser, chunk: unknown): void {
    if (
      !Buffer.isBuffer(chunk) ||
      chunk.length >= smallChunk ||
      this.incoming?.headers['transfer-encoding'] === undefined
    ) {
      handOver();
      handOn?.call(this, chunk);
      return;
    }
    chunks++;
    bytes += chunk.length;
    if (chunks > mostTiny && bytes < chunks * tiny) {
      refuse();
      return;
    }
    if (used + chunk.length > gathered.length) handOver();
    if (gathered.length === 0) gathered = Buffer.allocUnsafeSlow(piece);
    chunk.copy(gathered, used);
    used += chunk.length;
  }

  function refuse(): void {
    isRefused = true;
    drop(Infinity);
    if (socket) stopParsing(socket);
    const error = new Error(`more than ${mostTiny} chunks of less than ${tiny} bytes came at once`);
    server.emit('clientError', Object.assign(error, { code: tinyChunks }), socket);
  }

  function drop(most: number): void {
    mostRead = most;
    used = 0;
    // Node makes no buffers then: the rest of a packet costs a tenth.
    parser[kOnBody] = undefined;
  }

  function endOfPacket(connection: Socket, length: unknown): void {
    handOver();
    if (mostRead !== null && connection.bytesRead > mostRead) connection.destroy();
    else if (chunks > 0) readSlowly(connection, addressOf);
    else if (length === packet || mostRead !== null) readInTurn(connection, addressOf);
    [chunks, bytes] = [0, 0];
    gathered = nothing;
  }

  function endMessage(this: Parser): unknown {
    // What came of it is not the whole.
    if (isRefused) return undefined;
    handOver();
    mostRead = null;
    parser[kOnBody] = add;
    return complete?.call(this);
  }

  function begin(connection: Socket, clientOf: AddressOf): void {
    socket = connection;
    addressOf = clientOf;
    mostRead = null;
    isRefused = false;
    used = 0;
    const { [kOnExecute]: execute } = parser;
    const afterEach: Hook = function (result) {
      endOfPacket(connection, result);
      return execute?.call(this, result);
    };
    Object.assign(parser, { [kOnBody]: add, [kOnMessageComplete]: endMessage, [kOnExecute]: afterEach });
    // Before Node frees the parser, which may then serve a client.
    connection.prependOnceListener('close', () => {
      if (socket !== connection) return;
      socket = null;
      Object.assign(parser, { [kOnBody]: handOn, [kOnMessageComplete]: complete });
    });
  }

  return { begin, endPacket: endOfPacket, drop };
}
