import type { Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';

/** Counts of everything. */
export const adminStats: Command = {
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
