import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { stopParsing } from './parser.ts';

/** Most requests of one connection that are not answered yet. Who sends more at once is no usual client. */
const mostUnanswered = 16;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;
type Call = readonly [request: IncomingMessage, response: ServerResponse];

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
      // Node keeps it there.
      afterAnswer(Reflect.get(socket, '_httpMessage') as ServerResponse, socket);
    } else if (queue.length + 1 < mostUnanswered) queue.push([request, response]);
    else {
      queues.delete(socket);
      socket.destroy();
      stopParsing(socket);
    }
  };
}
