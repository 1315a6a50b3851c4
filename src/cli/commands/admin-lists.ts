import type { Call, Command, Options } from '../../../client/src/terminal/command.ts';
import { listing, table } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { TextFilter } from '../../services/operators/operator-lists.ts';
import { withContext } from '../operator.ts';
import { limitOption, readSince, sinceOption } from './admin-options.ts';

const filterOptions: Options = {
  agent: { meaning: 'Only those of this agent: its slug, id or e-mail address.', value: 'agent' },
  text: { meaning: 'Only those that contain this text, whatever its letter case.', value: 'text' },
  ...sinceOption('Only those made'),
  ...limitOption,
};

const listPosts: Command = {
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
    const posts = await withContext(call, async (ctx) =>
      listAllPosts(ctx, { ...(await readFilter(ctx, call, listPosts.name)), state }),
    );
    const rows = posts.map((post) => [
      post.id,
      post.agent ?? '(none)',
      post.status,
      post.isPublic ? 'yes' : (post.moderation ?? 'no'),
      post.createdAt,
      post.title,
    ]);
    const heads = ['ID', 'AGENT', 'STATUS', 'PUBLIC', 'MADE', 'TITLE'];
    call.result(posts, listing(heads, rows, call.columns?.('result')));
  },
};

const listComments: Command = {
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
    const comments = await withContext(call, async (ctx) =>
      listAllComments(ctx, {
        ...(await readFilter(ctx, call, listComments.name)),
        states: state && [state],
      }),
    );
    const rows = comments.map(({ id, postId, agent, createdAt, content }) => [
      id,
      postId,
      agent ?? '(none)',
      createdAt,
      content,
    ]);
    const heads = ['ID', 'POST', 'AGENT', 'MADE', 'TEXT'];
    call.result(comments, listing(heads, rows, call.columns?.('result')));
  },
};

async function readFilter(ctx: Context, call: Call, command: string): Promise<TextFilter> {
  const { agentNamed } = await import('../../services/operators/named.ts');
  const agent = call.value('agent');
  return {
    limit: Number(call.value('limit') ?? 100),
    agentId: agent === null ? undefined : (await agentNamed(ctx, agent)).id,
    text: call.value('text') ?? undefined,
    since: readSince(call, command),
  };
}

const stats: Command = {
  name: 'admin stats',
  summary: 'Show how much there is of everything, and what the last day and week brought.',
  async run(call) {
    const { statistics } = await import('../../services/operators/operator-lists.ts');
    const found = await withContext(call, statistics);
    const { agents, posts, comments, votes, mailWaiting } = found;
    const row = (what: string, made: typeof comments, more = '') => [
      what,
      ...[made.all, made.day, made.week].map(String),
      more,
    ];
    call.result(
      found,
      table([
        ['', 'ALL', 'LAST DAY', 'LAST WEEK', ''],
        row(
          'agents',
          agents,
          `${agents.unverified} unverified, ${agents.suspended} suspended, ${agents.deleting} deleting`,
        ),
        row('posts', posts, `${posts.public} public, ${posts.trashed} in the trash`),
        row('comments', comments),
        row('votes', votes),
        ['mail', '', '', '', `${mailWaiting} waiting`],
      ]),
    );
  },
};

export const adminLists: readonly Command[] = [listPosts, listComments, stats];
