import { sql, type Selectable } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { AppError } from '../../errors.ts';
import type { Tables } from '../../db/tables.ts';
import { quoted } from '../../rules/text.ts';
import { isReversible, undoAction } from './batches.ts';
import type { Acting } from './audit.ts';
import { decideAppeal, type Verdict } from './appeals.ts';
import { idNamed } from './named.ts';

export type AppealFilter = { readonly limit: number; readonly state: 'open' | Verdict };

/** What agents say against what operators did to them, in a state, the oldest first. */
export async function listAppeals({ db }: ReadContext, { limit, state }: AppealFilter) {
  const rows = await db
    .selectFrom('appeals')
    .innerJoin('agents', 'agents.id', 'appeals.agent_id')
    .leftJoin('audit', 'audit.id', 'appeals.id')
    .selectAll('appeals')
    .select(['agents.slug', 'agents.name', 'audit.reason', 'audit.actor', 'audit.batch'])
    .select(
      sql<
        number | string
      >`(select count(*) from audit as earlier where earlier.target_id in (appeals.target_id, appeals.agent_id))`.as(
        'actions',
      ),
    )
    .where('appeals.state', '=', state)
    .orderBy('appeals.sent_at')
    .orderBy('appeals.id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    agent: { id: row.agent_id, slug: row.slug, name: row.name },
    action: row.action,
    target: { kind: row.target_kind, id: row.target_id },
    at: row.at,
    by: row.actor,
    batch: row.batch,
    reason: row.reason,
    sentAt: row.sent_at ?? '',
    text: row.text ?? '',
    state: row.state,
    decidedAt: row.decided_at,
    decision: row.decision,
    /** What operators have done to it or to its agent, this action included. */
    actions: Number(row.actions),
  }));
}

/** The ids of the open appeals that are meant: one by its id, or those about something. Throws not_found. */
export async function appealsNamed(ctx: ReadContext, named: string): Promise<string[]> {
  const id = await idNamed(ctx, named);
  const rows = await ctx.db
    .selectFrom('appeals')
    .select('id')
    .where((row) => row.or([row('id', '=', id), row('target_id', '=', id)]))
    .where('state', '=', 'open')
    .orderBy('id')
    .execute();
  if (rows.length > 0) return rows.map((row) => row.id);
  throw new AppError('not_found', `There is no open appeal with the id ${quoted(named)}, nor about it.`);
}

/** Whether granting an appeal can bring back what was taken; false also where there is none. */
export async function canBeUndone({ db }: ReadContext, id: string): Promise<boolean> {
  const row = await db.selectFrom('appeals').select('action').where('id', '=', id).executeTakeFirst();
  return row !== undefined && isReversible(row.action);
}

/** Decides an appeal; granting it undoes the action, where that can be. Returns false if there was nothing to do. */
export async function resolveAppeal(ctx: Context, id: string, to: Verdict, by: Acting): Promise<boolean> {
  const row = await ctx.db.selectFrom('appeals').selectAll().where('id', '=', id).executeTakeFirst();
  if (row?.state !== 'open') return false;
  if (to === 'granted') {
    const noted = await ctx.db.selectFrom('audit').selectAll().where('id', '=', id).executeTakeFirst();
    // What was changed again since is undone with it. Giving back decides the appeal in the same transaction.
    if (noted) await undoAction(ctx, wholly(noted), by).catch(unlessGone);
  }
  await ctx.engine.write(decideAppeal, { id, to, by });
  return true;
}

type AuditRow = Selectable<Tables['audit']>;

/** The action as if nothing had been done before it, so that undoing it leaves nothing of what came first either. */
function wholly(row: AuditRow): AuditRow {
  if (row.action === 'change-reason') return { ...row, action: 'suspend' };
  const isOfText = ['hide', 'hold', 'hold-comment', 'remove-comment'].includes(row.action);
  return isOfText ? { ...row, data: JSON.stringify({ state: null, reason: null }) } : row;
}

function unlessGone(error: unknown): void {
  if (!(error instanceof AppError && error.code === 'not_found')) throw error;
}
