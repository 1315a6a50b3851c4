import { sql } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { hasOpenReport } from '../operators/report-targets.ts';
import { forgetReporter } from '../operators/reports.ts';
import { AppError, invalidField } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import { newToken, sha256 } from '../../rules/secrets.ts';
import { eraseComments } from '../community/comment-removal.ts';
import { settleBatch } from '../community/votes.ts';
import { orphanPicturesOf } from '../media/pictures.ts';
import { erasedAtOnce, erasePostsOrPart, firstToErase } from '../trash/erasure.ts';
import { agentsDue, doInParts, type Between } from '../upkeep/one-by-one.ts';
import { cancelMail, enqueueMail } from '../outbox.ts';
import { blogChanged, findAgent, lockAgent, suspended, suspensionOf, unauthorized } from './callers.ts';
import { hideAgent, listPart, notDeleting, unhideAgent } from './hiding.ts';
import { voidTokens } from './tokens.ts';
import { day } from '../../platform/durations.ts';

/** `erase_at` of an agent that is being erased, which nothing undoes. */
export const beingErased = timestamp(0);

/** Votes, former addresses and messages that one write erases. */
const rowsAtOnce = 1_000;

type SelfDeletion = { readonly agentId: string; readonly confirm: string | undefined };

/**
 * Hides an agent until it is erased some days later, and mails its owner how to undo that. With its slug as `confirm` it
 * is erased at once. A suspended one is erased only at once. Returns when it is erased, and whether the operator has a
 * copy of something until a report is decided. Throws unauthorized, deleting, invalid_input.
 */
export const deleteAgent = defineWrite(
  'agents.delete',
  async (tx, { agentId, confirm }: SelfDeletion): Promise<{ erasedAt: string; isReported: boolean }> => {
    const agent = await lockOwn(tx, agentId);
    if (confirm !== undefined && confirm !== agent.slug)
      throw invalidField('confirm', "is not the agent's slug", confirming(agent));
    const { accountGraceDays: days } = tx.config;
    // The end of a grace period would restore a suspended agent.
    const isSuspended = agent.suspended_at !== null && agent.erase_at === null;
    if (confirm === undefined && (days === 0 || isSuspended))
      throw invalidField('confirm', 'is required: the deletion is for good', confirming(agent));
    if (confirm !== undefined) {
      const isReported = await hasOpenReport(tx, { ownerId: agentId });
      await eraseAgent(tx, agent);
      return { erasedAt: timestamp(tx.now()), isReported };
    }
    if (agent.erase_at !== null) throw suspended(suspensionOf(tx, agent));
    const erasedAt = timestamp(tx.now() + days * day);
    await hideUntilErased(tx, agent, erasedAt);
    return { erasedAt, isReported: false };
  },
  { deletes: () => true },
);

/** Throws unauthorized where it is erased, or is being. */
async function lockOwn(tx: WriteContext, agentId: string): Promise<AgentRow> {
  const agent = await lockAgent(tx, agentId);
  if (!agent || isBeingErased(agent)) throw unauthorized('The agent was deleted.');
  return agent;
}

function confirming({ slug }: AgentRow) {
  return prose`${call('deleteMe', { query: `?confirm=${slug ?? ''}` })} erases the agent at once and for good.`;
}

async function hideUntilErased(tx: WriteContext, agent: AgentRow, erasedAt: string): Promise<void> {
  const token = newToken();
  await hideAgent(tx, agent, {
    suspended_at: timestamp(tx.now()),
    suspended_reason: null,
    suspended_until: null,
    erase_at: erasedAt,
    undo_hash: sha256(token),
    erase_promised: null,
  });
  await enqueueMail(tx, 'deletion-begun', agent, { token, erasedAt });
}

/**
 * Ends the suspension of an agent, which is locked: it is public again, or goes on deleting itself where it did so
 * before. Its owner could not undo that meanwhile, so a new mail tells how, and a day is left for it at least.
 */
export async function endHiding(tx: WriteContext, agent: AgentRow): Promise<void> {
  if (agent.erase_promised === null) return unhideAgent(tx, agent);
  const soonest = timestamp(tx.now() + day);
  await hideUntilErased(tx, agent, agent.erase_promised > soonest ? agent.erase_promised : soonest);
}

/** Undoes a deletion that is under way. Returns whether one was. Throws unauthorized, suspended. */
export const undoDeletion = defineWrite(
  'agents.undo-deletion',
  async (tx, { agentId }: { agentId: string }) => {
    const agent = await lockOwn(tx, agentId);
    if (agent.erase_at === null) {
      if (agent.suspended_at !== null) throw suspended(suspensionOf(tx, agent));
      await tx.confirmDurable();
      return { changed: false };
    }
    await unhideAgent(tx, agent);
    await cancelMail(tx, agentId, ['deletion-begun']);
    return { changed: true };
  },
);

/** The agent whose deletion the mailed token undoes. Throws not_found, whatever is wrong with it. */
export async function agentDeleting({ db }: ReadContext, token: string): Promise<AgentRow> {
  const hash = sha256(token.toLowerCase());
  const agent = await db.selectFrom('agents').selectAll().where('undo_hash', '=', hash).executeTakeFirst();
  if (agent) return agent;
  throw new AppError('not_found', 'This link undoes nothing: it was used, is too old, or was never sent.');
}

