import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/config.ts';
import type { Log, LogFields } from '../platform/log.ts';
import { countRequest } from '../platform/measured.ts';
import { newRequestId } from '../rules/secrets.ts';
import { askedMethodOf } from './methods.ts';
import { blogRoute } from './target.ts';
import type { Handle } from './turns.ts';

declare module 'node:http' {
  interface IncomingMessage {
    /** Made when its head was read; of one that is answered from the page cache only that knows it. */
    requestId?: string;
    /** The name of the route that it has; none before it is routed. */
    route?: string;
    /** The agent whose key it has. */
    agentId?: string;
  }
}

/** As nginx notes a client that left before its answer began. */
const clientLeft = 499;
/** Seconds from which on a request is slow. */
const slowFrom = 1;

/** Which requests have a line in the log: those that failed here, those that were also slow, all. */
export type LoggedRequests = Config['logRequests'];

/**
 * Answers from the cache where `answerCached` does, else by `handle`; measures both, and logs what `logged` names. What
 * is cached says which route it was made by.
 */
export function observed(
  answerCached: (request: IncomingMessage, response: ServerResponse, requestId: string) => string | null,
  handle: Handle,
  { log, logged }: { readonly log: Log; readonly logged: LoggedRequests },
): Handle {
  const isOff = logged === 'off';

  function note(route: string, request: IncomingMessage, response: ServerResponse, before: Before): void {
    const status = response.headersSent ? response.statusCode : clientLeft;
    const seconds = (performance.now() - before.began) / 1000;
    const method = askedMethodOf(request);
    countRequest(route, method, status, seconds);
    if (isOff || !isLogged(logged, status, seconds)) return;
    const { agentId, socket } = request;
    const { requestId } = before;
    const ms = Math.round(seconds * 10_000) / 10;
    const bytes = before.bytes === null ? undefined : socket.bytesWritten - before.bytes;
    log.info({ route, method, status, ms, bytes, requestId, agentId, ...traceOf(request) }, 'request');
  }

  return (request, response) => {
    const { socket } = request;
    const requestId = newRequestId();
    const bytes = logged === 'all' ? socket.bytesWritten : null;
    const before: Before = { began: performance.now(), requestId, bytes };
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const route = isRead ? answerCached(request, response, requestId) : null;
    if (route !== null) return note(route, request, response, before);
    request.requestId = requestId;
    if (!isOff) before.bytes ??= socket.bytesWritten;
    response.on('close', () => note(request.route ?? 'none', request, response, before));
    handle(request, response);
  };
}

/**
 * When a request began, its id, and what its connection had sent by then; null where that is not asked, since it takes
 * a hundredth of what a cached page does.
 */
type Before = { readonly began: number; readonly requestId: string; bytes: number | null };

/** Whether a request has a line in the log. */
export function isLogged(logged: LoggedRequests, status: number, seconds: number): boolean {
  if (logged === 'all') return true;
  return logged !== 'off' && (status >= 500 || (logged === 'slow' && seconds >= slowFrom));
}

/** The name of a route, of which there are few: its pattern, `blog` for every address of a blog, `none` for no route. */
export function routeName(pattern: string | undefined): string {
  return pattern === blogRoute ? 'blog' : (pattern ?? 'none');
}

/** W3C Trace Context: version, trace, parent and flags; what follows is of later versions. */
const traceParent =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?<traceId>(?!0{32})[0-9a-f]{32})-(?<parentId>(?!0{16})[0-9a-f]{16})-[0-9a-f]{2}(?<rest>-.*)?$/;

/** The trace that a request says it is part of, for the log; nothing of a header that is not valid. */
export function traceOf({ headers }: Pick<IncomingMessage, 'headers'>): LogFields {
  const { traceparent, authorization = '' } = headers;
  const { groups } = (typeof traceparent === 'string' ? traceParent.exec(traceparent) : null) ?? {};
  if (groups === undefined || (groups['version'] === '00' && groups['rest'] !== undefined)) return {};
  const { traceId = '', parentId } = groups;
  // A key without its hyphens has the same form.
  if (authorization.replaceAll('-', '').toLowerCase().includes(traceId)) return {};
  return { traceId, parentId };
}
