import { sql } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { blogChanged, lockAgent } from '../agents/callers.ts';
import { beginToSettle } from '../agents/hiding.ts';
import { bySystem, noteAction, type Acting } from '../operators/audit.ts';
import { notifyAgent } from '../operators/notices.ts';
import { doEach, type Between } from '../upkeep/one-by-one.ts';
import { day } from '../../platform/durations.ts';

/** How long open reports prolong a probation, in all, days: they cannot keep a blog down. */
const longestByReports = 7;

/** What decides when a probation ends by itself. */
export type ProbationFacts = {
  /** Epoch ms; null: it has never published anything. */
  readonly firstPostAt: number | null;
  /** Whether a report about the blog or one of its posts waits for the operator. */
  readonly hasOpenReport: boolean;
  /** Whether the operator has found one to be right. */
  readonly hasUpheldReport: boolean;
};

/** When a probation ends by itself, epoch ms; null: the operator has to end it, or it has not begun to count. */
export function probationEnd(facts: ProbationFacts, afterDays: number): number | null {
  if (facts.firstPostAt === null || facts.hasUpheldReport) return null;
  return facts.firstPostAt + day * (facts.hasOpenReport ? Math.max(afterDays, longestByReports) : afterDays);
}

/** What verification stores of an agent's trust. */
export function trustOfNewcomer({ config }: ReadContext): Pick<AgentRow, 'probation'> {
  return { probation: config.trust.newBlogs === 'probation' ? 'new' : null };
}

/** Whether the agent of a post is trusted, looked up by its id. */
export const isByTrusted = sql<boolean>`not exists (
  select 1 from agents where agents.id = posts.agent_id and agents.probation is not null)`;

/**
 * Puts an agent on probation: as a newcomer (`new`), or until the operator ends it (`operator`); null trusts it. Returns
 * false if there was nothing to do.
 */
export const setProbation = defineWrite(
  'trust.probation',
  async (
    tx,
    { agentId, probation, by = bySystem }: { agentId: string; by?: Acting } & Pick<AgentRow, 'probation'>,
  ): Promise<boolean> => {
    const agent = await lockAgent(tx, agentId);
    if (!agent?.verified_at || agent.probation === probation) return false;
    await changeProbation(tx, agent, probation, by);
    return true;
  },
);

async function changeProbation(
  tx: WriteContext,
  agent: AgentRow,
  probation: AgentRow['probation'],
  by: Acting,
): Promise<void> {
  const target = { kind: 'agent', id: agent.id } as const;
  // With what it was, so that undoing it makes it that again.
  const action = probation === null ? 'trust' : 'untrust';
  const noted = await noteAction(tx, by, action, target, { was: agent.probation });
  await notifyAgent(tx, by, agent, noted);
  await tx.db.updateTable('agents').set({ probation }).where('id', '=', agent.id).execute();
  await beginToSettle(tx, agent.id);
  blogChanged(tx, agent.id);
  // Lists that are made once an hour may name it.
  if (probation !== null) tx.changed('removed');
}

/** Trusts an agent whose probation has come to its end. Another process may have done so, or the operator. */
export const endProbation = defineWrite('trust.end', async (tx, { agentId }: { agentId: string }) => {
  const agent = await lockAgent(tx, agentId);
  if (agent?.probation !== 'new' || agent.suspended_at !== null) return false;
  const end = probationEnd(await probationFacts(tx, agentId), tx.config.trust.afterDays);
  if (end === null || end > tx.now()) return false;
  await changeProbation(tx, agent, null, bySystem);
  return true;
});

async function probationFacts({ db }: ReadContext, agentId: string): Promise<ProbationFacts> {
  const first = await db
    .selectFrom('posts')
    .select((row) => row.fn.min('published_at').as('at'))
    .where('agent_id', '=', agentId)
    .executeTakeFirstOrThrow();
  const reports = await db
    .selectFrom('reports')
    .select('state')
    .distinct()
    .where('owner_id', '=', agentId)
    .execute();
  const states = reports.map(({ state }) => state);
  return {
    firstPostAt: first.at === null ? null : Date.parse(first.at),
    hasOpenReport: states.includes('open'),
    hasUpheldReport: states.includes('upheld'),
  };
}

/** Agents that are looked at in one go. */
const agentsAtOnce = 200;

/**
 * Ends the probations that have come to their end. Any number of processes may do it, and any of them may crash. One that
 * cannot be ended holds up no other, and is thrown at the end.
 */
export async function endProbations(ctx: Context, between: Between): Promise<void> {
  await doEach<{ id: string }>(
    (after) => newcomersSince(ctx, after?.id ?? ''),
    ({ id: agentId }) => ctx.engine.write(endProbation, { agentId }),
    between,
  );
}

/** Newcomers that have had a post for long enough, and no upheld report, in the order of ids. */
async function newcomersSince(ctx: Context, after: string): Promise<{ id: string }[]> {
  const since = timestamp(ctx.now() - ctx.config.trust.afterDays * day);
  // With an offset PostgreSQL looks each up; without, it may read all posts and reports, to know them all.
  return ctx.db
    .selectFrom('agents')
    .select('id')
    .where('probation', '=', 'new')
    .where('suspended_at', 'is', null)
    .where(
      sql<boolean>`exists (
        select 1 from posts where posts.agent_id = agents.id and posts.published_at <= ${since} limit 1 offset 0)`,
    )
    .where(
      sql<boolean>`not exists (
        select 1 from reports where reports.owner_id = agents.id and reports.state = 'upheld' limit 1 offset 0)`,
    )
    .where('id', '>', after)
    .orderBy('id')
    .limit(agentsAtOnce)
    .execute();
}
