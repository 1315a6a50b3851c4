import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { responseOn } from '../platform/arrivals.ts';
import { stopParsing } from './parser.ts';
import { Amounts, BodyBudget, dropBody, smallBody, tooMuch, type Full } from './read-body.ts';
import type { Handle } from './turns.ts';

/** Calls without a body of one address that are worked on, or whose answers are being sent. */
const mostAtOnce = 64;
/** Those that wait behind them; more are refused. */
const mostWaiting = 512;

/** Requests of one connection that are not answered yet. Who sends more at once is no usual client. */
const mostUnanswered = 16;

const mebibyte = 1024 * 1024;
/** Bytes in memory of bodies whose calls wait for their turn: at most a packet of each, which is as long as a small one. */
const mostHeld = {
  small: { ofOwner: 24 * mebibyte, ofAddress: 24 * mebibyte, ofAll: 40 * mebibyte },
  large: { ofOwner: 4 * mebibyte, ofAddress: 4 * mebibyte, ofAll: 16 * mebibyte },
};

/** Shorter answers are not counted: as many as may be worked on at once take little. */
const leastCounted = 16 * 1024;
/** Bytes in memory of answers that are being sent: four of the largest pages to an owner. */
const mostSent = { ofOwner: 16 * mebibyte, ofAddress: 32 * mebibyte, ofAll: 64 * mebibyte };
/** Bytes that a part of an answer may have, of one that is sent in parts. */
const largestPart = mebibyte;

declare module 'fastify' {
  interface FastifyInstance {
    /** For what is sent in parts. */
    answerBudget: AnswerBudget;
  }
  interface FastifyRequest {
    /** Whether a call that could have stored something has not: its answer may be refused, as those of reads. */
    storedNothing: boolean;
  }
}

declare module 'node:http' {
  interface IncomingMessage {
    /** To be refused, since more than may wait is under way: of its address, or of all. */
    isTooMuchOf?: Full;
  }
}

