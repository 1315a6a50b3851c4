import type { IncomingMessage } from 'node:http';
import { BodyBudget, type Full } from './body-budget.ts';
import { freeChunk } from './free-chunk.ts';
import { AppError } from '../errors.ts';

/** Largest body where nothing larger is stated, and of those that wait for memory instead of being refused, bytes. */
export const smallBody = 64 * 1024;

const mebibyte = 1024 * 1024;
/** An agent can have four of the largest bodies on their way, or about thirty long posts. */
const large = { total: 64 * mebibyte, perOwner: 16 * mebibyte };
/** 256 of the largest for one owner, so that a key whose bodies do not come in can still send others. */
const small = { total: 64 * mebibyte, perOwner: 16 * mebibyte };
/** Bodies of one owner that may wait: their first packets are in memory already. */
const mostQueued = 512;
/** Memory that is taken first for a body that comes in pieces, bytes; then twice as much each time. */
const firstPiece = 4 * 1024;
const nothing = Buffer.alloc(0);

/** Whose memory a body takes, and how large it may be. */
export type BodyTerms = {
  /** Agent id or client address. */
  readonly owner: string;
  /** Bytes. */
  readonly limit: number;
  /** The refusal of a larger one. */
  readonly tooLarge: AppError;
};

/** A body that was read, and what gives its memory back once nothing made from it is needed. */
type Read = { readonly body: Buffer; readonly release: () => void };

declare module 'node:http' {
  interface IncomingMessage {
    /** Tells a client to send its body that waits for that (`Expect: 100-continue`). */
    tellToGoOn?: () => void;
  }
}

/**
 * The function that reads bodies, all of a process from one budget: however many a client begins to send, they take
 * little memory, and none before it is sent. Those up to {@link smallBody} wait for their turn; of larger ones, which
 * have a budget apart, those for which there is no room are refused before they are read. Calls back with `too_large`, `unavailable`, or an error
 * with `statusCode` 400 for a body that ended early.
 */
export function createBodyReader() {
  const budgets = { large: new BodyBudget(large), small: new BodyBudget(small) };

  return function read(
    request: IncomingMessage,
    terms: BodyTerms,
    done: (error: Error | null, read?: Read) => void,
  ): void {
    const { owner, limit, tooLarge } = terms;
    const stated = lengthOf(request);
    if (request.destroyed) return done(cutShort());
    if (stated !== null && stated > limit) return done(tooLarge);
    const first = stated ?? Math.min(smallBody, limit);
    const budget = first > smallBody ? budgets.large : budgets.small;
    const full = budget.admit(owner, first);
    if (!full) return collect();
    if (budget === budgets.large) return done(tooMuch(full));
    if (budget.queued(owner) >= mostQueued) return done(tooMuch('share'));
    const leave = () => {
      stopWaiting();
      done(cutShort());
    };
    const stopWaiting = budget.wait(owner, first, () => {
      request.off('close', leave);
      collect();
    });
    request.once('close', leave);
    return undefined;

    function collect(): void {
      request.tellToGoOn?.();
      let reserved = { budget, admitted: first, taken: 0 };
      let pieces: Buffer = nothing;
      let received = 0;

      request.on('data', add).once('end', end).once('error', end).once('close', end);

      function add(chunk: Buffer): void {
        const length = received + chunk.length;
        if (length > limit) return finish(tooLarge);
        const isWhole = received === 0 && length === stated;
        if (length > pieces.length) {
          const capacity = capacityFor(length);
          const none = reserve(capacity);
          if (none) return finish(tooMuch(none));
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

      function reserve(capacity: number): Full | null {
        if (capacity <= reserved.admitted) {
          if (!reserved.budget.take(capacity - reserved.taken)) return 'total';
          reserved.taken = capacity;
          return null;
        }
        // One of unknown length turned out to be large, or larger: what it has stays taken until it is copied.
        const none = budgets.large.admit(owner, capacity);
        if (none) return none;
        budgets.large.take(capacity);
        giveBack();
        reserved = { budget: budgets.large, admitted: capacity, taken: capacity };
        return null;
      }

      function end(error?: Error): void {
        finish(request.readableEnded && !error ? null : cutShort());
      }

      function finish(error: Error | null): void {
        request.off('data', add).off('end', end).off('error', end).off('close', end);
        if (error) {
          giveBack();
          return done(error);
        }
        const body = pieces.subarray(0, received);
        // Else it would live as long as what gives its memory back.
        pieces = nothing;
        if (reserved.budget === budgets.large) return done(null, { body, release: giveBack });
        giveBack();
        return done(null, { body, release: () => undefined });
      }

      function giveBack(): void {
        reserved.budget.giveBack(owner, reserved.admitted, reserved.taken);
      }
    }
  };
}

/** The length that a body is said to have, bytes; null where it is sent in chunks. */
function lengthOf({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null;
}

function enlarged(pieces: Buffer, used: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(capacity);
  pieces.copy(larger, 0, 0, used);
  freeChunk(pieces);
  return larger;
}

function cutShort(): Error {
  return Object.assign(new Error('the connection was closed before the end of the body'), {
    statusCode: 400,
  });
}

function tooMuch(full: Full): AppError {
  const what =
    full === 'share' ? 'Too much of this key or address is' : 'As much as this service has room for is';
  return new AppError('unavailable', `${what} being received or worked on at once.`, {
    retryAfter: 1,
    uncounted: true,
    hint:
      full === 'share'
        ? 'Send fewer of them at once, and repeat this call when another has been answered.'
        : 'Repeat this call in a moment.',
  });
}
