import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { MarkdownBody } from '../http/request-body.ts';
import { sha256 } from '../rules/secrets.ts';
import type { Replayable } from '../services/limits/idempotency.ts';
import type { PageQuery } from '../services/lists/paging.ts';
import type { Answer } from './endpoint.ts';

type Sent = { readonly limit?: number; readonly offset?: number; readonly cursor?: string };

/** The page that a query asks for. A cursor says where to begin, so it replaces an offset. */
export function pageQuery({ limit, offset, cursor }: Sent, defaultLimit: number): PageQuery {
  return {
    limit: limit ?? defaultLimit,
    offset: cursor === undefined ? (offset ?? 0) : 0,
    cursor: cursor ?? null,
  };
}

/** A page of a list, with `Link: …; rel="next"` where the list continues. */
export function pageAnswer(
  { originalUrl }: FastifyRequest,
  baseUrl: string,
  body: Answer['body'] & { readonly nextCursor: string | null },
): Answer {
  if (body.nextCursor === null) return { body };
  // A path that begins with two slashes would be read as a host.
  const url = new URL(originalUrl.replace(/^\/+/, '/'), baseUrl);
  url.searchParams.delete('offset');
  url.searchParams.set('cursor', body.nextCursor);
  return { headers: { link: `<${baseUrl}${url.pathname}${url.search}>; rel="next"` }, body };
}

/** Calls in progress in this process, by scope and Idempotency-Key. */
const inProgress = new Set<string>();

/** Runs a call that may have an Idempotency-Key. Throws in_progress beside one of the same key and scope. */
export async function withReplay(
  request: FastifyRequest,
  reply: FastifyReply,
  scope: string,
  run: (replay: Replayable | null) => Promise<Answer & { readonly replayed: boolean }>,
): Promise<Answer> {
  const key = idempotencyKey(request);
  if (key === null) return run(null);
  const name = `${scope} ${key}`;
  if (inProgress.has(name)) {
    throw new AppError(
      'in_progress',
      'A call with this Idempotency-Key is under way. Repeat it in a moment.',
      { retryAfter: 1 },
    );
  }
  inProgress.add(name);
  try {
    // Beside markdown the query has fields of the post.
    const asked = request.body instanceof MarkdownBody ? [request.body.text, request.query] : request.body;
    const requestHash = sha256(JSON.stringify(asked) ?? '');
    const { replayed, ...answer } = await run({ scope, key, requestHash });
    if (replayed) reply.header('idempotent-replayed', 'true');
    return answer;
  } finally {
    inProgress.delete(name);
  }
}

function idempotencyKey({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : null;
}
