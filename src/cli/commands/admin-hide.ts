import { UsageError, type Call, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { PostFilter, PostRecord } from '../../services/community/operator-lists.ts';
import type { PostState } from '../../services/operators/post-moderation.ts';
import { withContext } from '../operator.ts';
import { acting, agentOptions, idOfPost, readAgentFilter, readNames, reasonOption } from './admin-options.ts';

const options = {
  ...agentOptions('All posts of agents'),
  text: { meaning: 'All posts with this text, whatever its letter case.', value: 'text' },
  'created-since': {
    meaning: 'All posts made at or after this time: 2026-01-31, or with T09:30:00Z.',
    value: 'time',
  },
  mail: { meaning: 'Write to the owners of many posts too; of one it is always done.' },
  'dry-run': { meaning: 'Show which posts those are, and change nothing.' },
} as const;

const naming = [
  'Posts are named by id or address, one a line on standard input with -, or chosen by options, which then all have to',
  'hold. The answer names the batch, which admin undo takes back.',
];

const hide: Command = {
  name: 'admin hide',
  summary: 'Take posts from public view: their pages answer 410 with the reason. Nothing is deleted.',
  details: naming,
  operands: ['post…?'],
  options: {
    ...options,
    reason: { meaning: 'The reason that readers and the agent are shown.', value: 'text', required: true },
  },
  run: (call) =>
    onPosts(call, hide.name, 'hidden', {
      // One that is named gets the new reason; one that is only found keeps its own.
      isMeant: ({ moderation }, isNamed) => isNamed || moderation !== 'hidden',
      to: (reason) => ({ state: 'hidden', reason }),
    }),
};

const unhide: Command = {
  name: 'admin unhide',
  summary: 'Let posts be seen again that were hidden, or are held back.',
  details: naming,
  operands: ['post…?'],
  options: { ...options, ...reasonOption },
  run: (call) =>
    onPosts(call, unhide.name, 'shown', { isMeant: ({ moderation }) => moderation !== null, to: () => null }),
};

type Work = {
  readonly isMeant: (post: PostRecord, isNamed: boolean) => boolean;
  readonly to: (reason: string | null) => PostState;
};

async function onPosts(call: Call, command: string, outcome: string, { isMeant, to }: Work): Promise<void> {
  const { runEach } = await import('../../services/community/batches.ts');
  const { moderatePost } = await import('../../services/operators/post-moderation.ts');
  const { batch, ...named } = acting(call, command);
  const filter = readChoice(call, command);
  const isDry = call.has('dry-run');
  const { posts, done } = await withContext(call, async (ctx) => {
    const found = await chosen(ctx, call, filter);
    const meant = found.filter((post) => isMeant(post, filter === undefined));
    const ids = isDry ? [] : meant.map(({ id }) => id);
    const mails = ids.length === 1 || call.has('mail') ? ({ mails: true } as const) : {};
    const by = { ...named, batch, ...mails };
    const work = (postId: string) => ctx.engine.write(moderatePost, { postId, to: to(by.reason), by });
    return { posts: meant, ...(await runEach(ids, work)) };
  });
  const facts = {
    batch: done === 0 ? null : batch,
    [outcome]: done,
    posts: posts.map(({ id, url }) => ({ id, url })),
  };
  const rows = posts.map(({ id, agent, status, title }) => [id, agent ?? '(none)', status, title]);
  if (isDry)
    return call.result(
      facts,
      table([['ID', 'AGENT', 'STATUS', 'TITLE'], ...rows], { width: call.columns?.('result') }),
      [`${posts.length} posts would be ${outcome}. Nothing was changed.`],
    );
  const all = `${done} ${done === 1 ? 'post is' : 'posts are'} ${outcome}.`;
  call.result(facts, done === 0 ? all : `${all} To undo it: ${call.program} admin undo ${batch}`);
}

type Filter = Pick<PostFilter, 'domain' | 'mailboxKey' | 'text' | 'since'>;

/** What the options choose; undefined where posts are named. Throws UsageError where neither is, or both are. */
function readChoice(call: Call, command: string): Filter | undefined {
  const filter = readAgentFilter(call, command);
  const isNamed = call.operands.length > 0;
  if (!filter && !isNamed)
    throw new UsageError(
      'name posts, or choose them by --domain, --from-mailbox, --text or --created-since',
      command,
    );
  if (filter && isNamed) throw new UsageError('name posts or choose them, not both', command);
  return filter;
}

/** Posts chosen at once: more are another command. */
const mostChosen = 1_000_000;

async function chosen(ctx: Context, { operands }: Call, filter: Filter | undefined): Promise<PostRecord[]> {
  const { listAllPosts, showPost } = await import('../../services/community/operator-lists.ts');
  if (filter) return listAllPosts(ctx, { limit: mostChosen, ...filter });
  const posts = new Map<string, PostRecord>();
  for (const name of await readNames(operands)) {
    const post = await showPost(ctx, await idOfPost(ctx, name));
    posts.set(post.id, post);
  }
  return [...posts.values()];
}

export const adminHide: readonly Command[] = [hide, unhide];
