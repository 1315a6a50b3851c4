import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { freeChunk } from './free-chunk.ts';

/** Bytes that a client may still send after its answer. How long it may is up to the time that any request has. */
const mostUnread = 64 * 1024 * 1024;

/** Connections, and the request whose body is still read. */
const readOn = new WeakMap<Socket, IncomingMessage>();

/** Whether a connection's request is answered, and only what is left of its body is still read. */
export function isReadOn(socket: Socket): boolean {
  return readOn.has(socket);
}

/**
 * Lets a client that sends its whole body before it reads see an answer that was given earlier: what it still sends is
 * read and dropped. Where the connection is to be closed, Node would do so at once, and the system then throws away
 * what the client has not read. To be called with a request that has a body, before it is handled.
 */
export function readOnAfterAnswer(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let isLast = false;
  // Before Node's own listener, which closes.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    readOn.set(socket, request);
    socket.destroySoon = () => {
      isLast = true;
      // Ours is said, and the client can tell.
      socket.end();
    };
    const most = socket.bytesRead + mostUnread;
    request.on('data', (chunk: Buffer) => {
      freeChunk(chunk);
      if (socket.bytesRead > most) socket.destroy();
    });
    request.once('end', () => {
      // Unless the next request came with the end of this one, and was answered.
      if (readOn.get(socket) === request) {
        readOn.delete(socket);
        Reflect.deleteProperty(socket, 'destroySoon');
      }
      if (isLast) Socket.prototype.destroySoon.call(socket);
    });
    // Else Node takes what nobody has begun to read away, listeners and all.
    request.read(0);
    request.resume();
  });
}
