import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { AppError } from '../errors.ts';
import { freeChunk } from '../platform/memory.ts';
import { BoundedConnections } from './connection-budget.ts';
import { dropRest } from './parser.ts';

/** Largest body where nothing larger is stated, and of those that wait for memory instead of being refused, bytes. */
export const smallBody = 64 * 1024;

const mebibyte = 1024 * 1024;
/**
 * Bytes of one owner's, by what they are to become: four of the largest bodies; 256 of those that wait, of any size. And
 * of all bodies at once, as they come in; of one address, whatever keys it has, half of that.
 */
const mostRead = { ofOwner: 16 * mebibyte, ofAddress: 32 * mebibyte, ofAll: 64 * mebibyte };
/** Bodies of one owner that may wait: their first packets are in memory already. */
const mostQueued = 512;
/** Memory that is taken first for a body that comes in pieces, bytes; then twice as much each time. */
const firstPiece = 4 * 1024;
const nothing = Buffer.alloc(0);

/** Whose memory a body takes. */
type Whose = {
  /** Agent id or client address. */
  readonly owner: string;
  /** Client address. */
  readonly address: string;
};

/** Whose memory a body takes, and how large it may be. */
export type BodyTerms = Whose & {
  /** Bytes. */
  readonly limit: number;
  /** The refusal of a larger one. */
  readonly tooLarge: () => AppError;
};

declare module 'node:http' {
  interface IncomingMessage {
    /** Tells a client to send its body that waits for that (`Expect: 100-continue`). */
    tellToGoOn?: () => void;
  }
}

/**
 * The function that reads bodies, all of a process from one budget: however many a client begins to send, they take
 * little memory, and none before it is sent. A body's share is given back when its call is answered, so that this also
 * bounds what waits to be rendered or stored. Bodies up to {@link smallBody} wait for their turn; larger ones have a
 * budget apart, so that a key whose large bodies do not come in can still send others, and are refused before they
 * are read where there is no room. Throws too_large, unavailable, or an error with `statusCode` 400 for a body that
 * ended early.
 */
export function createBodyReader() {
  const budgets = { large: new BodyBudget(mostRead), small: new BodyBudget(mostRead) };

  /** A body; `release` gives its share back once nothing made from it is needed. */
  return async function read(request: IncomingMessage, terms: BodyTerms) {
    const { owner, address, limit, tooLarge } = terms;
    const { 'transfer-encoding': inChunks, 'content-length': length = 0 } = request.headers;
    const stated = inChunks === undefined ? Number(length) : null;
    if (request.destroyed) throw cutShort();
    if (stated !== null && stated > limit) throw tooLarge();
    // What is made from a small one, and what waits for it, does not depend on its size.
    const admitted = Math.max(stated ?? 0, smallBody);
    const budget = admitted > smallBody ? budgets.large : budgets.small;
    const whose = { owner, address };
    const full = budget.admit(whose, admitted);
    if (full && budget === budgets.large) throw tooMuch(full);
    if (full) await turnOf(request, budget, whose, admitted);
    request.tellToGoOn?.();
    const share: Share = { ...whose, budget, admitted, taken: 0 };
    const giveBack = () => share.budget.giveBack(share);
    const take = (capacity: number) => grow(share, capacity, budgets.large);
    const body = await collect(request, terms, stated, take).catch((error: unknown) => {
      giveBack();
      throw error;
    });
    return { body, release: giveBack };
  };
}

/** Waits until the bytes are admitted, or the client leaves. */
function turnOf(request: IncomingMessage, budget: BodyBudget, whose: Whose, bytes: number): Promise<void> {
  if (budget.queued(whose.owner) >= mostQueued) throw tooMuch('share');
  return new Promise((resolve, reject) => {
    const stopWaiting = budget.wait(whose, bytes, () => {
      request.off('close', leave);
      resolve();
    });
    request.once('close', leave);
    function leave(): void {
      stopWaiting();
      reject(cutShort());
    }
  });
}

