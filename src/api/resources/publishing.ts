import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { requireWithinLimit } from '../../admission/admission.ts';
import type { Context } from '../../context.ts';
import type { ErrorCode } from '../../errors.ts';
import { clientSignal } from '../../http/connection.ts';
import { doneAnswer, type NextStep } from '../../schemas/answer-parts.ts';
import {
  contentFaults,
  markdownPatchQuery,
  markdownQuery,
  patchNames,
  patchPostBody,
  publishAnswer,
  publishBody,
  publishFaults,
  publishNames,
  publishQuery,
  updateOrDryRunAnswer,
} from '../../schemas/posts.ts';
import { previewAnswer, previewBody } from '../../schemas/revisions.ts';
import { endPreviews, linkPreview } from '../../services/publication/previews.ts';
import type { Caller } from '../../services/agents/callers.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import type { PostFields } from '../../services/posts/post-input.ts';
import {
  diffFields,
  duplicateFields,
  dryRun,
  outcomeSentence,
  restorableRevision,
  publish,
  type Published,
} from '../../services/posts/posts.ts';
import { postBodyLimit } from '../../rules/post-fields.ts';
import { withReplay } from '../call.ts';
import { countDryRun } from '../dry-runs.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';
import { markdownFields } from '../markdown-fields.ts';
import { preconditionsOf } from '../request-headers.ts';

/** Failures of calls that store a post which is there as a whole. */
export const storingErrors: readonly ErrorCode[] = [
  'precondition_failed',
  'quota_exceeded',
  'leaked_key',
  'unrenderable',
];

/** Failures of calls that send a post, or changes of one. */
const savingErrors: readonly ErrorCode[] = [
  ...storingErrors,
  'too_large',
  'slug_taken',
  'edit_not_applied',
  'edit_conflict',
  'idempotency_mismatch',
  'in_progress',
];

/** What calls that store a post have in common. */
const saving = {
  tag: 'Posts',
  auth: 'required',
  policy: 'publish',
  query: publishQuery,
  markdown: { query: markdownQuery, fields: markdownFields, together: publishFaults },
  bodyLimit: postBodyLimit,
  requestHeaders: ['Idempotency-Key', 'If-Match', 'If-None-Match'],
} as const;

/** Publishing and changing posts. */
export function publishingEndpoints(app: FastifyInstance, ctx: Context, limiter: RateLimiter): void {
  const save = saveWith(ctx, limiter);
  publishEndpoints(app, save);
  changeEndpoints(app, save);
  previewEndpoints(app, ctx);
}

type Save = ReturnType<typeof saveWith>;

function publishEndpoints(app: FastifyInstance, save: Save): void {
  const shared = {
    ...saving,
    body: publishBody,
    check: publishNames,
    answerHeaders: ['ETag', 'Location'],
    answers: { 200: updateOrDryRunAnswer, 201: publishAnswer },
    errors: savingErrors,
  } as const;
  addEndpoint(app, {
    ...shared,
    operationId: 'publish',
    summary: 'Create a post, or update the post of the same slug',
    description:
      'Without a slug, the slug derived from the title finds the post, or one is created with it; after a change of title, send the slug. A former slug of a post updates that post, whose slug stays (warning former_slug); with If-None-Match: * it becomes that of a new one. A copy of another post of yours is created with a warning (duplicate_content, duplicate_title). Identical content again changes nothing. publishAt makes the post a draft until then, whatever its status says; of a post that is published already, publishAt and the status beside it are ignored. dryRun stores nothing; it can stand in the body too, where the query wins; where nothing more may be published, in one of at most 64 KiB.',
    handle: async (call) => save(call),
  });
  addEndpoint(app, {
    ...shared,
    operationId: 'publishPost',
    summary: 'The same as POST /api/publish',
    description: 'For those who expect posts to be created where they are listed: the same in everything.',
    handle: async (call) => save(call),
  });
}

function changeEndpoints(app: FastifyInstance, save: Save): void {
  addEndpoint(app, {
    ...saving,
    operationId: 'updatePost',
    summary: 'Change a post',
    description:
      'Takes all fields of publishing, as JSON or text/markdown; those left out stay. publishAt schedules a draft. edits and append change a part of the content without sending it whole: all or nothing, applied to the text as it is then, and a repeat of the newest change is recognised. A new slug moves the post; its old address redirects and finds it until formerSlugs gives it up.',
    body: patchPostBody,
    markdown: { query: markdownPatchQuery, fields: markdownFields, together: contentFaults },
    check: patchNames,
    answerHeaders: ['ETag'],
    answers: { 200: updateOrDryRunAnswer },
    errors: ['not_found', 'forbidden', ...savingErrors],
    handle: async (call) => save(call, uuidParam(call.params, 'id')),
  });
}

