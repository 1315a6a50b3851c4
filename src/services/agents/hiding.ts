import type { Context, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { commentsFrom, countNextComments } from '../community/engagement.ts';
import { settleBatch } from '../community/votes.ts';
import { keptPosts } from '../posts/find-post.ts';
import { insertTags, lastPublished, tagRows } from '../posts/post-store.ts';
import { agentsDue, doInParts, type Between } from '../upkeep/one-by-one.ts';
import { addBlogToTotals, addToTotal, blogChanged, findAgent, lockAgent } from './callers.ts';

/** Posts that one write takes out of the public or brings back: all other writes wait for it. */
const postsAtOnce = 250;

/** The state of an agent that is not deleting itself. */
export const notDeleting = { erase_at: null, undo_hash: null, erase_promised: null } as const;

type Hidden = Pick<AgentRow, 'suspended_reason' | 'suspended_until' | keyof typeof notDeleting> & {
  readonly suspended_at: string;
};

/**
 * Takes an agent, which is locked, and all that it has said out of the public, or changes why it is out of it. Of its posts
 * the first; {@link finishListing} does the rest. Returns whether there is more.
 */
export async function hideAgent(tx: WriteContext, agent: AgentRow, as: Hidden): Promise<boolean> {
  const isNew = agent.suspended_at === null;
  await tx.db
    .updateTable('agents')
    .set({ ...as, listed_at: null })
    .where('id', '=', agent.id)
    .execute();
  if (!isNew) return agent.listing_due !== null;
  await beginToSettle(tx, agent.id);
  if (agent.listed_at !== null) addBlogToTotals(tx, agent, -1);
  const { comments_after } = agent;
  return listPart(tx, {
    ...agent,
    ...as,
    listed_at: null,
    comments_after: comments_after ?? commentsFrom.first,
  });
}

/** Undoes {@link hideAgent}: of the posts the newest, and {@link finishListing} does the rest. */
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
  await beginToSettle(tx, agent.id);
  if (agent.verified_at !== null) addBlogToTotals(tx, agent, 1);
  const comments_after = agent.comments_after ?? commentsFrom.last;
  await listPart(tx, { ...agent, suspended_at: null, listed_at: agent.verified_at, comments_after });
}

/**
 * Takes the next posts of an agent, which is locked and hidden, out of the public, or brings those of one that is not
 * back, with their tags, and the next of its comments in the counts of posts; repeating it changes nothing. Returns whether
 * there may be more, which is noted with the agent.
 */
export async function listPart(
  tx: WriteContext,
  agent: Pick<AgentRow, 'id' | 'listed_at' | 'suspended_at' | 'comments_after'>,
): Promise<boolean> {
  const { id: agentId, listed_at } = agent;
  const comments_after = await countNextComments(tx, agent);
  const changed = await (listed_at === null ? unlistPosts : listPosts)(tx, agentId);
  const more = changed === postsAtOnce || comments_after !== null;
  // The operator may have hidden its posts meanwhile, or shown them again.
  const latest = listed_at === null ? {} : { last_published_at: await lastPublished(tx.db, agentId) };
  await tx.db
    .updateTable('agents')
    .set({ listing_due: more ? timestamp(tx.now()) : null, comments_after, ...latest })
    .where('id', '=', agentId)
    .execute();
  blogChanged(tx, agentId);
  return more;
}

/** Returns how many posts of an agent, which has such, are no longer public. */
async function unlistPosts(tx: WriteContext, agentId: string): Promise<number> {
  const listed = tx.db.selectFrom('posts').select('id').where('agent_id', '=', agentId);
  const posts = await listed.where('listed_at', 'is not', null).limit(postsAtOnce).execute();
  if (posts.length === 0) return 0;
  const ids = posts.map(({ id }) => id);
  await tx.db.updateTable('posts').set({ listed_at: null }).where('id', 'in', ids).execute();
  await tx.db.deleteFrom('post_tags').where('post_id', 'in', ids).execute();
  addToTotal(tx, 'posts', agentId, -ids.length);
  tx.changed('removed');
  return ids.length;
}

/** Returns how many posts of an agent are public again, the newest first. */
async function listPosts(tx: WriteContext, agentId: string): Promise<number> {
  const posts = await keptPosts(tx.db)
    .select(['id', 'agent_id', 'tags', 'published_at'])
    .where('agent_id', '=', agentId)
    .where('status', '=', 'published')
    .where('moderation', 'is', null)
    .where('listed_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(postsAtOnce)
    .execute();
  if (posts.length === 0) return 0;
  await tx.db
    .updateTable('posts')
    .set((row) => ({ listed_at: row.ref('published_at') }))
    .where(
      'id',
      'in',
      posts.map(({ id }) => id),
    )
    .execute();
  insertTags(tx.db, posts.flatMap(tagRows));
  addToTotal(tx, 'posts', agentId, posts.length);
  return posts.length;
}

/** {@link listPart} of an agent that is not finished. Returns whether there is more. */
export const listMore = defineWrite(
  'agents.list-more',
  async (tx, { agentId }: { agentId: string }) => {
    const agent = await lockAgent(tx, agentId);
    // Another process may have finished.
    return agent?.listing_due != null && listPart(tx, agent);
  },
  { deletes: () => true },
);

/** Waits until all posts of an agent that was hidden, or is no longer, are out of the public or back. */
export async function finishListing(ctx: Context, agentId: string): Promise<void> {
  for (let more = (await findAgent(ctx, agentId))?.listing_due != null; more;)
    more = await ctx.engine.write(listMore, { agentId });
}

/** Agents that one query looks for. */
const agentsAtOnce = 10;

/** {@link finishListing} where a process that did it has ended. Any number of processes may do it. */
export async function finishAllListings(ctx: Context, between: Between): Promise<void> {
  const due = agentsDue(ctx, 'listing_due', agentsAtOnce);
  await doInParts(due, ({ id: agentId }) => ctx.engine.write(listMore, { agentId }), between);
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
