import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { facts } from '../../../client/src/terminal/format.ts';
import type { Reported } from '../../services/operators/report-lists.ts';
import { withContext } from '../operator.ts';
import { acting, limitOption, reasonOption } from './admin-options.ts';
import { dryRun, onNamed, reportBatch } from './admin-targets.ts';

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
    const width = call.columns?.('result');
    const entries = found.map((each) => facts(entryOf(each), width));
    call.result(found, entries.join('\n\n') || `No report is ${state}.`);
  },
};

/** Of a text: `--json` has all of it. */
const longestText = 400;

/** What an operator decides by: what is reported, whose it is, what it says, and what is said about it. */
function entryOf({ target, agent, count, earlierActions, texts, present, reports }: Reported) {
  const rows: [string, string][] = [
    [target.kind, target.url],
    ['id', target.id],
    ['agent', agent ? ownerOf(agent, earlierActions) : 'deleted'],
    ['says', excerpt(present) ?? '(deleted)'],
  ];
  for (const text of texts) if (text !== present) rows.push(['said then', excerpt(text) ?? '']);
  for (const { at, by, name, reason, explanation } of reports) {
    const who = [...new Set([name, by])].filter((each) => each !== null).join(', ');
    rows.push([reason, `${at.slice(0, 10)}, ${who || 'by nobody named'}: ${explanation}`]);
  }
  if (count > reports.length) rows.push(['', `${count - reports.length} more`]);
  return rows;
}

function ownerOf(
  { slug, createdAt, suspended, posts, comments }: NonNullable<Reported['agent']>,
  earlier: number,
) {
  const state = suspended ? ', suspended' : '';
  return `${slug ?? '(none)'}, since ${createdAt.slice(0, 10)}${state}; posts: ${posts}, comments: ${comments}, earlier actions against it: ${earlier}`;
}

function excerpt(text: string | null): string | null {
  const line = text === null ? null : text.replaceAll(/\s+/g, ' ');
  return line === null || line.length <= longestText ? line : `${line.slice(0, longestText)}…`;
}

const decide: Command = {
  name: 'admin report decide',
  summary: 'Decide reports, and write to those who made them.',
  details: [
    'An id is that of a report, or of what was reported, which means all its open reports; addresses and slugs do too, and',
    '- reads them from standard input. What takes something from view (hide, suspend, delete) upholds the reports about it by itself.',
  ],
  operands: ['id…'],
  options: {
    uphold: { meaning: 'The reports are right.' },
    dismiss: { meaning: 'They are not: what they are about stays as it is.' },
    reopen: { meaning: 'They are to be decided again. Nobody is written to.' },
    ...dryRun('reports'),
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
    const outcome = ({ uphold: 'upheld', dismiss: 'dismissed', reopen: 'open' } as const)[choice];
    const { ids, done } = await withContext(call, (ctx) =>
      onNamed(
        call,
        (id) => reportsNamed(ctx, id, outcome === 'open' ? ['dismissed', 'upheld'] : ['open']),
        (reportId) => ctx.engine.write(decideReport, { reportId, to: outcome, by }),
      ),
    );
    reportBatch(call, {
      batch: by.batch,
      outcome,
      done,
      nouns: ['report', 'reports'],
      facts: { reports: ids },
      meant: ids.length,
      list: ids.join('\n'),
    });
  },
};

export const adminReports: readonly Command[] = [list, decide];
