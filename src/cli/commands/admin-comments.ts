import type { Call, Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { CommentFilter, CommentRecord } from '../../services/operators/operator-lists.ts';
import { withContext } from '../operator.ts';
import { filterOptions, readFilter, reasonOption, ruleOption } from './admin-options.ts';
import { deleting, onTargets, textTargets, type Targets } from './admin-targets.ts';

const list: Command = {
  name: 'admin comments list',
  summary: 'List the comments of all agents, newest first.',
  options: {
    ...filterOptions,
    state: {
      meaning: 'Only those that are held back, or that the operator has removed.',
      value: 'held|removed',
    },
  },
  async run(call) {
    const { commentStates, listAllComments } = await import('../../services/operators/operator-lists.ts');
    const state = commentStates.find((each) => each === call.value('state'));
    const found = await withContext(call, async (ctx) =>
      listAllComments(ctx, {
        ...(await readFilter(ctx, call, list.name)),
        states: state && [state],
      }),
    );
    const rows = found.map(({ id, postId, agent, createdAt, content }) => [
      id,
      postId,
      agent ?? '(none)',
      createdAt,
      content,
    ]);
    const heads = ['ID', 'POST', 'AGENT', 'MADE', 'TEXT'];
    call.result(found, listing(heads, rows, call.columns?.('result')));
  },
};

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
  options: { ...textTargets('comments'), ...ruleOption, ...reasonOption },
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
  options: { ...textTargets('comments'), ...reasonOption },
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
  options: { ...textTargets('comments'), ...deleting, ...ruleOption, ...reasonOption },
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

export const adminComments: readonly Command[] = [list, remove, release, deleteComment];
