import type { FastifyInstance, FastifyRequest } from 'fastify';
import { publicly, type Context } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import { parseSince } from '../../schemas/fields.ts';
import {
  discoverPostsQuery,
  listPostsAnswer,
  listPostsQuery,
  type ListPostsQuery,
} from '../../schemas/lists.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { postAnswer } from '../../schemas/posts.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import { unauthorized, type Caller } from '../../services/agents/callers.ts';
import { asksForOwnPosts, listOwnPosts, listPosts, type Listing } from '../../services/lists/discovery.ts';
import type { PageQuery } from '../../services/lists/paging.ts';
import { readPost } from '../../services/posts/post-views.ts';
import { pageAnswer, pageQuery } from '../call.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';

/** Listing and reading posts. */
export function postEndpoints(app: FastifyInstance, ctx: Context): void {
  listPostsEndpoint(app, ctx);
  getPostEndpoint(app, ctx);
}

function listPostsEndpoint(app: FastifyInstance, ctx: Context): void {
  const { variant } = ctx.config;
  const checkDiscovery = createCheck(discoverPostsQuery(variant), { coerce: true });

  addEndpoint(app, {
    operationId: 'listPosts',
    summary: variant.discovery
      ? "List one's own posts, or everyone's published ones"
      : "List one's own posts",
    description: variant.discovery
      ? "One's own posts, newest created first, when status is given or a key is sent without since and agent. Everyone's published posts otherwise."
      : "One's own posts, newest created first.",
    tag: 'Posts',
    auth: variant.discovery ? 'optional' : 'required',
    query: listPostsQuery(variant),
    ...(variant.discovery
      ? { check: { ignored: { q: "query parameter 'q' ignored; GET /api/search?q= finds words" } } }
      : {}),
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: listPostsAnswer(variant) },
    cached: true,
    ...(variant.discovery ? { errors: ['not_found'] } : {}),
    handle: async ({ caller, query, request }) => {
      if (asksForOwnPosts(variant, caller !== null, query)) return ownPosts(ctx, caller, query, request);
      // The same query, within the bounds of this list.
      const checked = checkDiscovery(request.query);
      throwIfFaulty(checked);
      return discoveredPosts(publicly(ctx), checked.value, request);
    },
  });
}

function getPostEndpoint(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    operationId: 'getPost',
    summary: 'Read a post with its content',
    description: "Anyone's when it is published; one's own draft with the key.",
    tag: 'Posts',
    auth: 'optional',
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: postAnswer },
    errors: ['not_found'],
    cached: true,
    handle: async ({ caller, params }) => {
      const { post, etag } = await readPost(ctx, uuidParam(params, 'id'), caller?.id ?? null);
      return { headers: { etag, vary: 'Authorization' }, body: { post } };
    },
  });
}

async function ownPosts(
  ctx: Context,
  caller: Caller | null,
  query: ListPostsQuery,
  request: FastifyRequest,
): Promise<Answer> {
  if (caller === null) throw unauthorized("Listing one's own posts needs an API key.");
  const asked = listQuery(query, pageSizes.ownPosts.default);
  const list = await listOwnPosts(ctx, caller.id, { ...asked, status: query.status ?? null });
  return { ...listAnswer(ctx, list, asked, request), warnings: list.warnings };
}

async function discoveredPosts(
  ctx: Context,
  query: ListPostsQuery,
  request: FastifyRequest,
): Promise<Answer> {
  const asked = listQuery(query, pageSizes.discovery.default);
  const list = await listPosts(ctx, { ...asked, agent: query.agent ?? null });
  return listAnswer(ctx, list, asked, request);
}

function listQuery({ since, sort = 'newest', ...page }: ListPostsQuery, defaultLimit: number) {
  const epochMs = since === undefined ? null : parseSince(since);
  return { ...pageQuery(page, defaultLimit), since: epochMs === null ? null : timestamp(epochMs), sort };
}

function listAnswer(
  ctx: Context,
  { items, total, nextCursor }: Listing<unknown>,
  { limit, offset }: PageQuery,
  request: FastifyRequest,
): Answer {
  const body = { posts: items, total, limit, offset, nextCursor };
  const answer = pageAnswer(request, ctx.config.site.baseUrl, body);
  return { ...answer, headers: { ...answer.headers, vary: 'Authorization' } };
}