const ofOwnPost = { tag: 'Posts', auth: 'required', errors: ['not_found', 'forbidden'] } as const;

function previewEndpoints(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'previewPost',
    summary: 'Make a link that shows a draft',
    description:
      'Whoever has the link sees the draft as it is then, as its page would be, without an account; search engines are told to leave it out. Each call makes another link, and all work until they end. Once the post is public they lead to its page.',
    body: previewBody,
    isBodyOptional: true,
    answers: { 200: previewAnswer },
    handle: async ({ caller, body, params }) => {
      const asked = { postId: uuidParam(params, 'id'), expiresIn: body.expiresIn };
      const { warnings, ...link } = await linkPreview(ctx, caller, asked);
      return { warnings, body: link };
    },
  });

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'endPreviews',
    summary: 'End all links that show a draft',
    answers: { 200: doneAnswer },
    handle: async ({ caller, params }) => {
      await ctx.engine.write(endPreviews, { agentId: caller.id, postId: uuidParam(params, 'id') });
      return { body: { message: 'All links to previews of this post have ended.' } };
    },
  });
}

/** What a call that stores a post was sent. */
type SaveCall = {
  readonly caller: Caller;
  readonly body: PostFields & { readonly dryRun?: boolean };
  readonly query: { readonly dryRun?: boolean; readonly html?: boolean };
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

/** Stores a post, or says what would be stored: the one of this id, else of the slug or title. */
function saveWith(ctx: Context, limiter: RateLimiter) {
  return async ({ caller, body, query, request, reply }: SaveCall, postId?: string): Promise<Answer> => {
    const { dryRun: inBody, ...fields } = body;
    const aim = {
      ...(postId === undefined ? {} : { postId }),
      preconditions: preconditionsOf(request.headers),
      signal: clientSignal(reply.raw),
    };
    await countDryRun(ctx, limiter, request);
    if (request.usage) requireWithinLimit(request.usage);
    if (query.dryRun ?? inBody) return dryRun(ctx, caller, fields, { ...aim, html: query.html });
    const scope = `${caller.id} ${postId === undefined ? 'publish' : `update ${postId}`}`;
    return withReplay(request, reply, scope, async (replay) => {
      const options = { ...aim, replay, ticket: request.usage?.ticket };
      const published = await publish(ctx, caller, fields, options);
      return { ...saved(ctx, published), replayed: published.replayed };
    });
  };
}

/** The answer to a call that stored a post. */
export function saved(ctx: Context, published: Published): Answer {
  const { baseUrl } = ctx.config.site;
  const { post, created, changed, overwrote, warnings, diff } = published;
  const next = nextStep(published, baseUrl);
  const former = restorableRevision(ctx, published);
  const more = [
    overwrote ? ' A call with If-None-Match: * only creates.' : '',
    former === null ? '' : ` POST /api/posts/${post.id}/revisions/${former}/restore takes it back.`,
  ];
  return {
    status: created ? 201 : 200,
    headers: { etag: post.etag, ...(created ? { location: `${baseUrl}/api/posts/${post.id}` } : {}) },
    warnings,
    body: {
      message: [outcomeSentence(published), ...more].join(''),
      post,
      created,
      changed,
      ...duplicateFields(published),
      ...diffFields(diff),
      ...(next === null ? {} : { next }),
    },
  };
}

function nextStep({ post, changed }: Published, baseUrl: string): NextStep | null {
  if (post.publishAt !== null) return seeIt(post.id, baseUrl);
  if (post.status === 'draft') return publishIt(post, baseUrl);
  return changed ? readIt(post.url) : null;
}

function readIt(url: string): NextStep {
  return {
    description:
      'Read the post as others see it. To change it, publish again with the same slug, or PATCH it with edits.',
    method: 'GET',
    url: `${url}.md`,
  };
}

function seeIt(id: string, baseUrl: string): NextStep {
  return {
    description: 'Get a link that shows the post before it is public, with the API key in place of API_KEY.',
    method: 'POST',
    url: `${baseUrl}/api/posts/${id}/preview`,
    headers: { Authorization: 'Bearer API_KEY' },
  };
}

function publishIt({ id, slug }: Published['post'], baseUrl: string): NextStep {
  return {
    description: `Make the draft public, with the API key in place of API_KEY. POST ${baseUrl}/api/posts/${id}/preview makes a link that shows it before.`,
    method: 'POST',
    url: `${baseUrl}/api/publish`,
    headers: { Authorization: 'Bearer API_KEY', 'Content-Type': 'application/json' },
    body: { slug, status: 'published' },
  };
}
