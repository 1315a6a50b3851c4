import type { FastifyRequest } from 'fastify';
import type { PageQuery } from '../services/lists/paging.ts';

type Sent = { readonly limit?: number; readonly offset?: number; readonly cursor?: string };

/** The page that a query asks for. A cursor says where to begin, so it replaces an offset. */
export function pageQuery({ limit, offset, cursor }: Sent, defaultLimit: number): PageQuery {
  return {
    limit: limit ?? defaultLimit,
    offset: cursor === undefined ? (offset ?? 0) : 0,
    cursor: cursor ?? null,
  };
}

/** `Link: …; rel="next"` for a list that continues: the same query with the next cursor. */
export function nextLink(
  request: FastifyRequest,
  baseUrl: string,
  nextCursor: string | null,
): Record<string, string> {
  if (nextCursor === null) return {};
  // A path that begins with two slashes would be read as a host.
  const url = new URL(request.originalUrl.replace(/^\/+/, '/'), baseUrl);
  url.searchParams.delete('offset');
  url.searchParams.set('cursor', nextCursor);
  return { link: `<${baseUrl}${url.pathname}${url.search}>; rel="next"` };
}
