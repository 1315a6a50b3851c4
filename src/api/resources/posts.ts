import type { FastifyInstance, FastifyRequest } from 'fastify';
import { publicly, type Context } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import { parseSince } from '../../rules/times.ts';
import { readTag } from '../../schemas/fields.ts';
import {
  discoverPostsQuery,
  listPostsAnswer,
  listPostsQuery,
  myPostsAloneAnswer,
  myPostsAnswer,
  myPostsQuery,
  type ListPostsQuery,
} from '../../schemas/lists.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { lookupAnswer, lookupQuery, postAnswer, lookupFaults } from '../../schemas/posts.ts';
import { throwIfFaulty } from '../../schemas/validate.ts';
import { unauthorized, type Caller } from '../../services/agents/callers.ts';
import {
  asksForOwnPosts,
  listMyPosts,
  listOwnPosts,
  listPosts,
  type Listing,
} from '../../services/lists/discovery.ts';
import type { PageQuery } from '../../services/lists/paging.ts';
import { readPost } from '../../services/posts/post-views.ts';
import { lookupPost, lookupSlug } from '../../services/posts/which-post.ts';
import { pageAnswer, pageQuery } from '../call.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';

/** Listing and reading posts. */
export function postEndpoints(app: FastifyInstance, ctx: Context): void {
  listPostsEndpoint(app, ctx);
  myPostsEndpoint(app, ctx);
  lookupPostEndpoint(app, ctx);
  getPostEndpoint(app, ctx);
}

function listPostsEndpoint(app: FastifyInstance, ctx: Context): void {
  const { variant } = ctx.config;
  addEndpoint(app, {
    operationId: 'listPosts',
    summary: variant.discovery
      ? "List everyone's published posts, or one's own"
      : "List one's own posts, all at once",
    description: variant.discovery ? twoForms : `One's own posts, newest created first. ${better}`,
    tag: 'Posts',
    auth: variant.discovery ? 'optional' : 'required',
    query: listPostsQuery(variant),
    narrower: {
      query: discoverPostsQuery(variant),
      holds: (hasKey, query) => query['status'] === undefined && !asksForOwnPosts(variant, hasKey, query),
    },
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
      return discoveredPosts(publicly(ctx), query, request);
    },
  });
}

const better = 'GET /api/me/posts has them in pages, with the ETag of each.';
const twoForms = `Everyone's published posts, newest first, when no key is sent, or since or agent is: pages of at most 100. Under load a post is listed some seconds after its publishedAt: to follow what is new, begin a minute before the last one that you have, and skip the ids that you know.

One's own posts, newest created first, when status is given, or a key is sent without since and agent: up to 1,000 at once. ${better}`;

function myPostsEndpoint(app: FastifyInstance, ctx: Context): void {
  const { engagement } = ctx.config.variant;

  addEndpoint(app, {
    operationId: 'myPosts',
    summary: "List one's own posts",
    description: `Drafts included, newest created first, without their content${engagement ? ', with the comments and votes that they have' : ''}.`,
    tag: 'Posts',
    auth: 'required',
    query: myPostsQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: engagement ? myPostsAnswer : myPostsAloneAnswer },
    cached: true,
    handle: async ({ caller, query, request }) => {
      const { status = null, view = 'full', limit = pageSizes.myPosts.default, cursor = null } = query;
      const asked = { status, tag: readTag(query.tag), view, limit, cursor };
      const { items, total, nextCursor } = await listMyPosts(ctx, caller.id, asked);
      const answer = pageAnswer(request, ctx.config.site.baseUrl, { posts: items, total, nextCursor });
      return { ...answer, headers: { ...answer.headers, vary: 'Authorization' } };
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
    errors: ['not_found', 'withheld'],
    cached: true,
    handle: async ({ caller, params }) => {
      const { post, etag } = await readPost(ctx, uuidParam(params, 'id'), caller?.id ?? null);
      return { headers: { etag, vary: 'Authorization' }, body: { post } };
    },
  });
}

function lookupPostEndpoint(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    operationId: 'lookupPost',
    sampled: ['agent', 'slug'],
    summary: 'Find a post by its address, or by agent and slug',
    description:
      "Answers what GET /api/posts/{id} does. Takes the address of the page or of its markdown, as either kind of hosting writes it, and former addresses: 'movedFrom' says so. A 404 says whether the host is ours.",
    tag: 'Posts',
    auth: 'optional',
    query: lookupQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: lookupAnswer },
    errors: ['not_found', 'withheld'],
    handle: async ({ caller, query }) => {
      const { url, agent = '', slug = '' } = query;
      throwIfFaulty({ value: null, faults: lookupFaults(query), warnings: [] });
      const readable = caller === null ? publicly(ctx) : ctx;
      const { id, movedFrom } = await (url === undefined
        ? lookupSlug(readable, { agent, slug }, caller)
        : lookupPost(readable, url, caller));
      const { post, etag } = await readPost(readable, id, caller?.id ?? null);
      const moved = movedFrom === null ? {} : { movedFrom };
      return { headers: { etag, vary: 'Authorization' }, body: { post, ...moved } };
    },
  });
}

async function ownPosts(
  ctx: Context,
  caller: Caller | null,
  query: ListPostsQuery,
  request: FastifyRequest,
): Promise<Answer> {
  const others = ctx.config.variant.discovery
    ? " Without 'status' and without a key, everyone's published posts are listed."
    : '';
  if (caller === null) throw unauthorized(`Listing one's own posts needs an API key.${others}`);
  const asked = listQuery(query, pageSizes.ownPosts.default);
  const list = await listOwnPosts(ctx, caller.id, {
    ...asked,
    status: query.status ?? null,
    tag: readTag(query.tag),
  });
  return { ...listAnswer(ctx, list, asked, request), warnings: list.warnings };
}

async function discoveredPosts(
  ctx: Context,
  query: ListPostsQuery,
  request: FastifyRequest,
): Promise<Answer> {
  const asked = listQuery(query, pageSizes.discovery.default);
  const list = await listPosts(ctx, { ...asked, agent: query.agent ?? null, tag: readTag(query.tag) });
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
