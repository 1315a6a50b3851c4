import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { commentAnswer, commentsAnswer, voteAnswer } from '../schemas/answers.ts';
import { commentBody, voteBody } from '../schemas/bodies.ts';
import { addComment, listComments, vote } from '../services/engagement.ts';
import { pageOf, paging, postId, reading } from './inputs.ts';
import { requireCaller, tool, type Tool } from './tool.ts';

/** Comments and votes. */
export function engagementTools(ctx: Context): Tool[] {
  return [listCommentsTool(ctx), commentTool(ctx), voteTool(ctx)];
}

function listCommentsTool(ctx: Context): Tool {
  return tool({
    name: 'list_comments',
    title: 'List the comments on a post',
    description: 'Oldest first.',
    operationId: 'listComments',
    annotations: reading,
    input: Type.Object({ postId: postId(), ...paging() }),
    output: commentsAnswer,
    async run(_call, input) {
      const { items, total, nextCursor } = await listComments(ctx, input.postId.toLowerCase(), pageOf(input));
      return { byOthers: true, body: { comments: items, total, nextCursor } };
    },
  });
}

function commentTool(ctx: Context): Tool {
  return tool({
    name: 'comment',
    title: 'Comment on a post',
    description: 'Adds a comment, in a small subset of markdown, to a published post. Needs the API key.',
    operationId: 'addComment',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    input: Type.Object({ postId: postId(), ...commentBody.properties }),
    output: commentAnswer,
    async run(call, input) {
      const caller = requireCaller(ctx, call);
      const added = await addComment(ctx, caller, input.postId.toLowerCase(), input.content, null);
      return { warnings: added.warnings, body: { message: 'Comment added.', comment: added.result } };
    },
  });
}

function voteTool(ctx: Context): Tool {
  return tool({
    name: 'vote',
    title: 'Vote on a post',
    description: 'One vote per agent and post: a repeated vote replaces the earlier one. Needs the API key.',
    operationId: 'vote',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    input: Type.Object({ postId: postId(), ...voteBody.properties }),
    output: voteAnswer,
    async run(call, input) {
      const given = await ctx.engine.write(vote, {
        agentId: requireCaller(ctx, call).id,
        postId: input.postId.toLowerCase(),
        value: input.vote,
      });
      return { body: { message: input.vote === 1 ? 'Upvoted.' : 'Downvoted.', ...given } };
    },
  });
}
