import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Handle } from './turns.ts';

/** Calls without a body of one address that are worked on, or whose answers are being sent. */
const mostAtOnce = 64;
/** Those that wait behind them; more are refused. */
const mostWaiting = 512;

declare module 'node:http' {
  interface IncomingMessage {
    /** More of its address is under way than may wait: to be refused. */
    isTooMuch?: true;
  }
}

/**
 * Works on so many calls of an address at once, and lets others wait, so that a client that does not read its answers
 * takes little memory. Calls with a body have a budget of their own (`read-body.ts`).
 */
export function limitInFlight(
  handle: Handle,
  hasBody: (request: IncomingMessage) => boolean,
  addressOf: (request: IncomingMessage) => string,
): Handle {
  const addresses = new Map<string, Calls>();
  return (request, response) => {
    if (hasBody(request)) return handle(request, response);
    const address = addressOf(request);
    let calls = addresses.get(address);
    if (calls === undefined) addresses.set(address, (calls = { atOnce: 0, waiting: new Map() }));
    if (calls.atOnce >= mostAtOnce && calls.waiting.size >= mostWaiting) {
      request.isTooMuch = true;
      return handle(request, response);
    }
    const own = calls;
    response.once('close', () => {
      // It had not begun.
      if (own.waiting.delete(response)) return;
      own.atOnce--;
      const [next] = own.waiting.values();
      if (next) begin(next);
      else if (own.atOnce === 0) addresses.delete(address);
    });
    const begin = (call: Call) => {
      own.waiting.delete(call[1]);
      own.atOnce++;
      handle(...call);
    };
    if (own.atOnce < mostAtOnce) begin([request, response]);
    else own.waiting.set(response, [request, response]);
  };
}

type Call = readonly [request: IncomingMessage, response: ServerResponse];
type Calls = { atOnce: number; readonly waiting: Map<ServerResponse, Call> };
