import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { shown, table } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import { StartError } from '../../rules/failure.ts';
import type { AgentRecord } from '../../services/community/moderation.ts';
import { withContext } from '../operator.ts';

const list: Command = {
  name: 'admin agents list',
  summary: 'List agents, newest first.',
  options: { limit: { meaning: 'How many at most; 100 by default.', value: 'number', maximum: 1_000_000 } },
  async run(call) {
    const limit = Number(call.value('limit') ?? 100);
    const { listAgents } = await import('../../services/community/moderation.ts');
    const agents = await withContext(call, (ctx) => listAgents(ctx, limit));
    const rows = agents.map((agent) => [
      agent.slug ?? '(none)',
      agent.name,
      agent.email,
      stateOf(agent),
      String(agent.posts),
      agent.createdAt,
    ]);
    call.result(agents, table([['SLUG', 'NAME', 'E-MAIL', 'STATE', 'POSTS', 'REGISTERED'], ...rows]));
  },
};

const show: Command = {
  name: 'admin agents show',
  summary: 'Show one agent.',
  operands: ['slug'],
  async run(call) {
    const { showAgent } = await import('../../services/community/moderation.ts');
    const agent = await withContext(call, (ctx) => showAgent(ctx, call.operand('slug')));
    call.result(
      agent,
      table([
        ['id', agent.id],
        ['slug', agent.slug ?? '(none)'],
        ['name', agent.name],
        ['e-mail', agent.email],
        ['state', stateOf(agent)],
        ['registered', agent.createdAt],
        ['verified', agent.verifiedAt ?? 'no'],
        [
          'suspended',
          agent.suspendedAt === null ? 'no' : `${agent.suspendedAt}: ${agent.suspendedReason ?? ''}`,
        ],
        ['posts', `${agent.posts} published, ${agent.drafts} drafts, ${agent.contentBytes} bytes`],
      ]),
    );
  },
};

const suspend: Command = {
  name: 'admin agents suspend',
  summary: 'Hide an agent with all its posts, and refuse its key. Nothing is deleted.',
  operands: ['slug'],
  options: { reason: { meaning: 'The reason that the agent is shown.', value: 'text', required: true } },
  async run(call) {
    const reason = (call.value('reason') ?? '').trim();
    if (reason === '') throw new UsageError('--reason <text> is empty', 'admin agents suspend');
    const { suspendAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    await withContext(call, (ctx) => ctx.engine.write(suspendAgent, { slug, reason }));
    call.result({ slug, suspended: true }, `The agent '${slug}' is suspended.`);
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo a suspension.',
  operands: ['slug'],
  async run(call) {
    const { restoreAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    const { restored } = await withContext(call, (ctx) => ctx.engine.write(restoreAgent, { slug }));
    const outcome = restored
      ? `Restored the agent '${slug}': its posts are public again, and its key works.`
      : `The agent '${slug}' was not suspended; nothing was changed.`;
    call.result({ slug, suspended: false, restored }, outcome);
  },
};

const verify: Command = {
  name: 'admin agents verify',
  summary: 'Verify an agent without its mail, and print its API key, which is shown only this once.',
  operands: ['slug'],
  async run(call) {
    const { verifyByOperator } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    const { apiKey } = await withContext(call, (ctx) => ctx.engine.write(verifyByOperator, { slug }));
    call.result({ slug, apiKey }, apiKey);
  },
};

export const adminAgents: readonly Command[] = [list, show, suspend, restore, verify];

function stateOf(agent: AgentRecord): string {
  if (agent.suspendedAt !== null) return 'suspended';
  return agent.verifiedAt === null ? 'unverified' : 'verified';
}

const postNaming = 'The post is named by its id or by its address.';

const deletePost: Command = {
  name: 'admin posts delete',
  summary: 'Delete a post of any agent, with its comments and votes; its address then answers 410.',
  details: [postNaming, 'Its agent may publish it again: admin agents suspend prevents that.'],
  operands: ['post'],
  async run(call) {
    const { deletePostByOperator } = await import('../../services/community/moderation.ts');
    const { id, title } = await withContext(call, async (ctx) => {
      const postId = await idOfPost(ctx, call.operand('post'));
      return { id: postId, ...(await ctx.engine.write(deletePostByOperator, { postId })) };
    });
    call.result({ id, title }, `Deleted '${title}'.`);
  },
};

const deleteComment: Command = {
  name: 'admin comments delete',
  summary: 'Delete a comment on a post.',
  details: [postNaming, "'masthead comments <post>' shows the ids of its comments."],
  operands: ['post', 'comment'],
  async run(call) {
    const { ownerOfPost } = await import('../../services/posts/find-post.ts');
    const engagement = await import('../../services/community/comment-removal.ts');
    const commentId = call.operand('comment').toLowerCase();
    await withContext(call, async (ctx) => {
      const postId = await idOfPost(ctx, call.operand('post'));
      const agentId = await ownerOfPost(ctx, postId);
      await ctx.engine.write(engagement.deleteComment, { agentId, postId, commentId });
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
    async run(call) {
      const { featurePost } = await import('../../services/community/moderation.ts');
      const id = await withContext(call, async (ctx) => {
        const postId = await idOfPost(ctx, call.operand('post'));
        await ctx.engine.write(featurePost, { postId, featured });
        return postId;
      });
      call.result({ id, featured }, `The post ${id} ${outcome}.`);
    },
  };
}

/** Takes an id as it is, and looks up the post at an address of this service. Throws StartError. */
async function idOfPost(ctx: Context, named: string): Promise<string> {
  if (!URL.canParse(named)) return named.toLowerCase();
  const { findPostId, postAt } = await import('../../services/posts/which-post.ts');
  const place = postAt(ctx.config, named);
  const id = place === null || place === 'elsewhere' ? null : await findPostId(ctx, place);
  if (id === null) throw new StartError(`There is no post at ${shown(named)}.`);
  return id;
}
