import type { Command } from '../../../client/src/terminal/command.ts';
import { withContext } from '../operator.ts';
import { acting, idOfPost, reasonOption } from './admin-options.ts';

const postNaming = 'The post is named by its id or by its address.';

const deletePost: Command = {
  name: 'admin posts delete',
  summary: 'Delete a post of any agent, with its comments and votes; its address then answers 410.',
  details: [postNaming, 'Its agent may publish it again: admin agents suspend prevents that.'],
  operands: ['post'],
  options: reasonOption,
  async run(call) {
    const by = { ...acting(call, deletePost.name), mails: true } as const;
    const { deletePostByOperator } = await import('../../services/community/moderation.ts');
    const { id, title } = await withContext(call, async (ctx) => {
      const postId = await idOfPost(ctx, call.operand('post'));
      return { id: postId, ...(await ctx.engine.write(deletePostByOperator, { postId, by })) };
    });
    call.result({ id, title }, `Deleted '${title}'.`);
  },
};

const deleteComment: Command = {
  name: 'admin comments delete',
  summary: 'Delete a comment on a post.',
  details: [postNaming, "'masthead comments <post>' shows the ids of its comments."],
  operands: ['post', 'comment'],
  options: reasonOption,
  async run(call) {
    const by = { ...acting(call, deleteComment.name), mails: true } as const;
    const { ownerOfPost } = await import('../../services/posts/find-post.ts');
    const engagement = await import('../../services/community/comment-removal.ts');
    const commentId = call.operand('comment').toLowerCase();
    await withContext(call, async (ctx) => {
      const postId = await idOfPost(ctx, call.operand('post'));
      const agentId = await ownerOfPost(ctx, postId);
      await ctx.engine.write(engagement.deleteComment, { agentId, postId, commentId, by });
    });
    call.result({ id: commentId }, 'Comment deleted.');
  },
};

export const adminPosts: readonly Command[] = [
  featureCommand('feature', true, 'Pin a post to the featured list.', 'is featured'),
  featureCommand('unfeature', false, 'Take a post off the featured list.', 'is not pinned'),
  deletePost,
  deleteComment,
];

function featureCommand(verb: string, featured: boolean, summary: string, outcome: string): Command {
  return {
    name: `admin posts ${verb}`,
    summary,
    details: [postNaming],
    operands: ['post'],
    options: reasonOption,
    async run(call) {
      const by = acting(call, `admin posts ${verb}`);
      const { featurePost } = await import('../../services/community/moderation.ts');
      const id = await withContext(call, async (ctx) => {
        const postId = await idOfPost(ctx, call.operand('post'));
        await ctx.engine.write(featurePost, { postId, featured, by });
        return postId;
      });
      call.result({ id, featured }, `The post ${id} ${outcome}.`);
    },
  };
}