type Call = readonly [request: IncomingMessage, response: ServerResponse];
type Calls = { atOnce: number; readonly waiting: Map<ServerResponse, Call> };

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
      request.isTooMuchOf = 'share';
      return handle(request, response);
    }
    const own = calls;
    // It comes once, and `once` costs more.
    response.on('close', () => {
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

/**
 * Bounds what bodies take while their calls wait for their turn: a thousand clients that begin to send at the same time
 * would have 64 MB in memory. Of a call beyond that the body is dropped, and the call is to be refused when it is its turn.
 * What it returns takes such a call, and returns what gives its share back.
 */
export function limitHeld(
  hasBody: (request: IncomingMessage) => boolean,
  addressOf: (request: IncomingMessage) => string,
): (request: IncomingMessage) => () => void {
  const budgets = { small: new BodyBudget(mostHeld.small), large: new BodyBudget(mostHeld.large) };
  /** Takes a call's share, and returns what gives it back. */
  function take(request: IncomingMessage): () => void {
    // In chunks: it may be as long.
    const stated = Number(request.headers['content-length'] ?? Infinity);
    const budget = stated > smallBody ? budgets.large : budgets.small;
    const bytes = Math.min(stated, smallBody);
    const address = addressOf(request);
    const whose = { owner: address, address };
    const full = budget.admit(whose, bytes);
    if (full === null) {
      budget.take(whose, bytes);
      return () => budget.giveBack({ ...whose, admitted: bytes, taken: bytes });
    }
    request.isTooMuchOf = full;
    dropBody(request);
    return () => {};
  }

  return (request) => {
    if (!hasBody(request)) return () => {};
    if (!request.tellToGoOn) return take(request);
    // A client that waits for 100 Continue sends none of it; one that only says so is counted when it does.
    let letGo = () => {};
    const forget = onFirstChunk(request, () => (letGo = take(request)));
    return () => {
      forget();
      letGo();
    };
  };
}

/** Calls `begin` before a body that nobody reads yet gets its first chunk. Returns what ends that. */
function onFirstChunk(request: IncomingMessage, begin: () => void): () => void {
  // No listener: it would begin to read.
  const forget = () => Reflect.deleteProperty(request, 'push');
  request.push = (chunk: unknown, encoding?: BufferEncoding) => {
    forget();
    if (chunk !== null) begin();
    return request.push(chunk, encoding);
  };
  return forget;
}

/** The budget of answers that are being sent. */
export type AnswerBudget = ReturnType<typeof limitAnswers>;

/**
 * Bounds what answers take in memory until their clients have read them, or are cut off. It is counted whole, since what
 * the system has not taken yet keeps all of it; but once of each share, however many are sent the same bytes, as those of
 * a cached page. An owner, or an address, to which nothing is being sent is never refused for its own share, however large
 * an answer is. `addressOf` names the client.
 */
export function limitAnswers(addressOf: (request: IncomingMessage) => string) {
  /** By whose share it is. */
  const bytes = new Amounts();
  /** How many are sent a body, by whose share it counts in. */
  const sent = new WeakMap<Buffer, Amounts>();
  /** Answers in parts that wait for room. */
  const waiting = new Set<() => void>();

  function add(name: string, length: number): void {
    bytes.add(name, length);
    if (length > 0) return;
    for (const lookAgain of waiting) lookAgain();
    waiting.clear();
  }

  function fullOf(shares: ReturnType<typeof sharesOf>, length: number): Full | null {
    const full = shares.find(({ name, most }) => {
      const held = bytes.of(name);
      return held > 0 && held + length > most;
    });
    if (!full) return null;
    return full === all ? 'total' : 'share';
  }

  function sendsOf(body: Buffer | string): Amounts {
    const known = typeof body === 'string' ? undefined : sent.get(body);
    if (known) return known;
    const sends = new Amounts();
    if (typeof body !== 'string') sent.set(body, sends);
    return sends;
  }

  function sharesOf(request: IncomingMessage, owner: string) {
    const address = addressOf(request);
    return [
      { name: `owner ${owner || address}`, most: mostSent.ofOwner },
      { name: `address ${address}`, most: mostSent.ofAddress },
      all,
    ];
  }

  return {
    /** What has no room for an answer; null: it may be sent. `owner` is the agent, or empty for the address. */
    fullFor(request: IncomingMessage, body: Buffer | string, owner = ''): Full | null {
      const length = bytesIn(body);
      // Nobody can have more than all.
      if (length < leastCounted || bytes.of(all.name) + length <= mostSent.ofOwner) return null;
      const sends = sendsOf(body);
      const shares = sharesOf(request, owner).filter(({ name }) => sends.of(name) === 0);
      return fullOf(shares, length);
    },
    /** Counts an answer that is sent, or is to be sent at once, until its client has it, or has left. */
    hold(request: IncomingMessage, response: ServerResponse, body: Buffer | string, owner = ''): void {
      const length = bytesIn(body);
      if (length < leastCounted || response.destroyed) return;
      const sends = sendsOf(body);
      const names = sharesOf(request, owner).map(({ name }) => name);
      for (const name of names) {
        if (sends.of(name) === 0) bytes.add(name, length);
        sends.add(name, 1);
      }
      response.on('close', () => {
        for (const name of names) {
          sends.add(name, -1);
          if (sends.of(name) === 0) add(name, -length);
        }
      });
    },
    /** Counts the parts of an answer that is sent one part after another; each is read and sent when the last has left. */
    inParts(request: IncomingMessage, response: ServerResponse, owner: string) {
      const shares = sharesOf(request, owner);
      return partsOf(response, {
        isFull: () => fullOf(shares, largestPart) !== null,
        freed: () => new Promise<void>((resolve) => waiting.add(resolve)),
        take: (more) => {
          for (const { name } of shares) add(name, more);
        },
      });
    },
  };
}

type Room = {
  readonly isFull: () => boolean;
  readonly freed: () => Promise<void>;
  readonly take: (more: number) => void;
};

function partsOf(response: ServerResponse, { isFull, freed, take }: Room) {
  let held = 0;
  let goOn = () => {};
  function hold(length: number): void {
    take(length - held);
    held = length;
  }
  response.on('drain', () => goOn());
  response.once('close', () => {
    goOn();
    hold(0);
  });
  return {
    /** Waits for room for the next part, and takes it. False: the client has left. */
    async room(): Promise<boolean> {
      while (!response.destroyed && isFull()) await freed();
      if (!response.destroyed) hold(largestPart);
      return !response.destroyed;
    },
    /** To be called with a part that is sent at once. */
    sending(part: Buffer): void {
      if (!response.destroyed) hold(part.length);
    },
    /** Waits until the system has taken it. */
    async sent(): Promise<void> {
      // A stream may ask for the next before it hands one over.
      await nextTurn();
      if (response.writableNeedDrain) await new Promise<void>((resolve) => (goOn = resolve));
      hold(0);
    },
  };
}

function bytesIn(body: Buffer | string): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length;
}

const all = { name: 'all', most: mostSent.ofAll };

/** Headers of an answer that the refusal in its place must not have. */
const ofAnswer = ['content-encoding', 'content-location', 'etag', 'last-modified'];

/**
 * Refuses answers that have no room in the budget, once they are as they are to be sent: so it is to be called after all
 * that changes them. What tells of a change is sent all the same, and counted: its client would take the refusal for that
 * of the change. Such answers are short, and their number is bounded with the bodies of the calls.
 */
export function refuseAnswers(app: FastifyInstance, answers: AnswerBudget): void {
  app.decorate('answerBudget', answers);
  app.decorateRequest('storedNothing', false);
  app.addHook('onSend', (request, reply, payload, done) => {
    const { method, raw, bodyOwner, storedNothing } = request;
    if (method === 'HEAD' || !(typeof payload === 'string' || Buffer.isBuffer(payload))) return done();
    const mayRefuse = (method === 'GET' || storedNothing) && reply.statusCode < 400;
    const full = mayRefuse ? answers.fullFor(raw, payload, bodyOwner) : null;
    if (full === null) {
      answers.hold(raw, reply.raw, payload, bodyOwner);
      return done();
    }
    for (const name of ofAnswer) reply.removeHeader(name);
    return done(tooMuch(full, 'sent'));
  });
}

/**
 * Handles the requests of a connection one after another, however many arrive together, and gives way to those of
 * others between two. When it closes, what waits is dropped. A connection with more requests than may wait is closed.
 */
export function oneByOne(handle: Handle): Handle {
  const queues = new WeakMap<Socket, Call[]>();

  function afterAnswer(response: ServerResponse, socket: Socket): void {
    response.once('close', () => setImmediate(next, socket));
  }

  function next(socket: Socket): void {
    const queue = queues.get(socket) ?? [];
    const call = socket.destroyed ? undefined : queue.shift();
    if (queue.length === 0 || call === undefined) queues.delete(socket);
    else afterAnswer(call[1], socket);
    if (call) handle(...call);
  }

  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return stopParsing(socket);
    // Node gives a response its connection once those before it are sent.
    if (response.socket !== null) return handle(request, response);
    const queue = queues.get(socket);
    if (queue === undefined) {
      queues.set(socket, [[request, response]]);
      const current = responseOn(socket);
      if (current) afterAnswer(current, socket);
    } else if (queue.length + 1 < mostUnanswered) queue.push([request, response]);
    else {
      queues.delete(socket);
      socket.destroy();
      stopParsing(socket);
    }
  };
}
