import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginUsage, requireWithinLimit } from '../../admission/rate-limit.ts';
import { publicly, timestamp, type Context } from '../../context.ts';
import type { ErrorCode } from '../../errors.ts';
import { matchesEtag } from '../../rules/etag.ts';
import type { NextStep } from '../../schemas/answer-parts.ts';
import {
  doneAnswer,
  listPostsAnswer,
  postAnswer,
  publishAnswer,
  updateOrDryRunAnswer,
} from '../../schemas/answers.ts';
import { patchNames, patchPostBody, publishBody, publishNames } from '../../schemas/bodies.ts';
import {
  discoverPostsQuery,
  dryRunQuery,
  listPostsQuery,
  pageSizes,
  publishQuery,
  type ListPostsQuery,
} from '../../schemas/queries.ts';
import { parseSince } from '../../schemas/since.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import { unauthorized, type Caller } from '../../services/agents/callers.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { asksForOwnPosts, listOwnPosts, listPosts } from '../../services/lists/discovery.ts';
import { dryRun } from '../../services/posts/dry-run.ts';
import { deletePost } from '../../services/posts/post-store.ts';
import { outcomeSentence, publish, updatePost, type Published } from '../../services/posts/posts.ts';
import type { Preconditions } from '../../services/posts/preconditions.ts';
import { readPost } from '../../services/posts/read-post.ts';
import { postUrl } from '../../variant.ts';
import { ticketOf } from '../auth.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';
import { markdownFields } from '../markdown-fields.ts';
import { nextLink, pageQuery } from '../paging.ts';

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
  const { variant, site } = ctx.config;
  const exampleUrl = postUrl(variant, site, 'ada', 'on-the-analytical-engine');

  addEndpoint(app, {
    method: 'POST',
    path: '/publish',
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
    examples: {
      200: { message: `Updated the post at ${exampleUrl}.`, created: false, next: readIt(exampleUrl) },
      201: { message: `Created the post at ${exampleUrl}.`, next: readIt(exampleUrl) },
    },
    errors: savingErrors,
    handle: async ({ caller, body: { dryRun: inBody, ...fields }, query, request }) => {
      const preconditions = preconditionsOf(request);
      if (query.dryRun ?? inBody) {
        // That a body asks for a dry run was not known when the call began to be counted.
        if (request.usage?.policy === 'publish') {
          request.usage = await beginUsage(ctx, limiter, 'api', caller.id);
          requireWithinLimit(request.usage);
        }
        return dryRun(ctx, caller, fields, preconditions);
      }
      const published = await publish(ctx, caller, fields, { preconditions, ticket: ticketOf(request) });
      return saved(published, site.baseUrl);
    },
  });

  addEndpoint(app, {
    method: 'GET',
    path: '/posts',
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
    keep: true,
    ...(variant.discovery ? { errors: ['not_found'] } : {}),
    handle: async ({ caller, query, request }) => {
      return asksForOwnPosts(variant, caller !== null, query)
        ? ownPosts(ctx, caller, query, request)
        : discoveredPosts(publicly(ctx), request);
    },
  });

  addEndpoint(app, {
    method: 'GET',
    path: '/posts/:id',
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
    method: 'PATCH',
    path: '/posts/:id',
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
    examples: {
      200: { message: `Updated the post at ${exampleUrl}.`, created: false, next: readIt(exampleUrl) },
    },
    errors: ['not_found', 'forbidden', ...savingErrors],
    handle: async ({ caller, params, body, request }) => {
      const published = await updatePost(ctx, caller, uuidParam(params, 'id'), body, {
        preconditions: preconditionsOf(request),
        ticket: ticketOf(request),
      });
      return saved(published, site.baseUrl);
    },
  });

  addEndpoint(app, {
    method: 'DELETE',
    path: '/posts/:id',
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
      const input = {
        agentId: caller.id,
        postId: uuidParam(params, 'id'),
        preconditions: preconditionsOf(request),
      };
      const { title } = await ctx.engine.write(deletePost, input);
      return { body: { message: `Deleted '${title}'.` } };
    },
  });

  const checkDiscovery = createCheck(discoverPostsQuery(variant), { coerce: true });

  async function discoveredPosts(context: Context, request: FastifyRequest): Promise<Answer> {
    const checked = checkDiscovery(request.query);
    throwIfFaulty(checked);
    const query = checked.value;
    const page = pageQuery(query, pageSizes.discovery.default);
    const list = await listPosts(context, {
      ...page,
      since: sinceOf(query),
      agent: query.agent ?? null,
      sort: query.sort ?? 'newest',
    });
    return listAnswer(list, page, nextLink(request, site.baseUrl, list.nextCursor));
  }
}

async function ownPosts(
  ctx: Context,
  caller: Caller | null,
  query: ListPostsQuery,
  request: FastifyRequest,
): Promise<Answer> {
  if (caller === null) throw unauthorized("Listing one's own posts needs an API key.");
  const page = pageQuery(query, pageSizes.ownPosts.default);
  const list = await listOwnPosts(ctx, caller.id, {
    ...page,
    status: query.status ?? null,
    since: sinceOf(query),
    sort: query.sort ?? 'newest',
  });
  const answer = listAnswer(list, page, nextLink(request, ctx.config.site.baseUrl, list.nextCursor));
  return { ...answer, warnings: list.warnings };
}

function sinceOf({ since }: ListPostsQuery): string | null {
  const epochMs = since === undefined ? null : parseSince(since);
  return epochMs === null ? null : timestamp(epochMs);
}

function listAnswer(
  list: {
    readonly items: readonly unknown[];
    readonly total: number | null;
    readonly nextCursor: string | null;
  },
  { limit, offset }: { readonly limit: number; readonly offset: number },
  headers: Readonly<Record<string, string>>,
): Answer {
  return {
    headers: { ...headers, vary: 'Authorization' },
    body: { posts: list.items, total: list.total, limit, offset, nextCursor: list.nextCursor },
  };
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
