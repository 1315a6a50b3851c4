import type { IncomingMessage, ServerResponse } from 'node:http';
import { FairQueue } from '../platform/fair-queue.ts';

/** Milliseconds of work that is begun before the event loop looks at what else has come in. */
const slice = 4;
/** Turns begun one after the other at most: each in a callback of its own, so that promises settle between two. */
const mostAtOnce = 32;

/** What handles a request. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Whose turn it is: addresses take turns, and the keys at an address theirs. */
export type Client = { readonly address: string; readonly key: string };

type Begin = () => void;

/** Turns of a process's clients. */
export type Turns = ReturnType<typeof createTurns>;

declare module 'fastify' {
  interface FastifyInstance {
    /** For work that follows an await within a handler. */
    turns: Turns;
  }
}

/**
 * Lets clients take turns once more has come in than fits into a slice: then one call of each is begun, however many
 * of one of them wait. Below that nothing waits.
 */
export function createTurns(clientOf: (request: IncomingMessage) => Client) {
  /** By address: for each of its calls, the queue of all of its keys. */
  const waiting = new FairQueue<FairQueue<Begin>>();
  const keysOf = new Map<string, FairQueue<Begin>>();
  let sliceEnd = 0;
  let isRenewing = false;
  let planned = 0;

  /** A new slice begins when this turn of the event loop has read what came in. */
  function renew(): void {
    if (isRenewing) return;
    isRenewing = true;
    setImmediate(() => {
      isRenewing = false;
      sliceEnd = performance.now() + slice;
    });
  }

  function plan(): void {
    if (planned > 0) return;
    renew();
    planned = Math.min(waiting.size, mostAtOnce);
    for (let n = 0; n < planned; n++) setImmediate(beginNext);
  }

  function beginNext(): void {
    planned--;
    const begin = performance.now() < sliceEnd ? waiting.take()?.take() : undefined;
    if (waiting.size > 0) plan();
    else keysOf.clear();
    begin?.();
  }

  function isFree(): boolean {
    if (!isRenewing) {
      sliceEnd = performance.now() + slice;
      renew();
    }
    return waiting.size === 0 && performance.now() < sliceEnd;
  }

  function wait(request: IncomingMessage, begin: Begin): void {
    const { address, key } = clientOf(request);
    const keys = keysOf.get(address) ?? new FairQueue();
    keysOf.set(address, keys);
    keys.add(key, begin);
    waiting.add(address, keys);
    plan();
  }

  return {
    /** The same handler, called when it is a request's turn, unless its client has left by then. */
    inTurns:
      (handle: Handle): Handle =>
      (request, response) => {
        if (isFree()) return handle(request, response);
        wait(request, () => {
          if (!request.socket.destroyed) handle(request, response);
        });
      },
    /** What resolves when it is the turn of a request again; null: it is. */
    again: (request: IncomingMessage): Promise<void> | null =>
      isFree() ? null : new Promise((resolve) => wait(request, resolve)),
  };
}
