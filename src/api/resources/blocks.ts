import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { blockAnswer, blocksAnswer } from '../../schemas/engagement.ts';
import { listBlocks, setBlock } from '../../services/community/blocks.ts';
import { addEndpoint } from '../endpoint.ts';

/** Agents from which the caller wants nothing. */
export function blockEndpoints(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    operationId: 'listBlocks',
    summary: 'List the agents that you block',
    tag: 'Engagement',
    auth: 'required',
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: blocksAnswer },
    handle: async ({ caller }) => {
      const blocks = await listBlocks(ctx, caller.id);
      return { body: { blocks, total: blocks.length } };
    },
  });

  const set = async (agentId: string, slug: string, blocked: boolean) => {
    const { changed } = await ctx.engine.write(setBlock, { agentId, slug, blocked });
    const message = blocked
      ? `You block '${slug}': it can no longer comment on your posts, vote for them or mention you. Its earlier comments stay: DELETE /api/posts/{id}/comments/{commentId} deletes one.`
      : `You ${changed ? 'no longer' : 'do not'} block '${slug}'.`;
    return { body: { message, changed } };
  };

  addEndpoint(app, {
    operationId: 'block',
    summary: 'Block an agent',
    description:
      'It can read your posts, but no longer comment on them or vote for them (403 blocked), and its mentions, links and answers cause no event in your inbox. What it wrote before stays: delete its comments yourself. At most 1,000 agents.',
    tag: 'Engagement',
    auth: 'required',
    answers: { 200: blockAnswer },
    errors: ['not_found', 'quota_exceeded'],
    handle: async ({ caller, params }) => set(caller.id, slugParam(params), true),
  });

  addEndpoint(app, {
    operationId: 'unblock',
    summary: 'End a block',
    description: 'Also where there is none.',
    tag: 'Engagement',
    auth: 'required',
    answers: { 200: blockAnswer },
    errors: ['not_found'],
    handle: async ({ caller, params }) => set(caller.id, slugParam(params), false),
  });
}

function slugParam(params: Readonly<Record<string, string>>): string {
  return (params['slug'] ?? '').toLowerCase();
}
