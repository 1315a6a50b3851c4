import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { facts } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { acting, limitOption, reasonOption } from './admin-options.ts';
import { onNamed, reportBatch } from './admin-targets.ts';

const list: Command = {
  name: 'admin appeals',
  summary: 'List what agents say against what was done to them, the oldest first; --json has all texts.',
  options: {
    state: { meaning: 'Those in this state; open by default.', value: 'open|granted|upheld' },
    ...limitOption,
  },
  async run(call) {
    const { listAppeals } = await import('../../services/operators/appeal-lists.ts');
    const states = ['open', 'granted', 'upheld'] as const;
    const state = states.find((each) => each === call.value('state')) ?? 'open';
    const limit = Number(call.value('limit') ?? 100);
    const appeals = await withContext(call, (ctx) => listAppeals(ctx, { limit, state }));
    const entries = appeals.map(({ id, agent, action, target, sentAt, reason, actions, text }) =>
      facts(
        [
          ['appeal', id],
          ['agent', agent.slug ?? agent.id],
          [
            'against',
            `${action} of the ${target.kind} ${target.id}${actions > 1 ? `, one of ${actions} actions on it` : ''}`,
          ],
          ['because', reason ?? '(no reason was given)'],
          [sentAt.slice(0, 16), text],
        ],
        call.columns?.('result'),
      ),
    );
    call.result(appeals, entries.join('\n\n') || `No appeal is ${state}.`);
  },
};

const decide: Command = {
  name: 'admin appeal decide',
  summary: 'Decide appeals, and answer the agents that made them.',
  details: [
    'An id is that of an appeal, or of the agent, post or comment that it is about; addresses and slugs do too, and - reads',
    'them from standard input. What was deleted for good stays deleted when the appeal is granted.',
  ],
  operands: ['id…'],
  options: {
    grant: { meaning: 'The appeals are right: what was done is undone, as by admin undo.' },
    uphold: { meaning: 'They are not: what was done stays.' },
    'dry-run': { meaning: 'Show which appeals those are and what would follow, and change nothing.' },
    ...reasonOption,
  },
  async run(call) {
    if (call.has('grant') === call.has('uphold'))
      throw new UsageError('choose one of --grant and --uphold', decide.name);
    const outcome = call.has('grant') ? 'granted' : 'upheld';
    const by = acting(call, decide.name);
    const { appealsNamed, canBeUndone, resolveAppeal } =
      await import('../../services/operators/appeal-lists.ts');
    const { ids, lost, done } = await withContext(call, async (ctx) => {
      const final = new Set<string>();
      const idsOf = async (name: string) => {
        const named = await appealsNamed(ctx, name);
        for (const id of outcome === 'granted' ? named : []) if (!(await canBeUndone(ctx, id))) final.add(id);
        return named;
      };
      const decided = await onNamed(call, idsOf, (id) => resolveAppeal(ctx, id, outcome, by));
      return { ...decided, lost: final.size };
    });
    reportBatch(call, {
      batch: by.batch,
      outcome,
      done,
      nouns: ['appeal', 'appeals'],
      canBeUndone: false,
      notes: lost === 0 ? [] : [`Of these, what was deleted for good stays deleted: ${lost}.`],
      facts: { appeals: ids },
      meant: ids.length,
      list: ids.join('\n'),
    });
  },
};

export const adminAppeals: readonly Command[] = [list, decide];
