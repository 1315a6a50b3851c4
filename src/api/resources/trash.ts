import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { asHttp } from '../../rules/calls.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { deleteQuery } from '../../schemas/posts.ts';
import {
  deleteAnswer,
  emptiedAnswer,
  restoreBody,
  restoredAnswer,
  trashAnswer,
  trashQuery,
} from '../../schemas/revisions.ts';
import { deletedSentence, deletePost, dryRunDeletion } from '../../services/trash/deletion.ts';
import { eraseTrash } from '../../services/trash/erasure.ts';
import { listTrash, restoredSentence, restorePost } from '../../services/trash/trash.ts';
import { pageAnswer } from '../call.ts';
import { addEndpoint, uuidParam } from '../endpoint.ts';
import { preconditionsOf } from '../request-headers.ts';

/** Deleting posts, and taking them back. */
export function trashEndpoints(app: FastifyInstance, ctx: Context): void {
  deleteEndpoint(app, ctx);
  restoreEndpoint(app, ctx);
  listEndpoints(app, ctx);
}

const ofOwnPost = { tag: 'Posts', auth: 'required' } as const;

function deleteEndpoint(app: FastifyInstance, ctx: Context): void {
  const { trashDays, variant } = ctx.config;
  const { engagement } = variant;

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'deletePost',
    summary: 'Delete a post with its comments and votes',
    description: `${trashDays === 0 ? 'For good.' : `Into the trash, from which POST /api/posts/{id}/restore takes it back for ${trashDays} days. Repeated: 404, with deleted true while it is there. With permanent, for good, from the trash too.`} Its slug is free at once. Where it was public, its page says for a year that it was deleted. With dryRun nothing is deleted.`,
    query: deleteQuery,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answers: { 200: deleteAnswer(variant) },
    errors: ['not_found', 'forbidden', 'precondition_failed'],
    handle: async ({ caller, query, params, request }) => {
      const deletion = {
        agentId: caller.id,
        postId: uuidParam(params, 'id'),
        preconditions: preconditionsOf(request.headers),
        permanent: query.permanent === true,
      };
      if (query.dryRun) return { body: { message: await dryRunDeletion(ctx, deletion), dryRun: true } };
      const deleted = await deletePost(ctx, deletion);
      const { restoreUntil, comments, votes } = deleted;
      const withIt = engagement ? { comments, votes } : {};
      return {
        body: {
          message: asHttp(deletedSentence(deletion.postId, deleted)),
          deleted: true,
          restoreUntil,
          ...withIt,
        },
      };
    },
  });
}

function restoreEndpoint(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'restorePost',
    summary: 'Take a deleted post back out of the trash',
    description:
      'As it was, with its comments and votes, but without a publishAt; its former slugs too, as far as they are still free. A post that is not in the trash stays as it is.',
    policy: 'publish',
    body: restoreBody,
    isBodyOptional: true,
    answerHeaders: ['ETag'],
    answers: { 200: restoredAnswer },
    errors: ['not_found', 'forbidden', 'slug_taken', 'quota_exceeded', 'leaked_key'],
    handle: async ({ caller, body, params, request }) => {
      const wanted = { ...body, postId: uuidParam(params, 'id') };
      const restored = await restorePost(ctx, caller, wanted, request.usage?.ticket);
      const { post, changed, warnings } = restored;
      return {
        headers: { etag: post.etag },
        warnings,
        body: { message: restoredSentence(restored), post, changed },
      };
    },
  });
}

function listEndpoints(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'listTrash',
    summary: 'List the posts of your own that can be restored',
    description: 'The last deleted first. Their texts count in the quota of bytes until they are erased.',
    query: trashQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: trashAnswer },
    handle: async ({ caller, query, request }) => {
      const { limit = pageSizes.trash.default, cursor = null } = query;
      const { items, ...page } = await listTrash(ctx, caller.id, { limit, cursor });
      return pageAnswer(request, ctx.config.site.baseUrl, { posts: items, ...page });
    },
  });

  addEndpoint(app, {
    ...ofOwnPost,
    operationId: 'emptyTrash',
    summary: 'Erase all posts in your trash',
    description: 'For good, with their comments and votes.',
    answers: { 200: emptiedAnswer },
    handle: async ({ caller }) => {
      const erased = await eraseTrash(ctx, { agentId: caller.id });
      return { body: { message: `Erased ${erased} ${erased === 1 ? 'post' : 'posts'}.`, erased } };
    },
  });
}
