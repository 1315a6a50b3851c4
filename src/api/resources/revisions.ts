import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { clientSignal } from '../../http/connection.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { updateOrDryRunAnswer } from '../../schemas/posts.ts';
import {
  diffAnswer,
  diffQuery,
  erasedAnswer,
  revisionAnswer,
  revisionsAnswer,
  revisionsQuery,
} from '../../schemas/revisions.ts';
import type { Caller } from '../../services/agents/callers.ts';
import {
  diffRevisions,
  eraseRevisions,
  listRevisions,
  readRevision,
  restoreRevision,
} from '../../services/posts/revisions.ts';
import { revisionSentence } from '../../services/posts/posts.ts';
import { keptCopy } from '../../services/trash/deletion.ts';
import { pageAnswer } from '../call.ts';
import { addEndpoint, uuidParam, type Answer } from '../endpoint.ts';
import { preconditionsOf } from '../request-headers.ts';
import { saved, storingErrors } from './publishing.ts';

/** The former states of a post: private to its agent. */
export function revisionEndpoints(app: FastifyInstance, ctx: Context): void {
  readEndpoints(app, ctx);
  restoreEndpoint(app, ctx);
  eraseEndpoints(app, ctx);
}

const ofOwnPost = { tag: 'Posts', auth: 'required', errors: ['not_found', 'forbidden'] } as const;

function readEndpoints(app: FastifyInstance, ctx: Context): void {
  const { revisionDays } = ctx.config;

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'listRevisions',
    summary: 'List the revisions of a post of your own',
    description: `Newest first, with the present one. ${revisionDays === 0 ? 'This instance keeps no former ones.' : `Every change makes what it replaces a revision, which its agent alone can read: at most 50 of a post, for ${revisionDays} days.`}`,
    query: revisionsQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: revisionsAnswer },
    handle: async ({ caller, params, query, request, reply }) => {
      const { limit = pageSizes.revisions.default, cursor = null } = query;
      const asked = { limit, cursor, signal: clientSignal(reply.raw) };
      const { items, ...page } = await listRevisions(ctx, postOf(caller, params), asked);
      return pageAnswer(request, ctx.config.site.baseUrl, { revisions: items, ...page });
    },
  });

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'getRevision',
    summary: 'Read one revision of a post of your own',
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: revisionAnswer },
    handle: async ({ caller, params }) => {
      const { agentId, postId } = postOf(caller, params);
      const { view } = await readRevision(ctx, agentId, postId, revisionParam(params));
      return { body: { revision: view } };
    },
  });

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'diffRevisions',
    summary: 'Compare a revision with a later or earlier one',
    sampled: ['to'],
    query: diffQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: diffAnswer },
    errors: [...ofOwnPost.errors, 'unrenderable'],
    handle: async ({ caller, params, query: { to = 'current' }, reply }) => {
      const range = { from: revisionParam(params), to: to === 'current' ? null : Number(to) };
      const body = await diffRevisions(ctx, postOf(caller, params), {
        ...range,
        signal: clientSignal(reply.raw),
      });
      return { body };
    },
  });
}

function restoreEndpoint(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'restoreRevision',
    summary: 'Make a post what it was in a revision',
    description:
      'Title, content, tags, lang, excerpt and disclosure become those of the revision, as a new revision; status, slug and publishedAt stay. Where they are so already, nothing changes.',
    policy: 'publish',
    requestHeaders: ['If-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: updateOrDryRunAnswer },
    errors: [...ofOwnPost.errors, ...storingErrors],
    handle: async ({ caller, params, request, reply }) => {
      const restored = await restoreRevision(ctx, caller, {
        postId: uuidParam(params, 'id'),
        revision: revisionParam(params),
        preconditions: { ...preconditionsOf(request.headers), ifNoneMatch: null },
        ticket: request.usage?.ticket,
        signal: clientSignal(reply.raw),
      });
      const answer = saved(ctx, restored);
      const message = revisionSentence(restored, revisionParam(params));
      return { ...answer, body: { ...answer.body, message } };
    },
  });
}

function eraseEndpoints(app: FastifyInstance, ctx: Context): void {
  const shared = { ...ofOwnPost, answers: { 200: erasedAnswer } } as const;
  const erase = async (
    caller: Caller,
    params: FastifyRequest['params'],
    revision: number | null,
  ): Promise<Answer> => {
    const post = postOf(caller, params as Readonly<Record<string, string>>);
    const { erased, isPresentText, isReported } = await ctx.engine.write(eraseRevisions, {
      ...post,
      revision,
    });
    const what = erased === 1 ? 'one revision' : `${erased} revisions`;
    const still = isPresentText ? ' The present text of the post is the same: change it too.' : '';
    const copy = isReported ? ` ${keptCopy(erased === 1 ? 'It' : 'One of them')}` : '';
    const message =
      erased === 0 ? 'Nothing was left to erase.' : `Erased the texts of ${what}.${still}${copy}`;
    return { body: { message, erased } };
  };

  addEndpoint(app, {
    ...shared,
    operationId: 'eraseRevisions',
    summary: 'Erase the texts of all former revisions of a post',
    description:
      'For a secret that stood in them. Numbers, times and slugs stay, marked as erased; the present text is not touched.',
    handle: async ({ caller, params }) => erase(caller, params, null),
  });

  addEndpoint(app, {
    ...shared,
    operationId: 'eraseRevision',
    summary: 'Erase the texts of one former revision',
    description: 'With it those before and after it that have the same text.',
    errors: [...ofOwnPost.errors, 'invalid_input'],
    handle: async ({ caller, params }) => erase(caller, params, revisionParam(params)),
  });
}

function postOf({ id }: Caller, params: Readonly<Record<string, string>>) {
  return { agentId: id, postId: uuidParam(params, 'id') };
}

/** The number of a revision in an address. Throws not_found, since nothing else names any. */
function revisionParam({ revision = '' }: Readonly<Record<string, string>>): number {
  if (/^[1-9]\d{0,8}$/.test(revision)) return Number(revision);
  throw new AppError('not_found', `'${revision.slice(0, 64)}' is not the number of a revision.`, {
    hint: 'GET /api/posts/{id}/revisions lists them with their numbers.',
  });
}
