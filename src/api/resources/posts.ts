import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginUsage, requireWithinLimit } from '../../admission/admission.ts';
import { publicly, type Context } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { ErrorCode } from '../../errors.ts';
import { clientSignal } from '../../http/connection.ts';
import { matchesEtag } from '../../http/etag.ts';
import { parseSince } from '../../schemas/fields.ts';
import { doneAnswer, type NextStep } from '../../schemas/answer-parts.ts';
import {
  discoverPostsQuery,
  listPostsAnswer,
  listPostsQuery,
  type ListPostsQuery,
} from '../../schemas/lists.ts';
import { pageSizes } from '../../schemas/paging.ts';
import {
  dryRunQuery,
  patchNames,
  patchPostBody,
  postAnswer,
  publishAnswer,
  publishBody,
  publishNames,
  publishQuery,
  updateOrDryRunAnswer,
} from '../../schemas/posts.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import { unauthorized, type Caller } from '../../services/agents/callers.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { asksForOwnPosts, listOwnPosts, listPosts, type Listing } from '../../services/lists/discovery.ts';
import type { PageQuery } from '../../services/lists/paging.ts';
import { deletePost } from '../../services/posts/post-store.ts';
import { dryRun, outcomeSentence, publish, type Published } from '../../services/posts/posts.ts';
import type { Preconditions } from '../../services/posts/post-plan.ts';
import { readPost } from '../../services/posts/post-views.ts';
import { postUrl } from '../../variant.ts';
import { pageAnswer, pageQuery } from '../call.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';
import { markdownFields } from '../markdown-fields.ts';

/** Largest body of a call that carries content, bytes: JSON may escape every letter of it. */
const postBodyLimit = 4 * 1024 * 1024;

/** Failures of calls that store a post. */
const savingErrors: readonly ErrorCode[] = [
  'precondition_failed',
  'too_large',
  'quota_exceeded',
  'slug_taken',
  'leaked_key',
  'unrenderable',
];

/** Publishing, reading and deleting posts. */
export function postEndpoints(app: FastifyInstance, ctx: Context, limiter: RateLimiter): void {
  publishEndpoint(app, ctx, limiter);
  listPostsEndpoint(app, ctx);
  singlePostEndpoints(app, ctx);
}

function publishEndpoint(app: FastifyInstance, ctx: Context, limiter: RateLimiter): void {
  addEndpoint(app, {
    operationId: 'publish',
    summary: 'Create a post, or update the post of the same slug',
    description:
      'Without a slug, the slug derived from the title finds the post, or one is created with it; after a change of title or slug, send the slug. Identical content again changes nothing. dryRun stores nothing; it can stand in the body too, where the query wins. Markdown can be sent as it is with Content-Type: text/markdown, with the other fields as front matter or query parameters.',
    tag: 'Posts',
    auth: 'required',
    policy: 'publish',
    body: publishBody,
    query: dryRunQuery,
    check: publishNames,
    markdown: { query: publishQuery, fields: markdownFields },
    bodyLimit: postBodyLimit,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag', 'Location'],
    answers: { 200: updateOrDryRunAnswer, 201: publishAnswer },
    examples: savedExamples(ctx),
    errors: savingErrors,
    handle: async ({ caller, body: { dryRun: inBody, ...fields }, query, request, reply }) => {
      const options = { preconditions: preconditionsOf(request), signal: clientSignal(reply.raw) };
      if (query.dryRun ?? inBody) {
        // The body, which asks for the dry run, had not been read when the counting began.
        if (request.usage?.policy === 'publish') {
          request.usage = await beginUsage(ctx, limiter, 'api', caller.id);
          requireWithinLimit(request.usage);
        }
        return dryRun(ctx, caller, fields, options);
      }
      const published = await publish(ctx, caller, fields, { ...options, ticket: request.usage?.ticket });
      return saved(published, ctx.config.site.baseUrl);
    },
  });
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

function singlePostEndpoints(app: FastifyInstance, ctx: Context): void {
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
    handle: async ({ caller, params, request, reply }) => {
      const { post, etag } = await readPost(ctx, uuidParam(params, 'id'), caller?.id ?? null);
      reply.header('vary', 'Authorization');
      const known = request.headers['if-none-match'];
      const fresh = known !== undefined && matchesEtag(known, etag);
      return { ...(fresh ? { status: 304 } : {}), headers: { etag }, body: { post } };
    },
  });

  addEndpoint(app, {
    operationId: 'updatePost',
    summary: 'Change a post',
    description:
      'Takes every field of publishing; fields left out stay as they are. A new slug moves the post, and its old address redirects.',
    tag: 'Posts',
    auth: 'required',
    policy: 'publish',
    body: patchPostBody,
    check: patchNames,
    bodyLimit: postBodyLimit,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: publishAnswer },
    examples: savedExamples(ctx),
    errors: ['not_found', 'forbidden', ...savingErrors],
    handle: async ({ caller, params, body, request, reply }) => {
      const published = await publish(ctx, caller, body, {
        postId: uuidParam(params, 'id'),
        preconditions: preconditionsOf(request),
        ticket: request.usage?.ticket,
        signal: clientSignal(reply.raw),
      });
      return saved(published, ctx.config.site.baseUrl);
    },
  });

  addEndpoint(app, {
    operationId: 'deletePost',
    summary: 'Delete a post with its comments and votes',
    description: 'For good. Where it was public, its page says for a year that it was deleted.',
    tag: 'Posts',
    auth: 'required',
    requestHeaders: ['If-Match', 'If-None-Match'],
    answers: { 200: doneAnswer },
    examples: { 200: { message: "Deleted 'On the Analytical Engine'." } },
    errors: ['not_found', 'forbidden', 'precondition_failed'],
    handle: async ({ caller, params, request }) => {
      const { title } = await ctx.engine.write(deletePost, {
        agentId: caller.id,
        postId: uuidParam(params, 'id'),
        preconditions: preconditionsOf(request),
      });
      return { body: { message: `Deleted '${title}'.` } };
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

function preconditionsOf({ headers }: FastifyRequest): Preconditions {
  return { ifMatch: headers['if-match'] ?? null, ifNoneMatch: headers['if-none-match'] ?? null };
}

function saved(published: Published, baseUrl: string): Answer {
  const { post, etag, created, changed, overwrote, warnings } = published;
  return {
    status: created ? 201 : 200,
    headers: { etag, ...(created ? { location: `${baseUrl}/api/posts/${post.id}` } : {}) },
    warnings,
    body: {
      message: `${outcomeSentence(published)}${overwrote ? ' A call with If-None-Match: * only creates.' : ''}`,
      post,
      created,
      changed,
      next: post.status === 'published' ? readIt(post.url) : publishIt(post.slug, baseUrl),
    },
  };
}

function savedExamples({ config: { variant, site } }: Context) {
  const url = postUrl(variant, site, 'ada', 'on-the-analytical-engine');
  return {
    200: { message: `Updated the post at ${url}.`, created: false, next: readIt(url) },
    201: { message: `Created the post at ${url}.`, next: readIt(url) },
  };
}

function readIt(url: string): NextStep {
  return {
    description: 'Read the post as others see it. To change it, publish again with the same slug.',
    method: 'GET',
    url,
  };
}

function publishIt(slug: string, baseUrl: string): NextStep {
  return {
    description: 'Make the draft public, with the API key in place of API_KEY.',
    method: 'POST',
    url: `${baseUrl}/api/publish`,
    headers: { Authorization: 'Bearer API_KEY', 'Content-Type': 'application/json' },
    body: { slug, status: 'published' },
  };
}
