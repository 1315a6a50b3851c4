import { setTimeout } from 'node:timers/promises';
import type { Selectable } from 'kysely';
import type { Context } from '../../context.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { moderateComment, type CommentState } from './comment-moderation.ts';
import { setProbation } from '../trust/probation.ts';
import { setSourceBlock } from '../trust/source-blocks.ts';
import { setMailRefused } from '../trust/suppression.ts';
import { moderatePost } from './post-moderation.ts';
import { decideReport, type Decision } from './reports.ts';
import { actions, type Acting, type Reversible } from './audit.ts';
import { featurePost, restoreWholly, suspendWholly } from './moderation.ts';

/** Writes under way at once: they share commits, each of which waits for the disk. */
const atOnce = 16;

/** How often a write is repeated that the database has no time for, and after how many ms. */
const mostRepeats = 1_200;
const repeatAfter = 250;

/**
 * Does something for each id, some at once; false says that there was nothing to do. Returns for how many it was done, and
 * the other ids: those too that are gone or that a later action has changed. Throws what it throws otherwise; what was
 * done until then stays, and its batch can be undone.
 */
export async function runEach(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
): Promise<{ done: number; left: readonly string[] }> {
  const waiting = ids.values();
  const left: string[] = [];
  let done = 0;
  const worker = async () => {
    for (const id of waiting)
      try {
        if ((await untilAccepted(() => work(id))) === false) left.push(id);
        else done += 1;
      } catch (error) {
        if (!(error instanceof AppError && passedOver.has(error.code))) throw error;
        left.push(id);
      }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { done, left };
}

/** A command of thousands of writes outlasts a moment in which the database is busy. */
async function untilAccepted<T>(work: () => Promise<T>): Promise<T> {
  for (let repeats = 0; ; repeats++)
    try {
      return await work();
    } catch (error) {
      const isBusy = error instanceof AppError && error.code === 'unavailable';
      if (!isBusy || repeats >= mostRepeats) throw error;
      await setTimeout(repeatAfter);
    }
}

const passedOver = new Set(['not_found', 'precondition_failed']);

type Row = Selectable<Tables['audit']>;
type Undoing = (ctx: Context, row: Row, by: Acting) => Promise<unknown>;

const suspendAgain: Undoing = (ctx, row, by) =>
  suspendWholly(ctx, { agentId: row.target_id, ...formerSuspension(row), by });

type StoredState = Tables['posts']['moderation']['__select__'];

const moderateBack: Undoing = ({ engine }, { target_id: postId, data }, by) => {
  const { state, reason } = JSON.parse(data ?? '{}') as { state: StoredState; reason: string | null };
  const to = state && { state, reason };
  return engine.write(moderatePost, { postId, to, by });
};

const formerTrust: Undoing = ({ engine }, { target_id: agentId, data }, by) => {
  const { was } = JSON.parse(data ?? '{}') as { was?: AgentRow['probation'] };
  return engine.write(setProbation, { agentId, probation: was ?? null, by });
};

const moderateCommentBack: Undoing = ({ engine }, { target_id: commentId, action, data }, by) => {
  const { state, reason } = JSON.parse(data ?? '{}') as { state?: CommentState; reason?: string | null };
  // What a source block held says no more than that.
  const to = state === undefined && action === 'release-comment' ? 'held' : (state ?? null);
  return engine.write(moderateComment, {
    commentId,
    to,
    by: to === 'removed' ? { ...by, reason: reason ?? by.reason } : by,
  });
};

const decideBack: Undoing = ({ engine }, { target_id: reportId, data }, by) => {
  const { state } = JSON.parse(data ?? '{}') as { state: Decision };
  return engine.write(decideReport, { reportId, to: state, by });
};

/** How each action is taken back, which is an action too. */
const undoing: Record<Reversible, Undoing> = {
  suspend: (ctx, { target_id: agentId }, by) => restoreWholly(ctx, { agentId, by }),
  'change-reason': suspendAgain,
  restore: suspendAgain,
  trust: formerTrust,
  untrust: formerTrust,
  'hold-comment': moderateCommentBack,
  'release-comment': moderateCommentBack,
  'remove-comment': moderateCommentBack,
  block: ({ engine }, { target_id: id }, by) => engine.write(setSourceBlock, { id, isOn: false, by }),
  unblock: ({ engine }, { target_id: id }, by) => engine.write(setSourceBlock, { id, isOn: true, by }),
  'release-mail': ({ engine }, { target_id: agentId, data }, by) => {
    const { answer } = JSON.parse(data ?? '{}') as { answer?: string | null };
    return engine.write(setMailRefused, { agentId, answer: answer ?? 'refused', by });
  },
  'refuse-mail': ({ engine }, { target_id: agentId }, by) =>
    engine.write(setMailRefused, { agentId, answer: null, by }),
  'dismiss-report': decideBack,
  'uphold-report': decideBack,
  'reopen-report': decideBack,
  hide: moderateBack,
  hold: moderateBack,
  unhide: moderateBack,
  feature: ({ engine }, { target_id: postId }, by) =>
    engine.write(featurePost, { postId, featured: false, by }),
  unfeature: ({ engine }, { target_id: postId }, by) =>
    engine.write(featurePost, { postId, featured: true, by }),
};

function formerSuspension({ data }: Row): { reason: string; until: string | null } {
  const { reason, until = null } = JSON.parse(data ?? '{}') as {
    reason?: string | null;
    until?: string | null;
  };
  return { reason: reason ?? 'Suspended again.', until };
}

/** What became of a batch that was undone. */
export type Undone = {
  readonly undone: number;
  /** Targets that are gone, or that a later action has changed. */
  readonly left: readonly string[];
  /** Actions that nothing takes back, such as deletions. */
  readonly final: number;
};

/** Undoes the actions of a batch, unless later ones have changed the same again. Throws not_found. */
export async function undoBatch(ctx: Context, batch: string, by: Acting): Promise<Undone> {
  const rows = await ctx.db.selectFrom('audit').selectAll().where('batch', '=', batch).execute();
  if (rows.length === 0)
    throw new AppError('not_found', `There is no batch '${batch}', or it is no longer in the log.`);
  const reversible = new Map<string, { row: Row; undo: Undoing }>();
  for (const row of rows)
    if (isReversible(row.action)) reversible.set(row.id, { row, undo: undoing[row.action] });
  // The owner of one agent is written to; those of many read the reason in the answers to their calls.
  const notified = rows.length === 1 ? ({ mails: true } as const) : {};
  const { done, left } = await runEach([...reversible.keys()], async (id) => {
    const found = reversible.get(id);
    return found?.undo(ctx, found.row, { ...by, ...notified, undoes: id });
  });
  return {
    undone: done,
    left: left.flatMap((id) => reversible.get(id)?.row.target_id ?? []),
    final: rows.length - reversible.size,
  };
}

/** Takes one action back; nothing where that can't be. Throws what its write throws. */
export async function undoAction(ctx: Context, row: Row, by: Acting): Promise<void> {
  if (isReversible(row.action)) await undoing[row.action](ctx, row, by);
}

/** Whether an action can be taken back. */
export function isReversible(action: string): action is Reversible {
  return Object.hasOwn(actions, action) && actions[action as keyof typeof actions] !== null;
}
