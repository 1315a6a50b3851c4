import type { IncomingMessage } from 'node:http';
import { BodyBudget } from './body-budget.ts';
import { AppError } from './errors.ts';

/** Largest body where nothing larger is stated, and of those that wait for memory instead of being refused, bytes. */
export const smallBody = 64 * 1024;

const mebibyte = 1024 * 1024;
/** An agent can have four of the largest bodies on their way, or about thirty long posts. */
const large = { total: 64 * mebibyte, perOwner: 16 * mebibyte };
/** 256 of the largest, so that a key whose bodies do not come in can still send others. */
const small = { total: 64 * mebibyte, perOwner: 16 * mebibyte };
/** Bodies of one owner that may wait: their first packets are in memory already. */
const mostQueued = 512;
/** Memory that is taken first for a body of unknown length, bytes. */
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
 * little memory. Those up to {@link smallBody} wait for their turn; of larger ones, which have a budget apart, those
 * for which there is no room are refused before they are read. Calls back with `too_large`, `unavailable`, or an error
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
    if (first > smallBody) {
      if (!budgets.large.take(owner, first)) return done(tooMuch());
      return collect(budgets.large, first);
    }
    if (budgets.small.take(owner, first)) return collect(budgets.small, first);
    if (budgets.small.queued(owner) >= mostQueued) return done(tooMuch());
    const leave = () => {
      stopWaiting();
      done(cutShort());
    };
    const stopWaiting = budgets.small.wait(owner, first, () => {
      request.off('close', leave);
      collect(budgets.small, first);
    });
    request.once('close', leave);
    return undefined;

    function collect(budget: BodyBudget, bytes: number): void {
      request.tellToGoOn?.();
      let reserved = { budget, bytes };
      let pieces: Buffer = nothing;
      let received = 0;

      request.on('data', add).once('end', end).once('error', end).once('close', end);

      function add(chunk: Buffer): void {
        const length = received + chunk.length;
        if (length > limit) return finish(tooLarge);
        if (length > reserved.bytes && !reserveMore(length)) return finish(tooMuch());
        if (received === 0 && length === stated) pieces = chunk;
        else {
          if (length > pieces.length) pieces = enlarged(pieces, received, capacityFor(length));
          chunk.copy(pieces, received);
        }
        received = length;
      }

      /** One of unknown length turned out to be large, or larger: what it has so far stays taken until it is copied. */
      function reserveMore(length: number): boolean {
        const wanted = capacityFor(length);
        if (!budgets.large.take(owner, wanted)) return false;
        giveBack();
        reserved = { budget: budgets.large, bytes: wanted };
        return true;
      }

      /** Many small chunks are copied seldom, and none is kept: each would take more memory than its bytes. */
      function capacityFor(length: number): number {
        if (stated !== null) return stated;
        let capacity = Math.max(firstPiece, pieces.length);
        while (capacity < length) capacity *= 2;
        return Math.min(capacity, limit);
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
        reserved.budget.giveBack(owner, reserved.bytes);
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
  return larger;
}

function cutShort(): Error {
  return Object.assign(new Error('the connection was closed before the end of the body'), {
    statusCode: 400,
  });
}

function tooMuch(): AppError {
  return new AppError(
    'unavailable',
    'Too much of this key or address is being received or worked on at once.',
    {
      retryAfter: 1,
      uncounted: true,
      hint: 'Send fewer of them at once, and repeat this call when another has been answered.',
    },
  );
}
