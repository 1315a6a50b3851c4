import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds of calls that are begun before the event loop looks at what else has come in. */
const slice = 4;
/** Calls begun one after the other at most: each in a callback of its own, so that promises settle between two. */
const mostAtOnce = 32;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;
type Call = readonly [request: IncomingMessage, response: ServerResponse];

/**
 * Lets clients take turns once more has come in than fits into a slice: then one call of each is begun, however many
 * of one of them wait. Below that nothing waits. What waits for a connection that has closed is dropped.
 */
export function inTurns(handle: Handle, clientOf: (request: IncomingMessage) => string): Handle {
  /** By client; whose turn is next comes first. */
  const waiting = new Map<string, Call[]>();
  let held = 0;
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
    planned = Math.min(held, mostAtOnce);
    for (let n = 0; n < planned; n++) setImmediate(begin);
  }

  function begin(): void {
    planned--;
    const call = performance.now() < sliceEnd ? next() : undefined;
    if (held > 0) plan();
    if (call && !call[0].socket.destroyed) handle(...call);
  }

  function next(): Call | undefined {
    for (const [client, calls] of waiting) {
      waiting.delete(client);
      if (calls.length > 1) waiting.set(client, calls);
      held--;
      return calls.shift();
    }
    return undefined;
  }

  return (request, response) => {
    if (!isRenewing) {
      sliceEnd = performance.now() + slice;
      renew();
    }
    if (held === 0 && performance.now() < sliceEnd) return handle(request, response);
    const client = clientOf(request);
    const calls = waiting.get(client);
    if (calls) calls.push([request, response]);
    else waiting.set(client, [[request, response]]);
    held++;
    plan();
  };
}
