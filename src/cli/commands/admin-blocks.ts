import { UsageError, type Call, type Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import { blockKinds, parseBlock, type BlockKind } from '../../rules/source-blocks.ts';
import { withContext } from '../operator.ts';
import { acting, readNames, reasonOption } from './admin-options.ts';
import { reportBatch } from './admin-targets.ts';

const kinds = blockKinds.join('|');
const naming = [
  `The kind is one of ${blockKinds.join(', ')}. email, email-domain and address (one, or a CIDR range) refuse`,
  'registrations; phrase (letter case and accents aside) and link-host hold back posts and comments that have them from',
  'then on, until admin unhide or admin comments release; media, the SHA-256 of a picture as it is sent or served, refuses it and takes it down. Domains and hosts are meant with all below them. Values are read a line each with -.',
];
const dryRun = { 'dry-run': { meaning: 'Show what would be done, and change nothing.' } } as const;

const block: Command = {
  name: 'admin block',
  summary: 'Refuse registrations from a source, or hold back what has a phrase or leads to a host.',
  details: naming,
  operands: ['kind', 'value…'],
  options: { ...dryRun, ...reasonOption },
  async run(call) {
    const { blockSource, listSourceBlocks } = await import('../../services/trust/source-blocks.ts');
    const { kind, values } = await readSources(call, block.name);
    const by = acting(call, block.name);
    const changed = await withContext(call, async (ctx) => {
      const present = new Set((await listSourceBlocks(ctx, [kind])).map(({ value }) => value));
      const wanted = values.filter((value) => !present.has(value));
      if (!call.has('dry-run'))
        for (const value of wanted) await ctx.engine.write(blockSource, { kind, value, by });
      return wanted;
    });
    report(call, { kind, changed, batch: by.batch, outcome: 'blocked' });
  },
};

const unblock: Command = {
  name: 'admin unblock',
  summary: 'Lift what admin block has blocked. What was held back stays so until admin unhide.',
  details: naming,
  operands: ['kind', 'value…'],
  options: { ...dryRun, ...reasonOption },
  async run(call) {
    const { listSourceBlocks, setSourceBlock } = await import('../../services/trust/source-blocks.ts');
    const { kind, values } = await readSources(call, unblock.name);
    const by = acting(call, unblock.name);
    const changed = await withContext(call, async (ctx) => {
      const present = (await listSourceBlocks(ctx, [kind])).filter(({ value }) => values.includes(value));
      if (!call.has('dry-run'))
        for (const { id } of present) await ctx.engine.write(setSourceBlock, { id, isOn: false, by });
      return present.map(({ value }) => value);
    });
    report(call, { kind, changed, batch: by.batch, outcome: 'unblocked' });
  },
};

const list: Command = {
  name: 'admin blocks',
  summary: 'List what is blocked, the newest first.',
  options: { kind: { meaning: 'Only those of this kind.', value: kinds } },
  async run(call) {
    const { listSourceBlocks } = await import('../../services/trust/source-blocks.ts');
    const only = blockKinds.filter((kind) => kind === (call.value('kind') ?? kind));
    const blocks = await withContext(call, (ctx) => listSourceBlocks(ctx, only));
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
      listing(['KIND', 'VALUE', 'SINCE', 'BY', 'REASON'], rows, call.columns?.('result')),
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

type Done = { kind: BlockKind; changed: readonly string[]; batch: string; outcome: 'blocked' | 'unblocked' };

function report(call: Call, { kind, changed, batch, outcome }: Done): void {
  reportBatch(call, {
    batch,
    outcome,
    done: call.has('dry-run') ? 0 : changed.length,
    nouns: ['source', 'sources'],
    facts: { kind, values: changed },
    meant: changed.length,
    list: changed.join('\n'),
  });
}

export const adminBlocks: readonly Command[] = [block, unblock, list];
