import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from '../context.ts';
import { createAddressReader, siteNetwork } from '../rules/client-address.ts';
import { FairQueue } from '../platform/fair-queue.ts';
import { slice } from '../platform/slices.ts';
import type { Arrivals } from '../platform/arrivals.ts';
import type { AddressOf } from './parser.ts';

/** Turns begun one after the other at most: each in a callback of its own, so that promises settle between two. */
const mostAtOnce = 32;

/** What handles a request. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Whose turn it is: networks share the time, and the clients of one, each with a key here, take turns. */
export type Client = { readonly network: string; readonly key: string };

type Begin = () => void;

/** The function that tells whose a request is: a site's, whose /64s are clients of their own as their keys are. */
export function clientsOf(
  ctx: Pick<Context, 'config' | 'secretKey'>,
  addressOf: AddressOf,
): (request: IncomingMessage) => Client {
  const siteOf = createAddressReader(ctx, siteNetwork);
  return (request) => ({
    network: siteOf(request),
    key: `${addressOf(request)} ${request.headers.authorization ?? ''}`,
  });
}

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

/** After this long half of the time that a network has used is forgotten, ms. */
const halfLife = 1_000;

type Network = {
  /** Its calls, by client. */
  readonly calls: FairQueue<Begin>;
  /** Of the event loop's time, ms, as far as it is not forgotten. */
  used: number;
};

/** Calls that wait, and the time that networks have used: the one that has used least is next. */
function createShares() {
  /** By name: those that wait, or have used some time. */
  const networks = new Map<string, Network>();
  /** The one that was served longest ago comes first. No Set, as in `Amounts`: it becomes empty with each few calls. */
  const waiting: Network[] = [];
  let size = 0;
  let halvedAt = 0;
  let served: Network | null = null;
  let servedAt = 0;

  function forget(): void {
    const now = performance.now();
    if (now - halvedAt < halfLife) return;
    const share = 2 ** ((halvedAt - now) / halfLife);
    halvedAt = now;
    for (const [name, network] of networks) {
      network.used *= share;
      if (network.calls.size === 0 && network.used < 1) networks.delete(name);
    }
  }

  return {
    /** How many calls wait. */
    size: (): number => size,
    add({ network: name, key }: Client, begin: Begin): void {
      forget();
      const known = networks.get(name);
      const network = known ?? { calls: new FairQueue<Begin>(), used: 0 };
      if (!known) networks.set(name, network);
      network.calls.add(key, begin);
      if (network.calls.size === 1) waiting.push(network);
      size++;
    },
    /** Counts the time since a call was taken, which is to be begun at once, as its network's. */
    settle(): void {
      if (served) served.used += performance.now() - servedAt;
      served = null;
    },
    take(): Begin | undefined {
      for (const network of waiting) if (served === null || network.used < served.used) served = network;
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
 * network is next whose calls have used least of the event loop's time of late. Below that nothing waits, except for
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
