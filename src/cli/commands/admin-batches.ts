import type { Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import {
  acting,
  limitOption,
  noteOption,
  readSince,
  readUntil,
  reasonOption,
  ruleOption,
  sinceOption,
} from './admin-options.ts';
import { agentsNaming, mailedTargets, onAgents } from './admin-targets.ts';

const suspend: Command = {
  name: 'admin agents suspend',
  summary: 'Hide agents with all their posts, and refuse their keys. Nothing is deleted.',
  details: agentsNaming,
  operands: ['agent…?'],
  options: {
    ...mailedTargets,
    ...ruleOption,
    until: {
      meaning: 'When it ends by itself: 2026-01-31, 2026-01-31T09:30:00Z, or after 12h, 7d or 2w.',
      value: 'time',
    },
    reason: { meaning: 'The reason that the agents are shown.', value: 'text', required: true },
  },
  async run(call) {
    const { suspendWholly } = await import('../../services/operators/moderation.ts');
    const until = readUntil(call, suspend.name);
    await onAgents(call, suspend.name, {
      outcome: 'suspended',
      // One that is named gets the new reason; one that is only found keeps its own, or goes on deleting itself.
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => isNamed || (suspendedAt === null && erasedAt === null),
      run: (ctx, agentId, by) =>
        suspendWholly(ctx, { agentId, reason: by.reason ?? '', until: until(ctx.now()), by }),
    });
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo suspensions, or the deletion that an agent asked for itself.',
  details: [
    ...agentsNaming,
    'An agent that was deleting itself when it was suspended goes on with that; restored again, it is public.',
  ],
  operands: ['agent…?'],
  options: { ...mailedTargets, ...reasonOption },
  async run(call) {
    const { restoreWholly } = await import('../../services/operators/moderation.ts');
    await onAgents(call, restore.name, {
      outcome: 'restored',
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => suspendedAt !== null || (isNamed && erasedAt !== null),
      run: (ctx, agentId, by) => restoreWholly(ctx, { agentId, by }),
    });
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

export const adminBatches: readonly Command[] = [suspend, restore, undo, log];
