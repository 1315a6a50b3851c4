import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { quoted } from '../../rules/text.ts';
import { findAgent } from '../agents/callers.ts';
import { countRows } from '../lists/paging.ts';
import { appealable } from './appeals.ts';
import { idNamed } from './named.ts';
import { snapshotOf } from './report-targets.ts';

export type ReportFilter = { readonly limit: number; readonly state: Tables['reports']['state'] };

/** What is reported, in a state, by what it is about, the oldest first. */
export async function listReports(ctx: ReadContext, { limit, state }: ReportFilter) {
  const targets = await ctx.db
    .selectFrom('reports')
    .select((row) => [
      'target_id',
      row.fn.min('created_at').as('since'),
      row.fn.countAll<number>().as('reports'),
    ])
    .where('state', '=', state)
    .groupBy('target_id')
    .orderBy('since')
    .orderBy('target_id')
    .limit(limit)
    .execute();
  return Promise.all(targets.map(({ target_id, reports }) => reported(ctx, target_id, state, reports)));
}

/** What is reported, and what an operator needs to decide it. */
export type Reported = Awaited<ReturnType<typeof reported>>;

/** Reports of one target that are shown, and texts that it had. */
const mostShown = 20;

async function reported(ctx: ReadContext, targetId: string, state: ReportFilter['state'], reports: number) {
  const ofTarget = ctx.db.selectFrom('reports').where('target_id', '=', targetId).where('state', '=', state);
  const rows = await ofTarget
    .select(['id', 'target_kind', 'url', 'owner_id', 'created_at', 'agent_id', 'email', 'name'])
    .select(['reason', 'explanation', 'state', 'decision'])
    .orderBy('created_at')
    .orderBy('id')
    .limit(mostShown)
    .execute();
  // The last ones, since whoever wants to hide a text knows of no report of it.
  const texts = await ofTarget
    .select('snapshot')
    .where('snapshot', 'is not', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(mostShown)
    .execute();
  const said = [...new Set(texts.toReversed().flatMap(({ snapshot }) => snapshot ?? []))];
  const [first] = rows;
  if (!first) throw new AppError('not_found', 'The reports were decided at this moment.');
  const { target_kind: kind, url, owner_id: ownerId } = first;
  const [owner, present, earlierActions, comments] = await Promise.all([
    findAgent(ctx, ownerId),
    snapshotOf(ctx, { kind: kind, id: targetId }),
    countActionsAgainst(ctx, targetId, ownerId),
    countRows(ctx.db.selectFrom('comments').where('agent_id', '=', ownerId)),
  ]);
  return {
    target: { kind, id: targetId, url },
    count: reports,
    reasons: [...new Set(rows.map(({ reason }) => reason))],
    since: first.created_at,
    agent: owner
      ? {
          id: owner.id,
          slug: owner.slug,
          createdAt: owner.created_at,
          suspended: owner.suspended_at !== null,
          posts: owner.published_count,
          comments,
        }
      : null,
    /** How often operators have taken something from its agent, or from what that wrote. */
    earlierActions,
    /** What it said when it was reported, each text once, the oldest first; the first of them; and what it says now. */
    texts: said,
    reported: said[0] ?? null,
    present: present?.text ?? null,
    reports: rows.map((row) => ({
      id: row.id,
      at: row.created_at,
      by: row.agent_id ?? row.email ?? row.name,
      name: row.name,
      reason: row.reason,
      explanation: row.explanation,
      state: row.state,
      decision: row.decision,
    })),
  };
}

function countActionsAgainst({ db }: ReadContext, targetId: string, ownerId: string): Promise<number> {
  return countRows(
    db
      .selectFrom('audit')
      .where('action', 'in', appealable)
      // One list, so that it is looked up in the index of targets: for several, PostgreSQL reads the whole table.
      .where(
        'target_id',
        'in',
        sql<string>`(select ${targetId} union all select ${ownerId}
          union all select id from posts where agent_id = ${ownerId}
          union all select id from comments where agent_id = ${ownerId})`,
      ),
  );
}

/** The ids of the reports that are meant: one by its id, or in one of these states what was reported. Throws not_found. */
export async function reportsNamed(
  ctx: ReadContext,
  named: string,
  states: readonly ReportFilter['state'][],
): Promise<string[]> {
  const { db } = ctx;
  const id = await idNamed(ctx, named);
  const one = await db.selectFrom('reports').select('id').where('id', '=', id).executeTakeFirst();
  if (one) return [one.id];
  const ofTarget = await db
    .selectFrom('reports')
    .select('id')
    .where('target_id', '=', id)
    .where('state', 'in', states)
    .orderBy('id')
    .execute();
  if (ofTarget.length === 0)
    throw new AppError('not_found', `There is no report to decide with the id ${quoted(named)}, nor of it.`);
  return ofTarget.map((row) => row.id);
}
