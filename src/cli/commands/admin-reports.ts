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

export const adminReports: readonly Command[] = [list, decide];