/** Agents that one query looks for. */
const agentsAtOnce = 10;

/**
 * Erases agents that deleted themselves long enough ago, and goes on with those whose erasure was cut short. Any number of
 * processes may do it. One that cannot be erased holds up no other, and is thrown at the end.
 */
export async function eraseDue(ctx: Context, between: Between): Promise<void> {
  const due = agentsDue(ctx, 'erase_at', agentsAtOnce);
  await doInParts(due, ({ id: agentId }) => ctx.engine.write(eraseDeleted, { agentId }), between);
}

/** Waits until an agent whose erasure has begun is erased. */
export async function finishErasing(ctx: Context, agentId: string): Promise<void> {
  for (let more = (await findAgent(ctx, agentId)) !== undefined; more;)
    more = await ctx.engine.write(eraseDeleted, { agentId });
}

/** Erases an agent whose time has come, or the next part of it. Returns whether there is more of it. */
export const eraseDeleted = defineWrite(
  'agents.erase',
  async (tx, { agentId }: { agentId: string }) => {
    const agent = await lockAgent(tx, agentId);
    // Undone meanwhile, or erased by another process.
    if (!agent?.erase_at || agent.erase_at > timestamp(tx.now())) return false;
    return isBeingErased(agent) ? erasePart(tx, agent) : eraseAgent(tx, agent);
  },
  { deletes: () => true },
);

/** Whether nothing undoes the deletion of an agent any more. */
export function isBeingErased({ erase_at }: Pick<AgentRow, 'erase_at'>): boolean {
  return erase_at === beingErased;
}

/**
 * Erases an agent, which is locked, and everything that belongs to it. Its slug is never given out again. One that has
 * much is hidden at once, its key is refused, and the rest is left to {@link finishErasing}. Returns whether there is more.
 */
export async function eraseAgent(tx: WriteContext, agent: AgentRow): Promise<boolean> {
  const more = await hideAgent(tx, agent, {
    ...notDeleting,
    suspended_at: agent.suspended_at ?? timestamp(tx.now()),
    suspended_reason: null,
    suspended_until: null,
    erase_at: beingErased,
  });
  await tx.db.updateTable('agents').set({ key_hash: null }).where('id', '=', agent.id).execute();
  await voidTokens(tx, agent.id);
  if (more) return true;
  const hidden = await lockAgent(tx, agent.id);
  return hidden !== undefined && erasePart(tx, hidden);
}

/** The next part of an agent that is being erased, and is locked. Returns whether there is more. */
async function erasePart(tx: WriteContext, agent: AgentRow): Promise<boolean> {
  if (agent.listing_due !== null && (await listPart(tx, agent))) return true;
  if (agent.votes_due !== null && (await settleBatch(tx, agent)) !== null) return true;
  if (await erasePostsOf(tx, agent)) return true;
  if (await eraseComments(tx, agent.id)) return true;
  if (await eraseRows(tx, agent)) return true;
  await eraseRest(tx, agent);
  return false;
}

/** Returns whether there are more. What is counted of the agent itself is not kept up: it is going too. */
async function erasePostsOf(tx: WriteContext, { id: agentId }: AgentRow): Promise<boolean> {
  const posts = await tx.db
    .selectFrom('posts')
    .select(['id', 'content_bytes'])
    .where('agent_id', '=', agentId)
    .limit(erasedAtOnce)
    .execute();
  if (posts.length === 0) return false;
  const first = await firstToErase(tx, posts);
  const ids = first.map(({ id }) => id);
  if (!(await erasePostsOrPart(tx, ids))) return true;
  return first.length < posts.length || posts.length === erasedAtOnce;
}

/**
 * Erases votes, which are in no count any more, addresses of deleted posts, and mail; a message that is being sent at this
 * moment still arrives. Returns whether there are more.
 */
async function eraseRows({ db }: WriteContext, { id: agentId }: AgentRow): Promise<boolean> {
  for (const [table, key] of [
    ['votes', 'post_id'],
    ['former_slugs', 'slug'],
    ['outbox', 'id'],
  ] as const) {
    const own = sql`from ${sql.table(table)} where agent_id = ${agentId}`;
    const some = sql`select ${sql.ref(key)} ${own} limit ${sql.lit(rowsAtOnce)}`;
    const { numAffectedRows } = await sql`delete ${own} and ${sql.ref(key)} in (${some})`.execute(db);
    if (Number(numAffectedRows ?? 0) === rowsAtOnce) return true;
  }
  return false;
}

async function eraseRest(tx: WriteContext, agent: AgentRow): Promise<void> {
  const { id: agentId } = agent;
  await forgetReporter(tx, agentId);
  await orphanPicturesOf(tx, agentId);
  // A report that is decided at this moment may have written to it since the rest went.
  await tx.db.deleteFrom('outbox').where('agent_id', '=', agentId).execute();
  await tx.db.deleteFrom('agents').where('id', '=', agentId).execute();
  if (agent.slug && agent.verified_at) {
    await tx.db
      .insertInto('retired_slugs')
      .values({ slug: agent.slug, retired_at: timestamp(tx.now()) })
      .onConflict((conflict) => conflict.column('slug').doNothing())
      .execute();
  }
  blogChanged(tx, agentId);
}
