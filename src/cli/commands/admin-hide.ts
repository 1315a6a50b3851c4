import type { Command } from '../../../client/src/terminal/command.ts';
import type { PostRecord } from '../../services/operators/operator-lists.ts';
import { agentOptions, reasonOption, ruleOption } from './admin-options.ts';
import { onTargets, type Targets } from './admin-targets.ts';

/** What a command that takes many posts is given. */
export const postOptions = {
  ...agentOptions('All posts of agents'),
  text: { meaning: 'All posts with this text, whatever its letter case.', value: 'text' },
  'created-since': {
    meaning: 'All posts made at or after this time: 2026-01-31, or with T09:30:00Z.',
    value: 'time',
  },
  mail: { meaning: 'Write to the owners of many posts too; of one it is always done.' },
  'dry-run': { meaning: 'Show which posts those are, and change nothing.' },
} as const;

/** How those are named, for the help. */
export const postNaming = [
  'Posts are named by id or address, one a line on standard input with -, or chosen by options, which then all have to',
  'hold. The answer names the batch, which admin undo takes back.',
];

const hide: Command = {
  name: 'admin hide',
  summary: 'Take posts from public view: their pages answer 410 with the reason. Nothing is deleted.',
  details: postNaming,
  operands: ['post…?'],
  options: {
    ...postOptions,
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
  options: { ...postOptions, ...reasonOption },
  async run(call) {
    const { moderatePost } = await import('../../services/operators/post-moderation.ts');
    await onTargets(call, unhide.name, posts, {
      outcome: 'shown',
      isMeant: ({ moderation }) => moderation !== null,
      run: ({ engine }, postId, by) => engine.write(moderatePost, { postId, to: null, by }),
    });
  },
};

/** Posts, as operators name them. */
export const posts: Targets<PostRecord> = {
  nouns: ['post', 'posts'],
  listAll: async (ctx, chosen) =>
    (await import('../../services/operators/operator-lists.ts')).listAllPosts(ctx, chosen),
  find: async (ctx, name) => (await import('../../services/operators/operator-lists.ts')).showPost(ctx, name),
  heads: ['ID', 'AGENT', 'STATUS', 'TITLE'],
  cells: ({ id, agent, status, title }) => [id, agent ?? '(none)', status, title],
  facts: ({ id, url }) => ({ id, url }),
};

export const adminHide: readonly Command[] = [hide, unhide];
