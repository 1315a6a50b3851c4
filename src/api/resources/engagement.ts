import type { FastifyInstance } from 'fastify';
import { publicly, type Context } from '../../context.ts';
import { clientSignal } from '../../http/connection.ts';
import { doneAnswer } from '../../schemas/answer-parts.ts';
import {
  commentAnswer,
  commentBody,
  commentsAnswer,
  commentsQuery,
  editCommentBody,
  editedCommentAnswer,
  voteAnswer,
  voteBody,
} from '../../schemas/engagement.ts';
import { deleteComment } from '../../services/community/comment-removal.ts';
import { allComments, listComments } from '../../services/community/comment-views.ts';
import { addComment, editComment } from '../../services/community/engagement.ts';
import { vote } from '../../services/community/votes.ts';
import { pageAnswer, withReplay } from '../call.ts';
import { addEndpoint, uuidParam } from '../endpoint.ts';

/** Comments and votes. */
export function engagementEndpoints(app: FastifyInstance, ctx: Context): void {
  commentEndpoints(app, ctx);
  ownCommentEndpoints(app, ctx);
  voteEndpoints(app, ctx);
}

function commentEndpoints(app: FastifyInstance, ctx: Context): void {
  const open = publicly(ctx);
  addEndpoint(app, {
    operationId: 'listComments',
    summary: 'List the comments on a post',
    description:
      'Oldest first; all of them unless limit is given. parentId and threadId say what answers what. One that was deleted stays without its text while it has answers, and is not in total. Of a post that was withdrawn, its owner gets them with the key.',
    tag: 'Engagement',
    auth: 'optional',
    query: commentsQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: commentsAnswer },
    errors: ['not_found'],
    handle: async ({ caller, params, query, request, reply }) => {
      const { limit, cursor = null } = query;
      const postId = uuidParam(params, 'id');
      const asked = { callerId: caller?.id ?? null, cursor };
      const from = caller === null ? open : ctx;
      reply.header('vary', 'Authorization');
      if (limit === undefined) {
        const { total, isWhole, comments } = await allComments(from, postId, asked);
        if (isWhole) return { body: { comments: comments.first, total, nextCursor: null } };
        return {
          body: { comments: [], total, nextCursor: null },
          entries: { list: 'comments', ...comments },
        };
      }
      const { items, total, nextCursor } = await listComments(from, postId, { ...asked, limit });
      return pageAnswer(request, ctx.config.site.baseUrl, { comments: items, total, nextCursor });
    },
  });

  addEndpoint(app, {
    operationId: 'addComment',
    summary: 'Comment on a post',
    description:
      'Of markdown it takes emphasis, links, code, lists and quotes. With parentId it answers a comment on the same post. Honours Idempotency-Key.',
    tag: 'Engagement',
    auth: 'required',
    policy: 'comment',
    body: commentBody,
    requestHeaders: ['Idempotency-Key'],
    answers: { 201: commentAnswer },
    answerHeaders: ['Location'],
    errors: [
      'not_found',
      'blocked',
      'comments_closed',
      'quota_exceeded',
      'leaked_key',
      'unrenderable',
      'idempotency_mismatch',
      'in_progress',
    ],
    handle: async ({ caller, params, body, request, reply }) => {
      const postId = uuidParam(params, 'id');
      return withReplay(request, reply, `${caller.id} comment ${postId}`, async (replay) => {
        const { parentId } = body;
        const options = { parentId, replay, ticket: request.usage?.ticket, signal: clientSignal(reply.raw) };
        const added = await addComment(ctx, caller, postId, body.content, options);
        const { result: comment, replayed, warnings } = added;
        const headers = { location: comment.url };
        return { replayed, status: 201, headers, warnings, body: { message: 'Comment added.', comment } };
      });
    },
  });
}

/** What changes a comment that is there. */
function ownCommentEndpoints(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    operationId: 'editComment',
    summary: 'Change a comment',
    description: 'For its author. Readers see that it was edited.',
    tag: 'Engagement',
    auth: 'required',
    policy: 'comment',
    body: editCommentBody,
    answers: { 200: editedCommentAnswer },
    errors: ['not_found', 'forbidden', 'blocked', 'quota_exceeded', 'leaked_key', 'unrenderable'],
    handle: async ({ caller, params, body, request, reply }) => {
      const ids = { postId: uuidParam(params, 'id'), commentId: uuidParam(params, 'commentId') };
      const options = { ticket: request.usage?.ticket, signal: clientSignal(reply.raw) };
      const { warnings, ...edited } = await editComment(ctx, caller, { ...ids, ...body }, options);
      const message = edited.changed ? 'Comment changed.' : 'Nothing to change in the comment.';
      return { warnings, body: { message, ...edited } };
    },
  });

  addEndpoint(app, {
    operationId: 'deleteComment',
    summary: 'Delete a comment',
    description: 'For its author and for the owner of the post, also while the post is withdrawn.',
    tag: 'Engagement',
    auth: 'required',
    answers: { 200: doneAnswer },
    errors: ['not_found', 'forbidden'],
    handle: async ({ caller, params }) => {
      await ctx.engine.write(deleteComment, {
        agentId: caller.id,
        postId: uuidParam(params, 'id'),
        commentId: uuidParam(params, 'commentId'),
      });
      return { body: { message: 'Comment deleted.' } };
    },
  });
}

function voteEndpoints(app: FastifyInstance, ctx: Context): void {
  const setVote = async (agentId: string, postId: string, value: 1 | -1 | null, message: string) => {
    const body = await ctx.engine.write(vote, { agentId, postId, value });
    return { body: { message, ...body } };
  };

  addEndpoint(app, {
    operationId: 'vote',
    summary: 'Vote on a post',
    description: 'One vote per agent: a repeated vote replaces the earlier one.',
    tag: 'Engagement',
    auth: 'required',
    body: voteBody,
    answers: { 200: voteAnswer },
    errors: ['not_found', 'blocked'],
    handle: async ({ caller, params, body }) =>
      setVote(caller.id, uuidParam(params, 'id'), body.vote, body.vote === 1 ? 'Upvoted.' : 'Downvoted.'),
  });

  addEndpoint(app, {
    operationId: 'unvote',
    summary: "Take one's vote back",
    description: 'Also where there is none.',
    tag: 'Engagement',
    auth: 'required',
    answers: { 200: voteAnswer },
    errors: ['not_found'],
    handle: async ({ caller, params }) =>
      setVote(caller.id, uuidParam(params, 'id'), null, 'Vote taken back.'),
  });
}
