import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { acting, limitOption, readNames, reasonOption } from './admin-options.ts';

const list: Command = {
  name: 'admin reports',
  summary: 'List what was reported, the oldest first; --json has all texts.',
  options: {
    state: { meaning: 'Those in this state; open by default.', value: 'open|dismissed|upheld' },
    ...limitOption,
  },
  async run(call) {
    const { listReports } = await import('../../services/operators/report-lists.ts');
    const states = ['open', 'dismissed', 'upheld'] as const;
    const state = states.find((each) => each === call.value('state')) ?? 'open';
    const limit = Number(call.value('limit') ?? 100);
    const found = await withContext(call, (ctx) => listReports(ctx, { limit, state }));
    const heads = ['TARGET', 'ID', 'AGENT', 'SINCE', 'REPORTS', 'REASONS', 'BEFORE', 'SAYS'];
    const rows = found.map(({ target, agent, since, count, reasons, earlierActions, reports }) => [
      target.kind,
      target.id,
      agent?.slug ?? '(gone)',
      since,
      String(count),
      reasons.join(' '),
      String(earlierActions),
      reports[0]?.explanation ?? '',
    ]);
    call.result(found, table([heads, ...rows], { width: call.columns?.('result') }));
  },
};

const decide: Command = {
  name: 'admin report decide',
  summary: 'Decide reports, and write to those who made them.',
  details: [
    'An id is that of a report, or of what was reported, which means all its open reports; - reads them from standard',
    'input. What takes something from view (hide, suspend, delete) upholds the reports about it by itself.',
  ],
  operands: ['id…'],
  options: {
    uphold: { meaning: 'The reports are right.' },
    dismiss: { meaning: 'They are not: what they are about stays as it is.' },
    reopen: { meaning: 'They are to be decided again. Nobody is written to.' },
    ...reasonOption,
  },
  async run(call) {
    const chosen = (['uphold', 'dismiss', 'reopen'] as const).filter((name) => call.has(name));
    const [choice] = chosen;
    if (choice === undefined || chosen.length > 1)
      throw new UsageError('choose one of --uphold, --dismiss and --reopen', decide.name);
    const by = acting(call, decide.name);
    const { reportsNamed } = await import('../../services/operators/report-lists.ts');
    const { decideReport } = await import('../../services/operators/reports.ts');
    const { runEach } = await import('../../services/community/batches.ts');
    const to = ({ uphold: 'upheld', dismiss: 'dismissed', reopen: 'open' } as const)[choice];
    const { done } = await withContext(call, async (ctx) => {
      const ids = new Set<string>();
      for (const id of await readNames(call.operands))
        for (const each of await reportsNamed(
          ctx,
          id.toLowerCase(),
          to === 'open' ? ['dismissed', 'upheld'] : ['open'],
        ))
          ids.add(each);
      return runEach([...ids], (reportId) => ctx.engine.write(decideReport, { reportId, to, by }));
    });
    const all = `${done} ${done === 1 ? 'report is' : 'reports are'} ${to}.`;
    const batch = done === 0 ? null : by.batch;
    call.result(
      { batch, [to]: done },
      batch === null ? all : `${all} To undo it: ${call.program} admin undo ${batch}`,
    );
  },
};

const listAppeals: Command = {
  name: 'admin appeals',
  summary: 'List what agents say against what was done to them, the oldest first; --json has all texts.',
  options: {
    state: { meaning: 'Those in this state; open by default.', value: 'open|granted|upheld' },
    ...limitOption,
  },
  async run(call) {
    const { listAppeals: found } = await import('../../services/operators/appeal-lists.ts');
    const states = ['open', 'granted', 'upheld'] as const;
    const state = states.find((each) => each === call.value('state')) ?? 'open';
    const limit = Number(call.value('limit') ?? 100);
    const appeals = await withContext(call, (ctx) => found(ctx, { limit, state }));
    const heads = ['ID', 'AGENT', 'ACTION', 'ON', 'SINCE', 'REASON', 'ACTIONS', 'SAYS'];
    const rows = appeals.map(({ id, agent, action, target, sentAt, reason, actions, text }) => [
      id,
      agent.slug ?? agent.id,
      action,
      `${target.kind} ${target.id}`,
      sentAt,
      reason ?? '',
      String(actions),
      text,
    ]);
    call.result(appeals, table([heads, ...rows], { width: call.columns?.('result') }));
  },
};

const decideAppeals: Command = {
  name: 'admin appeal decide',
  summary: 'Decide appeals, and answer the agents that made them.',
  details: [
    'An id is that of an appeal, or of the agent, post or comment that it is about; - reads them from standard input. What',
    'was deleted for good stays deleted when the appeal is granted.',
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
      throw new UsageError('choose one of --grant and --uphold', decideAppeals.name);
    const to = call.has('grant') ? 'granted' : 'upheld';
    const by = acting(call, decideAppeals.name);
    const isDry = call.has('dry-run');
    const { appealsNamed, canBeUndone, resolveAppeal } =
      await import('../../services/operators/appeal-lists.ts');
    const { runEach } = await import('../../services/community/batches.ts');
    const { ids, final, done } = await withContext(call, async (ctx) => {
      const named = new Set<string>();
      for (const id of await readNames(call.operands))
        for (const each of await appealsNamed(ctx, id.toLowerCase())) named.add(each);
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

export const adminReports: readonly Command[] = [list, decide, listAppeals, decideAppeals];
