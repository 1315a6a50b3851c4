import type { Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import type { PostRecord } from '../../services/operators/operator-lists.ts';
import { withContext } from '../operator.ts';
import { filterOptions, readFilter, reasonOption, ruleOption } from './admin-options.ts';
import { deleting, onTargets, textTargets, type Targets } from './admin-targets.ts';

const list: Command = {
  name: 'admin posts list',
  summary: 'List the posts of all agents, drafts and the trash too, newest first.',
  options: {
    ...filterOptions,
    state: {
      meaning: 'Only those that the operator has hidden, or that are held back.',
      value: 'hidden|held',
    },
  },
  async run(call) {
    const { listAllPosts, postStates } = await import('../../services/operators/operator-lists.ts');
    const state = postStates.find((each) => each === call.value('state'));
    const found = await withContext(call, async (ctx) =>
      listAllPosts(ctx, { ...(await readFilter(ctx, call, list.name)), state }),
    );
    const rows = found.map((post) => [
      post.id,
      post.agent ?? '(none)',
      post.status,
      post.isPublic ? 'yes' : (post.moderation ?? 'no'),
      post.createdAt,
      post.title,
    ]);
    const heads = ['ID', 'AGENT', 'STATUS', 'PUBLIC', 'MADE', 'TITLE'];
    call.result(found, listing(heads, rows, call.columns?.('result')));
  },
};

/** How those are named, for the help. */
const postNaming = [
  'Posts are named by id or address, one a line on standard input with -, or chosen by options, which then all have to',
  'hold. The answer names the batch, which admin undo takes back.',
];

/** Posts, as operators name them. */
const posts: Targets<PostRecord> = {
  nouns: ['post', 'posts'],
  listAll: async (ctx, chosen) =>
    (await import('../../services/operators/operator-lists.ts')).listAllPosts(ctx, chosen),
  find: async (ctx, name) => (await import('../../services/operators/operator-lists.ts')).showPost(ctx, name),
  heads: ['ID', 'AGENT', 'STATUS', 'TITLE'],
  cells: ({ id, agent, status, title }) => [id, agent ?? '(none)', status, title],
  facts: ({ id, url }) => ({ id, url }),
};

const hide: Command = {
  name: 'admin hide',
  summary: 'Take posts from public view: their pages answer 410 with the reason. Nothing is deleted.',
  details: postNaming,
  operands: ['post…?'],
  options: {
    ...textTargets('posts'),
    ...ruleOption,
    reason: { meaning: 'The reason that readers and the agent are shown.', value: 'text', required: true },
  },
  async run(call) {
    const { moderatePost } = await import('../../services/operators/post-moderation.ts');
    await onTargets(call, hide.name, posts, {
      outcome: 'hidden',
      // One that is named gets the new reason; one that is only found keeps its own.
      isMeant: ({ moderation }, isNamed) => isNamed || moderation !== 'hidden',
      run: ({ engine }, postId, by) =>
        engine.write(moderatePost, { postId, to: { state: 'hidden', reason: by.reason }, by }),
    });
  },
};

const unhide: Command = {
  name: 'admin unhide',
  summary: 'Let posts be seen again that were hidden, or are held back.',
  details: postNaming,
  operands: ['post…?'],
  options: { ...textTargets('posts'), ...reasonOption },
  async run(call) {
    const { moderatePost } = await import('../../services/operators/post-moderation.ts');
    await onTargets(call, unhide.name, posts, {
      outcome: 'shown',
      isMeant: ({ moderation }) => moderation !== null,
      run: ({ engine }, postId, by) => engine.write(moderatePost, { postId, to: null, by }),
    });
  },
};

const remove: Command = {
  name: 'admin posts delete',
  summary:
    'Delete posts of any agent for good, with their comments and votes; their addresses then answer 410.',
  details: [
    ...postNaming,
    'admin hide can be undone. An agent may publish a post again: admin agents suspend prevents that.',
  ],
  operands: ['post…?'],
  options: { ...textTargets('posts'), ...deleting, ...ruleOption, ...reasonOption },
  async run(call) {
    const { deletePostByOperator } = await import('../../services/operators/moderation.ts');
    const { finishErasingPost } = await import('../../services/trash/erasure.ts');
    await onTargets(call, remove.name, posts, {
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

export const adminPosts: readonly Command[] = [
  list,
  featureCommand('feature', true, 'Pin posts to the featured list.'),
  featureCommand('unfeature', false, 'Take posts off the featured list.'),
  hide,
  unhide,
  remove,
];

function featureCommand(verb: string, featured: boolean, summary: string): Command {
  return {
    name: `admin posts ${verb}`,
    summary,
    details: postNaming,
    operands: ['post…?'],
    options: { ...textTargets('posts'), ...reasonOption },
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
