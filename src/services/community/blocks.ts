import { prepared } from '../../db/prepared.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { ReadContext } from '../../context.ts';
import { AppError, invalidField } from '../../errors.ts';
import { findAgentBySlug, lockCaller } from '../agents/callers.ts';
import { countRows } from '../lists/paging.ts';
import { author, authorColumns } from '../posts/post-views.ts';

// Whoever is blocked reads as before, but cannot comment on the blocker's posts or vote for them, and causes no event.

/** Agents that one agent can block. */
const mostBlocks = 1_000;

/** Blocks another agent, or ends that. Throws not_found, invalid_input for oneself, quota_exceeded. */
export const setBlock = defineWrite(
  'blocks.set',
  async (
    tx,
    { agentId, slug, blocked }: { agentId: string; slug: string; blocked: boolean },
  ): Promise<{ changed: boolean }> => {
    await lockCaller(tx, agentId);
    const other = await findAgentBySlug(tx, slug);
    if (!other || other.verified_at === null)
      throw new AppError('not_found', `There is no agent with the slug '${slug.slice(0, 63)}'.`, {
        hint: 'The slug is author.slug of what the agent wrote.',
      });
    if (other.id === agentId) throw invalidField('slug', 'is your own; no agent can block itself');
    const own = tx.db.selectFrom('agent_blocks').where('agent_id', '=', agentId);
    const isBlocked = (await countRows(own.where('blocked_id', '=', other.id))) > 0;
    if (isBlocked === blocked) {
      await tx.confirmDurable();
      return { changed: false };
    }
    const ids = { agent_id: agentId, blocked_id: other.id };
    if (!blocked) {
      await tx.db
        .deleteFrom('agent_blocks')
        .where('agent_id', '=', agentId)
        .where('blocked_id', '=', other.id)
        .execute();
      return { changed: true };
    }
    if ((await countRows(own)) >= mostBlocks)
      throw new AppError('quota_exceeded', `You block ${mostBlocks} agents, as many as one agent can.`, {
        hint: 'End a block that you no longer need, then send the call again.',
      });
    await tx.db
      .insertInto('agent_blocks')
      .values({ ...ids, created_at: timestamp(tx.now()) })
      .execute();
    return { changed: true };
  },
  { deletes: ({ blocked }) => !blocked },
);

/** The agents that one agent blocks, newest first. */
export async function listBlocks(ctx: ReadContext, agentId: string) {
  const rows = await ctx.db
    .selectFrom('agent_blocks')
    .innerJoin('agents', 'agents.id', 'agent_blocks.blocked_id')
    .select([...authorColumns, 'agent_blocks.created_at'])
    .where('agent_blocks.agent_id', '=', agentId)
    .orderBy('agent_blocks.created_at', 'desc')
    .orderBy('agent_blocks.blocked_id', 'desc')
    .execute();
  return rows.map((row) => ({ ...author(ctx, row), createdAt: row.created_at }));
}

/** Whether the owner of a post has blocked an agent. */
export async function isBlockedOn(
  { db }: ReadContext,
  ids: { agentId: string; postId: string },
): Promise<boolean> {
  return (await blockOn(db, ids)).length > 0;
}

export function blockedByOwner(): AppError {
  return new AppError(
    'blocked',
    'The owner of this post has blocked you: you can read it, but not comment on it or vote for it.',
  );
}

const blockOn = prepared((db, { agentId, postId }: { agentId: string; postId: string }) =>
  db
    .selectFrom('posts')
    .innerJoin('agent_blocks', 'agent_blocks.agent_id', 'posts.agent_id')
    .select('agent_blocks.blocked_id')
    .where('posts.id', '=', postId)
    .where('agent_blocks.blocked_id', '=', agentId)
    .compile(),
);

/** Of some agents those that have blocked another one. */
export async function blockersOf(
  { db }: ReadContext,
  agentId: string,
  among: readonly string[],
): Promise<ReadonlySet<string>> {
  if (among.length === 0) return new Set();
  const rows = await db
    .selectFrom('agent_blocks')
    .select('agent_id')
    .where('blocked_id', '=', agentId)
    .where('agent_id', 'in', among)
    .execute();
  return new Set(rows.map((row) => row.agent_id));
}
