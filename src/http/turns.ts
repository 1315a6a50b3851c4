import type { IncomingMessage, ServerResponse } from 'node:http';
import { FairQueue } from '../platform/fair-queue.ts';
import { slice } from '../platform/slices.ts';
import type { Arrivals } from '../platform/arrivals.ts';

/** Turns begun one after the other at most: each in a callback of its own, so that promises settle between two. */
const mostAtOnce = 32;

/** What handles a request. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Whose turn it is: addresses share the time, and the keys at an address take turns. */
export type Client = { readonly address: string; readonly key: string };

type Begin = () => void;

/** Turns of a process's clients. */
export type Turns = ReturnType<typeof createTurns>;

declare module 'node:http' {
  interface IncomingMessage {
    /** The slice of time in which its handling began. */
    begunIn?: number;
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** For work that follows an await within a handler. */
    turns: Turns;
  }
}

/** After this long half of the time that an address has used is forgotten, ms. */
const halfLife = 1_000;

type Address = {
  /** Its calls, by key. */
  readonly calls: FairQueue<Begin>;
  /** Of the event loop's time, ms, as far as it is not forgotten. */
  used: number;
};

/** Calls that wait, and the time that addresses have used: the one that has used least is next. */
function createShares() {
  /** By address: those that wait, or have used some time. */
  const addresses = new Map<string, Address>();
  /** The one that was served longest ago comes first. No Set, as in `Amounts`: it becomes empty with each few calls. */
  const waiting: Address[] = [];
  let size = 0;
  let halvedAt = 0;
  let served: Address | null = null;
  let servedAt = 0;

  function forget(): void {
    const now = performance.now();
    if (now - halvedAt < halfLife) return;
    const share = 2 ** ((halvedAt - now) / halfLife);
    halvedAt = now;
    for (const [name, address] of addresses) {
      address.used *= share;
      if (address.calls.size === 0 && address.used < 1) addresses.delete(name);
    }
  }

  return {
    /** How many calls wait. */
    size: (): number => size,
    add({ address: name, key }: Client, begin: Begin): void {
      forget();
      const known = addresses.get(name);
      const address = known ?? { calls: new FairQueue<Begin>(), used: 0 };
      if (!known) addresses.set(name, address);
      address.calls.add(key, begin);
      if (address.calls.size === 1) waiting.push(address);
      size++;
    },
    /** Counts the time since a call was taken, which is to be begun at once, as its address's. */
    settle(): void {
      if (served) served.used += performance.now() - servedAt;
      served = null;
    },
    take(): Begin | undefined {
      for (const address of waiting) if (served === null || address.used < served.used) served = address;
      if (served === null) return undefined;
      servedAt = performance.now();
      waiting.splice(waiting.indexOf(served), 1);
      size--;
      const begin = served.calls.take();
      if (served.calls.size > 0) waiting.push(served);
      return begin;
    },
  };
}

/**
 * Lets clients take turns once more has come in than fits into a slice, however many calls of one of them wait: the
 * address is next whose calls have used least of the event loop's time of late. Below that nothing waits, except for
 * connections that come in.
 */
export function createTurns(
  clientOf: (request: IncomingMessage) => Client,
  { areComing }: Pick<Arrivals, 'areComing'>,
) {
  const shares = createShares();
  let sliceEnd = 0;
  /** Its number. */
  let slices = 0;
  let isRenewing = false;
  let planned = 0;

  /** A new slice begins when this turn of the event loop has read what came in. */
  function renew(): void {
    if (isRenewing) return;
    isRenewing = true;
    setImmediate(() => {
      isRenewing = false;
      beginSlice();
    });
  }

  function beginSlice(): void {
    slices++;
    sliceEnd = performance.now() + slice;
  }

  function plan(): void {
    if (planned > 0) return;
    renew();
    // One more, which tells how long the last has taken.
    planned = Math.min(shares.size(), mostAtOnce) + 1;
    for (let n = 0; n < planned; n++) setImmediate(beginNext);
  }

  function beginNext(): void {
    planned--;
    shares.settle();
    const isTime = planned > 0 && !areComing() && performance.now() < sliceEnd;
    const begin = isTime ? shares.take() : undefined;
    if (shares.size() > 0) plan();
    begin?.();
  }

  function isFree(): boolean {
    if (!isRenewing) {
      beginSlice();
      renew();
    }
    return !areComing() && shares.size() === 0 && performance.now() < sliceEnd;
  }

  function wait(request: IncomingMessage, begin: Begin): void {
    shares.add(clientOf(request), begin);
    plan();
  }

  return {
    /**
     * The same handler, called when it is a request's turn, unless its client has left by then. `hold` is called with
     * each that waits, and returns what is to be called when it waits no more.
     */
    inTurns:
      (handle: Handle, hold: (request: IncomingMessage) => () => void = () => () => {}): Handle =>
      (request, response) => {
        const begin = () => {
          request.begunIn = slices;
          handle(request, response);
        };
        if (isFree()) return begin();
        const letGo = hold(request);
        wait(request, () => {
          letGo();
          if (!request.socket.destroyed) begin();
        });
      },
    /** What resolves when it is the turn of a request again; null: it is, or still is. */
    again(request: IncomingMessage): Promise<void> | null {
      const isStill = request.begunIn === slices && performance.now() < sliceEnd;
      return isStill || isFree() ? null : new Promise((resolve) => wait(request, resolve));
    },
  };
}
