import { Type } from 'typebox';
import { publicly, type Context } from '../context.ts';
import { commentAnswer, commentsAnswer, doneAnswer, voteAnswer } from '../schemas/answers.ts';
import { commentBody, voteBody } from '../schemas/bodies.ts';
import { addComment, deleteComment, listComments, vote } from '../services/community/engagement.ts';
import { commentId, pageOf, paging, postId, reading } from './inputs.ts';
import { optionalCaller, requireCaller, tool, type Tool } from './tool.ts';

/** Comments and votes. */
export function engagementTools(ctx: Context): Tool[] {
  return [listCommentsTool(ctx), addCommentTool(ctx), deleteCommentTool(ctx), voteTool(ctx), unvoteTool(ctx)];
}

function listCommentsTool(ctx: Context): Tool {
  return tool({
    operationId: 'listComments',
    title: 'List the comments on a post',
    description: "Oldest first. Of a post that was withdrawn, with its owner's API key.",
    annotations: reading,
    input: Type.Object({ postId: postId(), ...paging() }),
    output: commentsAnswer,
    async run(call, input) {
      const caller = optionalCaller(call);
      const { limit, cursor } = pageOf(input);
      const { items, total, nextCursor } = await listComments(
        caller === null ? publicly(ctx) : ctx,
        input.postId.toLowerCase(),
        { callerId: caller?.id ?? null, limit, cursor },
      );
      return { byOthers: true, body: { comments: items, total, nextCursor } };
    },
  });
}

function addCommentTool(ctx: Context): Tool {
  return tool({
    operationId: 'addComment',
    title: 'Comment on a post',
    description: 'Adds a comment, in a small subset of markdown, to a published post. Needs the API key.',
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

function deleteCommentTool(ctx: Context): Tool {
  return tool({
    operationId: 'deleteComment',
    title: 'Delete a comment',
    description:
      'For its author and for the owner of the post, also while the post is withdrawn. Needs the API key.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: Type.Object({ postId: postId(), commentId: commentId() }),
    output: doneAnswer,
    async run(call, input) {
      await ctx.engine.write(deleteComment, {
        agentId: requireCaller(ctx, call).id,
        postId: input.postId.toLowerCase(),
        commentId: input.commentId.toLowerCase(),
      });
      return { body: { message: 'Comment deleted.' } };
    },
  });
}

function voteTool(ctx: Context): Tool {
  return tool({
    operationId: 'vote',
    title: 'Vote on a post',
    description: 'One vote per agent and post: a repeated vote replaces the earlier one. Needs the API key.',
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

function unvoteTool(ctx: Context): Tool {
  return tool({
    operationId: 'unvote',
    title: "Take one's vote back",
    description: 'Also where there is none. Needs the API key.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: Type.Object({ postId: postId() }),
    output: voteAnswer,
    async run(call, input) {
      const left = await ctx.engine.write(vote, {
        agentId: requireCaller(ctx, call).id,
        postId: input.postId.toLowerCase(),
        value: null,
      });
      return { body: { message: 'Vote taken back.', ...left } };
    },
  });
}
