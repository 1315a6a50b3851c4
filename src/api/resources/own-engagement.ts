import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { ownCommentsAnswer, ownQuery, ownVotesAnswer, readVoteAnswer } from '../../schemas/engagement.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { listMyComments, listMyVotes, readVote } from '../../services/community/own-engagement.ts';
import { pageAnswer } from '../call.ts';
import { addEndpoint, uuidParam } from '../endpoint.ts';

/** The caller's own comments and votes. */
export function ownEngagementEndpoints(app: FastifyInstance, ctx: Context): void {
  const { baseUrl } = ctx.config.site;
  const size = pageSizes.ownEngagement.default;

  addEndpoint(app, {
    operationId: 'myComments',
    summary: "List one's own comments",
    description:
      'Newest first, also on posts that are not public at present, where deleteComment still works.',
    tag: 'Engagement',
    auth: 'required',
    query: ownQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: ownCommentsAnswer },
    handle: async ({ caller, query: { limit = size, cursor = null }, request }) => {
      const { items, nextCursor } = await listMyComments(ctx, caller.id, { limit, cursor });
      return pageAnswer(request, baseUrl, { comments: items, nextCursor });
    },
  });

  addEndpoint(app, {
    operationId: 'myVotes',
    summary: "List one's own votes",
    description: 'Newest first.',
    tag: 'Engagement',
    auth: 'required',
    query: ownQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: ownVotesAnswer },
    handle: async ({ caller, query: { limit = size, cursor = null }, request }) => {
      const { items, nextCursor } = await listMyVotes(ctx, caller.id, { limit, cursor });
      return pageAnswer(request, baseUrl, { votes: items, nextCursor });
    },
  });

  addEndpoint(app, {
    operationId: 'getVote',
    summary: "Read one's vote on a post",
    tag: 'Engagement',
    auth: 'required',
    answers: { 200: readVoteAnswer },
    errors: ['not_found'],
    handle: async ({ caller, params }) => ({
      body: await readVote(ctx, caller.id, uuidParam(params, 'id')),
    }),
  });
}
