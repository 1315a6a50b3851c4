import type { Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { acting, limitOption, noteOption, readSince, sinceOption } from './admin-options.ts';

const log: Command = {
  name: 'admin log',
  summary: 'List what operators did to agents, posts and comments, the newest first.',
  options: {
    batch: { meaning: 'Only that of one command.', value: 'batch' },
    target: {
      meaning: 'Only that on one agent, post or comment: its id or address, or a slug.',
      value: 'id',
    },
    ...sinceOption('Only that done'),
    ...limitOption,
  },
  async run(call) {
    const { listActions } = await import('../../services/operators/audit.ts');
    const { idNamed } = await import('../../services/operators/named.ts');
    const named = call.value('target');
    const filter = {
      limit: Number(call.value('limit') ?? 100),
      batch: call.value('batch')?.toLowerCase(),
      since: readSince(call, log.name),
    };
    const rows = await withContext(call, async (ctx) =>
      listActions(ctx, { ...filter, target: named === null ? undefined : await idNamed(ctx, named) }),
    );
    const shown = rows.map(({ target_kind: kind, target_id: id, ...row }) => ({
      ...row,
      target: { kind, id },
    }));
    const heads = ['AT', 'BY', 'ACTION', 'ON', 'BATCH', 'REASON'];
    const cells = shown.map(({ at, actor, action, target, batch, reason }) => [
      at,
      actor,
      action,
      `${target.kind} ${target.id}`,
      batch ?? '',
      reason ?? '',
    ]);
    call.result(shown, listing(heads, cells, call.columns?.('result')));
  },
};

const undo: Command = {
  name: 'admin undo',
  summary: 'Take back what a command did to agents and posts, by its batch.',
  details: [
    'Deletions stay. What a later command has changed again stays too. Undoing is a batch of its own: undo that to do it',
    'again.',
  ],
  operands: ['batch'],
  options: noteOption,
  async run(call) {
    const { undoBatch } = await import('../../services/operators/batches.ts');
    const by = acting(call, undo.name);
    const done = await withContext(call, (ctx) => undoBatch(ctx, call.operand('batch').toLowerCase(), by));
    const { undone, left, final } = done;
    const notes = [
      ...(left.length === 0
        ? []
        : [`Left as they are, since they changed later or are gone: ${left.length}.`]),
      ...(final === 0 ? [] : [`Cannot be undone: ${final}.`]),
    ];
    call.result(
      { batch: by.batch, ...done },
      `Took back ${undone}. To do it again: ${call.program} admin undo ${by.batch}`,
      notes,
    );
  },
};

export const adminLog: readonly Command[] = [log, undo];
