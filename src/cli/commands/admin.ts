import type { Call, Command } from '../../../client/src/terminal/command.ts';
import type { Context } from '../../context.ts';
import type { CommentFilter, CommentRecord } from '../../services/operators/operator-lists.ts';
import { postNaming, postOptions, posts } from './admin-hide.ts';
import { agentOptions, reasonOption, ruleOption } from './admin-options.ts';
import { deleting, onTargets, type Targets } from './admin-targets.ts';

const deletePost: Command = {
  name: 'admin posts delete',
  summary:
    'Delete posts of any agent for good, with their comments and votes; their addresses then answer 410.',
  details: [
    ...postNaming,
    'admin hide can be undone. An agent may publish a post again: admin agents suspend prevents that.',
  ],
  operands: ['post…?'],
  options: { ...postOptions, ...deleting, ...ruleOption, ...reasonOption },
  async run(call) {
    const { deletePostByOperator } = await import('../../services/operators/moderation.ts');
    const { finishErasingPost } = await import('../../services/trash/erasure.ts');
    await onTargets(call, deletePost.name, posts, {
      outcome: 'deleted',
      isFinal: true,
      isMeant: () => true,
      async run(ctx, postId, by) {
        const { agentId, isUnfinished } = await ctx.engine.write(deletePostByOperator, { postId, by });
        if (isUnfinished) await finishErasingPost(ctx, { agentId, postId });
      },
    });
  },
};

const commentOptions = {
  ...agentOptions('All comments of agents'),
  text: { meaning: 'All comments with this text, whatever its letter case.', value: 'text' },
  'created-since': {
    meaning: 'All comments made at or after this time: 2026-01-31, or with T09:30:00Z.',
    value: 'time',
  },
  mail: { meaning: 'Write to the owners of many comments too; of one it is always done.' },
  'dry-run': { meaning: 'Show which comments those are, and change nothing.' },
} as const;

const commentNaming = [
  'Comments are named by id or address, one a line on standard input with -, or chosen by options, which then all have',
  'to hold.',
  "'masthead admin comments list' and 'masthead comments <post>' show ids.",
];

/** Comments, as operators name them. */
function comments(states?: CommentFilter['states']): Targets<CommentRecord> {
  return {
    nouns: ['comment', 'comments'],
    listAll: async (ctx, chosen) =>
      (await import('../../services/operators/operator-lists.ts')).listAllComments(ctx, {
        ...chosen,
        states,
      }),
    find: async (ctx, name) =>
      (await import('../../services/operators/operator-lists.ts')).showComment(ctx, name),
    heads: ['ID', 'AGENT', 'TEXT'],
    cells: ({ id, agent, content }) => [id, agent ?? '(none)', content],
    facts: (comment) => comment,
  };
}

const remove: Command = {
  name: 'admin comments remove',
  summary: 'Take comments from public view. Nothing is deleted: admin comments release gives them back.',
  details: [...commentNaming, 'The answer names the batch, which admin undo takes back.'],
  operands: ['comment…?'],
  options: { ...commentOptions, ...ruleOption, ...reasonOption },
  async run(call) {
    const { moderateComment } = await import('../../services/operators/comment-moderation.ts');
    await onTargets(call, remove.name, comments(), {
      outcome: 'removed',
      isMeant: ({ removedReason }) => removedReason === null,
      run: ({ engine }, commentId, by) => engine.write(moderateComment, { commentId, to: 'removed', by }),
    });
  },
};

const release: Command = {
  name: 'admin comments release',
  summary: 'Publish comments that are held back, or were removed.',
  details: [...commentNaming, 'The answer names the batch, which admin undo takes back.'],
  operands: ['comment…?'],
  options: { ...commentOptions, ...reasonOption },
  async run(call) {
    const { moderateComment } = await import('../../services/operators/comment-moderation.ts');
    await onTargets(call, release.name, comments(['held', 'removed']), {
      outcome: 'released',
      isMeant: ({ heldAt }) => heldAt !== null,
      run: ({ engine }, commentId, by) => engine.write(moderateComment, { commentId, to: null, by }),
    });
  },
};

const deleteComment: Command = {
  name: 'admin comments delete',
  summary: 'Delete comments for good.',
  details: [...commentNaming, 'The post may stand before a comment. admin comments remove can be undone.'],
  operands: ['comment…?'],
  options: { ...commentOptions, ...deleting, ...ruleOption, ...reasonOption },
  async run(call) {
    const { ownerOfPost } = await import('../../services/posts/find-post.ts');
    const { showComment } = await import('../../services/operators/operator-lists.ts');
    const removal = await import('../../services/community/comment-removal.ts');
    await onTargets(call, deleteComment.name, afterPost(call), {
      outcome: 'deleted',
      isFinal: true,
      isMeant: () => true,
      async run(ctx, commentId, by) {
        const { postId } = await showComment(ctx, commentId);
        const agentId = await ownerOfPost(ctx, postId);
        await ctx.engine.write(removal.deleteComment, { agentId, postId, commentId, by });
      },
    });
  },
};

/** Comments of which the first of two names may be their post, as the command was before it took many. */
function afterPost({ operands }: Call): Targets<CommentRecord> {
  const plain = comments();
  const [first, second] = operands;
  return {
    ...plain,
    async find(ctx, name) {
      const isPost = operands.length === 2 && name === first && (await namesPost(ctx, name));
      return plain.find(ctx, isPost ? (second ?? '') : name);
    },
  };
}

async function namesPost(ctx: Context, name: string): Promise<boolean> {
  const { commentAt } = await import('../../services/posts/which-post.ts');
  if (URL.canParse(name)) return commentAt(name) === null;
  const { listAllPosts } = await import('../../services/operators/operator-lists.ts');
  return (await listAllPosts(ctx, { limit: 1, id: name.toLowerCase() })).length > 0;
}

export const adminPosts: readonly Command[] = [
  featureCommand('feature', true, 'Pin posts to the featured list.'),
  featureCommand('unfeature', false, 'Take posts off the featured list.'),
  deletePost,
  remove,
  release,
  deleteComment,
];

function featureCommand(verb: string, featured: boolean, summary: string): Command {
  return {
    name: `admin posts ${verb}`,
    summary,
    details: postNaming,
    operands: ['post…?'],
    options: { ...postOptions, ...reasonOption },
    async run(call) {
      const { featurePost } = await import('../../services/operators/moderation.ts');
      await onTargets(call, `admin posts ${verb}`, posts, {
        outcome: `${verb}d`,
        isMeant: ({ isFeatured }) => isFeatured !== featured,
        run: ({ engine }, postId, by) => engine.write(featurePost, { postId, featured, by }),
      });
    },
  };
}
