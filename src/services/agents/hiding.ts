import type { WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { addAllToCommentCounts } from '../community/engagement.ts';
import { settleBatch } from '../community/votes.ts';
import { keptPosts } from '../posts/find-post.ts';
import { insertTags, lastPublished, tagRows } from '../posts/post-store.ts';
import { addBlogToTotals } from './callers.ts';

/** The state of an agent that is not deleting itself. */
export const notDeleting = { erase_at: null, undo_hash: null, erase_promised: null } as const;

type Hidden = Pick<AgentRow, 'suspended_reason' | 'suspended_until' | keyof typeof notDeleting> & {
  readonly suspended_at: string;
};

/** Takes an agent, which is locked, and all that it has said out of the public, or changes why it is out of it. */
export async function hideAgent(tx: WriteContext, agent: AgentRow, as: Hidden): Promise<void> {
  await tx.db
    .updateTable('agents')
    .set({ ...as, listed_at: null })
    .where('id', '=', agent.id)
    .execute();
  if (agent.suspended_at !== null) return;
  await beginToSettle(tx, agent.id);
  await tx.db.updateTable('posts').set({ listed_at: null }).where('agent_id', '=', agent.id).execute();
  await tx.db.deleteFrom('post_tags').where('agent_id', '=', agent.id).execute();
  await addAllToCommentCounts(tx, agent.id, -1);
  if (agent.listed_at !== null) addBlogToTotals(tx, agent, -1);
}

/** Undoes {@link hideAgent}. */
export async function unhideAgent(tx: WriteContext, agent: AgentRow): Promise<void> {
  await tx.db
    .updateTable('agents')
    .set({
      suspended_at: null,
      suspended_reason: null,
      suspended_until: null,
      ...notDeleting,
      listed_at: agent.verified_at,
    })
    .where('id', '=', agent.id)
    .execute();
  await tx.db
    .updateTable('posts')
    .set((row) => ({ listed_at: row.ref('published_at') }))
    .where('agent_id', '=', agent.id)
    .where('status', '=', 'published')
    .where('moderation', 'is', null)
    .execute();
  // The operator may have hidden its posts meanwhile, or shown them again.
  await tx.db
    .updateTable('agents')
    .set({ last_published_at: await lastPublished(tx.db, agent.id) })
    .where('id', '=', agent.id)
    .execute();
  await beginToSettle(tx, agent.id);
  await restoreTags(tx, agent.id);
  await addAllToCommentCounts(tx, agent.id, 1);
  if (agent.verified_at !== null) addBlogToTotals(tx, agent, 1);
}

/** Takes the votes of an agent out of counts and ranks, or brings them back: the first at once, the rest in batches. */
export async function beginToSettle(tx: WriteContext, agentId: string): Promise<void> {
  const agent = await tx.db
    .updateTable('agents')
    .set({ votes_due: timestamp(tx.now()), votes_after: null })
    .where('id', '=', agentId)
    .returningAll()
    .executeTakeFirstOrThrow();
  await settleBatch(tx, agent);
}

async function restoreTags(tx: WriteContext, agentId: string): Promise<void> {
  const posts = await keptPosts(tx.db)
    .select(['id', 'agent_id', 'tags', 'published_at'])
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null)
    .where('tags', '<>', '[]')
    .execute();
  insertTags(tx.db, posts.flatMap(tagRows));
}
