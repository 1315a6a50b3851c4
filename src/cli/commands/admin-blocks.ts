import { UsageError, type Call, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import { blockKinds, parseBlock, type BlockKind } from '../../rules/text/source-blocks.ts';
import { withContext } from '../operator.ts';
import { acting, agentOptions, readAgentFilter, readNames, reasonOption } from './admin-options.ts';

const kinds = blockKinds.join('|');
const naming = [
  `The kind is one of ${blockKinds.join(', ')}. email, email-domain and address (one, or a CIDR range) refuse`,
  'registrations; phrase (letter case and accents aside) and link-host hold back posts and comments that have them from',
  'then on, until admin unhide or admin comments release. Domains and hosts are meant with all below them. Values are read a line each with -.',
];
const dryRun = { 'dry-run': { meaning: 'Show what would be done, and change nothing.' } } as const;

const block: Command = {
  name: 'admin block',
  summary: 'Refuse registrations from a source, or hold back what has a phrase or leads to a host.',
  details: naming,
  operands: ['kind', 'value…'],
  options: { ...dryRun, ...reasonOption },
  async run(call) {
    const { blockSource, listBlocks } = await import('../../services/trust/source-blocks.ts');
    const { kind, values } = await readSources(call, block.name);
    const by = acting(call, block.name);
    const changed = await withContext(call, async (ctx) => {
      const present = new Set((await listBlocks(ctx, [kind])).map(({ value }) => value));
      const wanted = values.filter((value) => !present.has(value));
      if (!call.has('dry-run'))
        for (const value of wanted) await ctx.engine.write(blockSource, { kind, value, by });
      return wanted;
    });
    report(call, { kind, changed, batch: by.batch, done: 'blocked' });
  },
};

const unblock: Command = {
  name: 'admin unblock',
  summary: 'Lift what admin block has blocked. What was held back stays so until admin unhide.',
  details: naming,
  operands: ['kind', 'value…'],
  options: { ...dryRun, ...reasonOption },
  async run(call) {
    const { listBlocks, setBlock } = await import('../../services/trust/source-blocks.ts');
    const { kind, values } = await readSources(call, unblock.name);
    const by = acting(call, unblock.name);
    const changed = await withContext(call, async (ctx) => {
      const present = (await listBlocks(ctx, [kind])).filter(({ value }) => values.includes(value));
      if (!call.has('dry-run'))
        for (const { id } of present) await ctx.engine.write(setBlock, { id, isOn: false, by });
      return present.map(({ value }) => value);
    });
    report(call, { kind, changed, batch: by.batch, done: 'unblocked' });
  },
};

const list: Command = {
  name: 'admin blocks',
  summary: 'List what is blocked, the newest first.',
  options: { kind: { meaning: 'Only those of this kind.', value: kinds } },
  async run(call) {
    const { listBlocks } = await import('../../services/trust/source-blocks.ts');
    const only = blockKinds.filter((kind) => kind === (call.value('kind') ?? kind));
    const blocks = await withContext(call, (ctx) => listBlocks(ctx, only));
    const rows = blocks.map(({ kind, value, created_at: at, by, reason }) => [
      kind,
      value,
      at,
      by,
      reason ?? '',
    ]);
    call.result(
      blocks.map(({ kind, value, created_at: createdAt, by, reason }) => ({
        kind,
        value,
        createdAt,
        by,
        reason,
      })),
      table([['KIND', 'VALUE', 'SINCE', 'BY', 'REASON'], ...rows], { width: call.columns?.('result') }),
    );
  },
};

/** What is named, in the form that it is stored in. Throws UsageError. */
async function readSources(call: Call, command: string): Promise<{ kind: BlockKind; values: string[] }> {
  const [given = '', ...typed] = call.operands;
  const kind = blockKinds.find((each) => each === given);
  if (!kind) throw new UsageError(`'${given}' is not a kind of block: ${blockKinds.join(', ')}`, command);
  const parsed = (await readNames(typed)).map((text) => ({ text, ...parseBlock(kind, text) }));
  for (const one of parsed) if ('fault' in one) throw new UsageError(`'${one.text}' ${one.fault}`, command);
  return { kind, values: [...new Set(parsed.flatMap((one) => ('value' in one ? one.value : [])))] };
}

type Report = { kind: BlockKind; changed: readonly string[]; batch: string; done: 'blocked' | 'unblocked' };

function report(call: Call, { kind, changed, batch, done }: Report): void {
  const isDry = call.has('dry-run');
  const count = isDry ? 0 : changed.length;
  const facts = { batch: count === 0 ? null : batch, kind, [done]: count, values: changed };
  if (isDry)
    return call.result(facts, changed.join('\n'), [
      `${changed.length} would be ${done}. Nothing was changed.`,
    ]);
  const all = `${count} ${count === 1 ? 'is' : 'are'} ${done}.`;
  call.result(facts, count === 0 ? all : `${all} To undo it: ${call.program} admin undo ${batch}`);
}

const release: Command = {
  name: 'admin comments release',
  summary: 'Publish comments that are held back.',
  details: [
    'Comments are named by id, one a line on standard input with -, or chosen by options, which then all have to hold.',
    'The answer names the batch, which admin undo takes back.',
  ],
  operands: ['comment…?'],
  options: { ...agentOptions('All of agents'), ...dryRun, ...reasonOption },
  async run(call) {
    const { listAllComments } = await import('../../services/community/operator-lists.ts');
    const { runEach } = await import('../../services/community/batches.ts');
    const { setCommentHeld } = await import('../../services/trust/held-comments.ts');
    const by = acting(call, release.name);
    const filter = readAgentFilter(call, release.name);
    if ((filter === undefined) === (call.operands.length === 0))
      throw new UsageError('name comments or choose them by options, and not both', release.name);
    const names = new Set((await readNames(call.operands)).map((id) => id.toLowerCase()));
    const { comments, done } = await withContext(call, async (ctx) => {
      const held = await listAllComments(ctx, { limit: 1_000_000, isHeld: true, ...filter });
      const meant = held.filter(({ id }) => filter !== undefined || names.has(id));
      const ids = call.has('dry-run') ? [] : meant.map(({ id }) => id);
      const work = (commentId: string) => ctx.engine.write(setCommentHeld, { commentId, isHeld: false, by });
      return { comments: meant, ...(await runEach(ids, work)) };
    });
    const facts = { batch: done === 0 ? null : by.batch, released: done, comments };
    const rows = comments.map(({ id, agent, content }) => [id, agent ?? '(none)', content]);
    if (call.has('dry-run'))
      return call.result(facts, table(rows, { width: call.columns?.('result') }), [
        `${comments.length} would be released. Nothing was changed.`,
      ]);
    const all = `${done} ${done === 1 ? 'is' : 'are'} released.`;
    call.result(facts, done === 0 ? all : `${all} To undo it: ${call.program} admin undo ${by.batch}`);
  },
};

export const adminBlocks: readonly Command[] = [block, unblock, list, release];
