import type { IncomingMessage, ServerResponse } from 'node:http';
import { countRequest } from '../platform/measured.ts';
import { newRequestId } from '../rules/secrets.ts';
import { askedMethodOf } from './methods.ts';
import { blogRoute } from './target.ts';
import type { Handle } from './turns.ts';

declare module 'node:http' {
  interface IncomingMessage {
    /** Made when its head was read. */
    requestId?: string;
    /** The pattern of the route that it has; none before it is routed. */
    route?: string;
  }
}

/** As nginx notes a client that left before its answer began. */
const clientLeft = 499;

/**
 * Answers from the cache where `answerCached` does, else by `handle`, and measures both. What is cached says which
 * route it was made by.
 */
export function observed(
  answerCached: (request: IncomingMessage, response: ServerResponse, requestId: string) => string | null,
  handle: Handle,
): Handle {
  return (request, response) => {
    const began = performance.now();
    const requestId = newRequestId();
    request.requestId = requestId;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const route = isRead ? answerCached(request, response, requestId) : null;
    if (route !== null) return count(route, request, response, began);
    response.once('close', () => count(request.route ?? 'none', request, response, began));
    handle(request, response);
  };
}

function count(route: string, request: IncomingMessage, response: ServerResponse, began: number): void {
  const status = response.headersSent ? response.statusCode : clientLeft;
  const seconds = (performance.now() - began) / 1000;
  countRequest(route, askedMethodOf(request), status, seconds);
}

/** The name of a route, of which there are few: its pattern, `blog` for every address of a blog, `none` for no route. */
export function routeName(pattern: string | undefined): string {
  return pattern === blogRoute ? 'blog' : (pattern ?? 'none');
}