/** The bytes of a body. `take` reserves memory for so many in all, or says why there is none. */
function collect(
  request: IncomingMessage,
  { limit, tooLarge }: BodyTerms,
  stated: number | null,
  take: (capacity: number) => Full | null,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let pieces: Buffer = nothing;
    let received = 0;
    request.on('data', add).once('end', end).once('error', end).once('close', end);

    function add(chunk: Buffer): void {
      const length = received + chunk.length;
      if (length > limit) return finish(tooLarge());
      const isWhole = received === 0 && length === stated;
      if (length > pieces.length) {
        const capacity = capacityFor(length);
        const full = take(capacity);
        if (full) return finish(tooMuch(full));
        pieces = isWhole ? chunk : enlarged(pieces, received, capacity);
      }
      if (!isWhole) {
        chunk.copy(pieces, received);
        freeChunk(chunk);
      }
      received = length;
    }

    /** Many small chunks are copied seldom, and none is kept: each would take more memory than its bytes. */
    function capacityFor(length: number): number {
      let capacity = Math.max(firstPiece, pieces.length);
      while (capacity < length) capacity *= 2;
      return Math.min(capacity, stated ?? limit);
    }

    function end(error?: Error): void {
      finish(request.readableEnded && !error ? null : cutShort());
    }

    function finish(error: Error | null): void {
      request.off('data', add).off('end', end).off('error', end).off('close', end);
      if (error) reject(error);
      else resolve(pieces.subarray(0, received));
    }
  });
}

function enlarged(pieces: Buffer, used: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(capacity);
  pieces.copy(larger, 0, 0, used);
  freeChunk(pieces);
  return larger;
}

/** Reads a body that nobody wants, and keeps nothing of it; closes the connection when it has sent so much in all. */
export function dropBody(request: IncomingMessage, most = Infinity): void {
  dropRest(request, most);
  // What has come in.
  request.off('data', freeChunk).on('data', freeChunk).resume();
}

/** Bytes that a client may still send after its answer. How long it may is up to the time that any request has. */
const mostUnread = 64 * 1024 * 1024;

/** Connections that are answered, and the request of which only the rest of the body is still read. */
export const readOn = new WeakMap<Socket, IncomingMessage>();

/** How many of them there may be: the oldest, which has had the most time to see its answer, is closed for another. */
const mostReadOn = { ofAddress: 64, ofAll: 512 };

/**
 * Lets a client that sends its whole body before it reads see an answer that was given earlier: what it still sends is
 * read and dropped. Where the connection is to be closed, Node would do so at once, and the system then throws away
 * what the client has not read. To be called with a request that has a body, before it is handled. All of a process
 * share one budget; `addressOf` names the client.
 */
export function createReadOn(addressOf: (request: IncomingMessage) => string) {
  const budget = new BoundedConnections(mostReadOn);

  /** Takes a place in the budget; returns what gives it back. */
  function begin(request: IncomingMessage): () => void {
    const { socket } = request;
    const address = addressOf(request);
    const end = () => {
      socket.off('close', end);
      budget.delete(address, socket);
    };
    budget.add(address, socket);
    socket.once('close', end);
    return end;
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    let isLast = false;
    // Before Node's own listener, which closes.
    response.prependOnceListener('finish', () => {
      if (request.complete) return;
      const end = begin(request);
      readOn.set(socket, request);
      socket.destroySoon = () => {
        isLast = true;
        // Ours is said, and the client can tell.
        socket.end();
      };
      const most = socket.bytesRead + mostUnread;
      dropBody(request, most);
      request.once('end', () => {
        end();
        // Unless the next request came with the end of this one, and was answered.
        if (readOn.get(socket) === request) {
          readOn.delete(socket);
          Reflect.deleteProperty(socket, 'destroySoon');
        }
        if (isLast) Socket.prototype.destroySoon.call(socket);
      });
      // Else Node takes what nobody has begun to read away, listeners and all.
      request.read(0);
    });
  };
}

/** What ends the reading of a body whose client has left. */
export function cutShort(): Error {
  return Object.assign(new Error('the connection was closed before the end of the body'), {
    statusCode: 400,
  });
}

/** The refusal of what is more of one client, or of all, than is received and worked on, or sent, at once. */
export function tooMuch(
  full: Full,
  being: 'received or worked on' | 'sent' = 'received or worked on',
): AppError {
  const of = being === 'sent' ? 'to' : 'of';
  const what =
    full === 'share' ? `Too much ${of} this key or address is` : 'As much as this service has room for is';
  return new AppError('unavailable', `${what} being ${being} at once.`, {
    retryAfter: 1,
    uncounted: true,
    budget: full === 'share' ? 'in_progress_client' : 'in_progress',
    hint:
      full === 'share'
        ? being === 'sent'
          ? 'Read the answers that are on their way, and then repeat this call.'
          : 'Send fewer of them at once, and repeat this call when another has been answered.'
        : 'Repeat this call in a moment.',
  });
}

/** What a body in progress has of a budget: the bytes that it may become, and those that have come in. */
type Share = Whose & { budget: BodyBudget; admitted: number; taken: number };

