import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { facts } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { acting, limitOption, readNames, reasonOption } from './admin-options.ts';

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
    const to = call.has('grant') ? 'granted' : 'upheld';
    const by = acting(call, decide.name);
    const isDry = call.has('dry-run');
    const { appealsNamed, canBeUndone, resolveAppeal } =
      await import('../../services/operators/appeal-lists.ts');
    const { runEach } = await import('../../services/operators/batches.ts');
    const { ids, final, done } = await withContext(call, async (ctx) => {
      const named = new Set<string>();
      for (const id of await readNames(call.operands))
        for (const each of await appealsNamed(ctx, id)) named.add(each);
      const lost = [];
      for (const id of to === 'granted' ? named : []) if (!(await canBeUndone(ctx, id))) lost.push(id);
      const run = await runEach(isDry ? [] : [...named], (id) => resolveAppeal(ctx, id, to, by));
      return { ids: [...named], final: lost.length, done: run.done };
    });
    const batch = done === 0 ? null : by.batch;
    const count = isDry ? ids.length : done;
    const verb = isDry ? 'would be' : count === 1 ? 'is' : 'are';
    call.result(
      { batch, [to]: done, appeals: ids },
      `${count} ${count === 1 ? 'appeal' : 'appeals'} ${verb} ${to}.`,
      final === 0 ? [] : [`Of these, what was deleted for good stays deleted: ${final}.`],
    );
  },
};

export const adminAppeals: readonly Command[] = [list, decide];
