import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../config/config.ts';
import { AppError } from '../errors.ts';
import { connectionsOf, responseOn } from '../platform/arrivals.ts';
import { createSlices } from '../platform/slices.ts';
import { newRequestId } from '../rules/secrets.ts';
import { problemBody } from './problem.ts';
import { tinyChunks } from './parser.ts';
import { readOn } from './read-body.ts';

/** Milliseconds between checks for stalled clients, and without progress until one counts as stalled. */
const stallCheckInterval = 2_000;
const stallTimeout = 4_000;
/** Milliseconds for the answer to a request that could not be read. */
const brokenTimeout = 2_000;

/** Cuts off clients that stop reading. Only connections with unsent data are timed, since a timer each is costly. */
export function cutOffStalled(server: Server): void {
  const sockets = connectionsOf(server);
  const timer = setInterval(() => {
    for (const socket of sockets)
      if (socket.writableLength > 0 && socket.timeout !== stallTimeout) socket.setTimeout(stallTimeout);
  }, stallCheckInterval).unref();
  server.once('close', () => clearInterval(timer));
  server.on('timeout', (socket: Socket) => {
    // One that waits for its answer is neither idle nor stalled.
    const isIdle = socket.timeout !== stallTimeout;
    if (isIdle || socket.writableLength > 0) socket.destroy();
  });
}

/** Aborted when the client closes its connection before it has its answer: nothing more needs to be done for it. */
export function clientSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = () => controller.abort(clientLeft());
  if (response.destroyed) leave();
  else
    response.once('close', () => {
      if (!response.writableFinished) leave();
    });
  return controller.signal;
}

/** What ends a call whose client has closed its connection; nobody reads it. */
export function clientLeft(): AppError {
  return new AppError('unavailable', 'The connection was closed before the call was answered.');
}

type Status = readonly [code: number, title: string];

/** Bytes of an address and its headers together. */
export const mostHeaders = 32 * 1024;

const tooManyHeaders: Status = [431, 'Request Header Fields Too Large'];
const otherVersion: Status = [505, 'HTTP Version Not Supported'];
const unknownMethod: Status = [501, 'Not implemented'];
const statuses: ReadonlyMap<string | undefined, Status> = new Map([
  ['HPE_HEADER_OVERFLOW', tooManyHeaders],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, 'Request Timeout']],
  ['HPE_INVALID_VERSION', otherVersion],
  // The first line of HTTP/2.
  ['HPE_PAUSED_H2_UPGRADE', otherVersion],
]);

/** So much of a request is looked at to tell a method from what is not HTTP. */
const longestLine = 200;

type Unreadable = Error & { readonly code?: string; readonly rawPacket?: unknown };

/** Whether a request is well-formed but for a method that Node does not know; TLS, say, begins like one too. */
function hasUnknownMethod({ code, rawPacket }: Unreadable): boolean {
  const line = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', 0, longestLine) : '';
  return code === 'HPE_INVALID_METHOD' && /^[\w!#$%&'*+.^`|~-]+ [^\s]+(?: HTTP\/1\.[01]\r?$|$)/m.test(line);
}

/** Whether an address has what must be escaped in one, as some clients send it. */
function hasUnescapedAddress({ code, rawPacket }: Unreadable): boolean {
  if (code === 'HPE_INVALID_URL') return true;
  const line = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', 0, longestLine) : '';
  return (
    code === 'HPE_INVALID_CONSTANT' &&
    /^[A-Z]+ \/\S* .*(?: HTTP\/1\.[01]\r?$|$)/.test(line.split('\n')[0] ?? '')
  );
}

/**
 * What answers requests that Node could not read, after which the connection ends. Of those that are closed for being
 * idle thousands may be due at once.
 */
export function createBrokenAnswers(config: Config): (error: Unreadable, socket: Socket) => void {
  const inSlices = createSlices();
  return (error, socket) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') answerBroken(config, error, socket);
    else inSlices(() => answerBroken(config, error, socket));
  };
}

function answerBroken({ site }: Config, error: Unreadable, socket: Socket): void {
  // Who has sent nothing asks for nothing. A second answer would be taken for that to another request.
  if (!socket.writable || socket.bytesRead === 0 || readOn.has(socket) || hasOtherAnswer(socket)) {
    socket.destroy();
    return;
  }
  const problem = hasUnknownMethod(error) ? unknownMethod : statuses.get(error.code);
  const [status, title] = problem ?? ([400, 'Bad Request'] as const);
  const why =
    error.code === tinyChunks
      ? tooTiny()
      : hasUnescapedAddress(error)
        ? unescaped()
        : errorOf([status, title]);
  const { headers, body } = problemOf(site.baseUrl, [status, title], why);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${body}`,
    // One that keeps its side open would hold it for ever.
    () => socket.destroy(),
  );
  setTimeout(() => socket.destroy(), brokenTimeout).unref();
}

/** Whether an answer is on its way, or due to a request that could be read, before the one that could not. */
function hasOtherAnswer(socket: Socket): boolean {
  const response = responseOn(socket);
  return response !== null && (response.headersSent || response.req.complete);
}

/** The answer to a request of a version of HTTP that Node can read, but that is neither 1.0 nor 1.1. */
export function answerOtherVersion({ site }: Config, response: ServerResponse): void {
  const { headers, body } = problemOf(site.baseUrl, otherVersion, errorOf(otherVersion));
  response.writeHead(otherVersion[0], headers).end(body);
}

/** The refusal of what is not HTTP as it should be. */
export function unreadable(detail: string): AppError {
  return new AppError('invalid_input', detail, {
    errors: [{ field: 'request', message: 'is not complete and well-formed HTTP/1.1' }],
    hint: 'Check its method, its headers and the length of its body, and send it without pauses.',
  });
}

function problemOf(baseUrl: string, [status, title]: Status, error: AppError) {
  const requestId = newRequestId();
  const problem = problemBody(baseUrl, error, requestId);
  const body = JSON.stringify({ ...problem, title, status });
  const headers = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  };
  return { headers, body };
}

function unescaped(): AppError {
  return new AppError(
    'invalid_input',
    'The address of the request has a character that must be escaped in one.',
    {
      errors: [{ field: 'url', message: 'has a space, a control character or a letter beyond ASCII' }],
      hint: "Percent-encode it, as in /api/search?q=caf%C3%A9; with curl: -G --data-urlencode 'q=café'.",
    },
  );
}

function tooTiny(): AppError {
  return new AppError('invalid_input', 'The body came in hundreds of chunks of a few bytes each.', {
    errors: [{ field: 'request', message: 'has its body in chunks of less than 32 bytes' }],
    hint: 'Send it whole, with Content-Length, or gather what you send into chunks of 1 KiB and more.',
  });
}

function errorOf([status, title]: Status): AppError {
  if (status === unknownMethod[0])
    return new AppError('not_implemented', 'This method is not one that the service knows.');
  if (status === tooManyHeaders[0])
    return new AppError('invalid_input', `A request may have ${mostHeaders} bytes before its body.`, {
      errors: [{ field: 'request', message: 'has a longer address or more headers' }],
      hint: 'Send long texts in the body of a call, not in its query.',
    });
  return unreadable(`The request could not be read (${title}).`);
}