function grow(share: Share, capacity: number, large: BodyBudget): Full | null {
  if (capacity <= share.admitted) {
    const none = share.budget.take(share, capacity - share.taken);
    if (none) return none;
    share.taken = capacity;
    return null;
  }
  // One of unknown length turned out to be large, or larger: what it has stays taken until it is copied.
  const full = large.admit(share, capacity);
  if (full) return full;
  large.take(share, capacity);
  share.budget.giveBack(share);
  Object.assign(share, { budget: large, admitted: capacity, taken: capacity });
  return null;
}

/** Why there is no room: the share of the owner or address is full, or all of the memory. */
export type Full = 'share' | 'total';

type Waiter = { readonly address: string; readonly bytes: number; readonly go: () => void };

/**
 * Shares out memory among owners. What a body is said to become counts against its owner's share only. All share one
 * total, of which a body takes what has come in, as of the share of its address: nobody fills these by promises.
 */
export class BodyBudget {
  private readonly most: { readonly ofOwner: number; readonly ofAddress: number; readonly ofAll: number };
  private readonly promised = new Amounts();
  private readonly takenBy = new Amounts();
  private readonly waiting = new Map<string, Waiter[]>();
  private taken = 0;

  constructor(most: BodyBudget['most']) {
    this.most = most;
  }

  /** Lets in a body that may take so many bytes, to be given back; null, or what is full (or waited for). */
  admit(whose: Whose, bytes: number): Full | null {
    return this.waiting.has(whose.owner) ? 'share' : this.admitIfRoom(whose, bytes);
  }

  private admitIfRoom({ owner, address }: Whose, bytes: number): Full | null {
    if (this.promised.of(owner) + bytes > this.most.ofOwner) return 'share';
    const full = this.fullFor(address, bytes);
    if (full === null) this.promised.add(owner, bytes);
    return full;
  }

  private fullFor(address: string, bytes: number): Full | null {
    if (this.takenBy.of(address) + bytes > this.most.ofAddress) return 'share';
    return this.taken + bytes > this.most.ofAll ? 'total' : null;
  }

  /** Takes bytes of the total and of an address's share, to be given back; null, or what is full. */
  take({ address }: Pick<Whose, 'address'>, bytes: number): Full | null {
    const full = this.fullFor(address, bytes);
    if (full === null) {
      this.takenBy.add(address, bytes);
      this.taken += bytes;
    }
    return full;
  }

  giveBack({ owner, address, admitted, taken }: Omit<Share, 'budget'>): void {
    this.promised.add(owner, -admitted);
    this.takenBy.add(address, -taken);
    this.taken -= taken;
    this.serve();
  }

  /** How many wait for room of this owner. */
  queued(owner: string): number {
    return this.waiting.get(owner)?.length ?? 0;
  }

  /** Calls `go` once the bytes are admitted, after all others of the owner. Returns what ends the wait before that. */
  wait({ owner, address }: Whose, bytes: number, go: () => void): () => void {
    const waiter = { address, bytes, go };
    this.waiting.set(owner, [...(this.waiting.get(owner) ?? []), waiter]);
    return () => {
      const rest = (this.waiting.get(owner) ?? []).filter((other) => other !== waiter);
      if (rest.length > 0) this.waiting.set(owner, rest);
      else this.waiting.delete(owner);
      this.serve();
    };
  }

  private serve(): void {
    for (const [owner, queue] of this.waiting) {
      const full = queue.findIndex(
        ({ address, bytes }) => this.admitIfRoom({ owner, address }, bytes) !== null,
      );
      const served = full === -1 ? queue.length : full;
      if (served === queue.length) this.waiting.delete(owner);
      for (const { go } of queue.splice(0, served)) go();
    }
  }
}

/**
 * Amounts by name. Those that have come to nothing are forgotten now and then: V8 gives a Map that becomes small another
 * table, and one that outlived two collections keeps all tables that came after it until a full collection.
 */
export class Amounts {
  private readonly amounts = new Map<string, number>();
  private most = 64;

  /** How many names it has. */
  get size(): number {
    return this.amounts.size;
  }

  of(name: string): number {
    return this.amounts.get(name) ?? 0;
  }

  add(name: string, more: number): void {
    this.amounts.set(name, this.of(name) + more);
    if (this.size <= this.most) return;
    for (const [other, amount] of this.amounts) if (amount <= 0) this.amounts.delete(other);
    this.most = Math.max(64, 2 * this.size);
  }
}
