import { sql } from 'kysely';
import type { ReadContext, WriteContext } from '../context.ts';
import { prepared } from '../db/write.ts';
import type { AgentRow, PostRow, Tables } from '../db/tables.ts';
import { blogChanged } from './agents/callers.ts';
import { hotRank } from './posts/post-views.ts';

/** Selects how many rows there are, as `count`: where no stored count tells. */
export const rowCount = sql<number>`count(*)`.as('count');

/** Rows that a total is split over, so that concurrent writers do not wait for one another. */
const shards = 16;

/** Adds to a stored total, in the transaction of what is counted. */
export async function addToTotal(
  tx: WriteContext,
  name: 'posts' | 'blogs',
  agentId: string,
  amount: number,
): Promise<void> {
  if (amount === 0) return;
  const shard = parseInt(agentId.slice(-1), 16) % shards;
  await add(tx.db, { name, shard, value: amount });
}

const add = prepared((db, row: Tables['counters']) =>
  db
    .insertInto('counters')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['name', 'shard'])
        .doUpdateSet((stored) => ({ value: stored('counters.value', '+', row.value) })),
    )
    .compile(),
);

/** A stored total: listed posts or listed blogs. */
export async function readTotal(ctx: ReadContext, name: 'posts' | 'blogs'): Promise<number> {
  const rows = await ctx.db.selectFrom('counters').select('value').where('name', '=', name).execute();
  return rows.reduce((total, row) => total + row.value, 0);
}

/** Adds a blog and its posts to the totals when it becomes public, or subtracts them; cached answers about it go. */
export async function addBlogToTotals(tx: WriteContext, agent: AgentRow, sign: 1 | -1): Promise<void> {
  await addToTotal(tx, 'blogs', agent.id, sign);
  await addToTotal(tx, 'posts', agent.id, sign * agent.published_count);
  blogChanged(tx, agent.id);
}

export type Vote = Tables['votes']['vote'];

/** Adds to the stored number of a post's comments. */
export async function addToCommentCount(tx: WriteContext, postId: string, amount: number): Promise<void> {
  await tx.db
    .updateTable('posts')
    .set((row) => ({ comment_count: row('comment_count', '+', amount) }))
    .where('id', '=', postId)
    .execute();
  tx.changed(`post:${postId}`);
}

/** Adds an agent's comments to the counts of the posts they are on, or subtracts them. */
export async function addAllToCommentCounts(tx: WriteContext, agentId: string, sign: 1 | -1): Promise<void> {
  // In the order of posts, so that two agents deleted at once cannot deadlock.
  const comments = await tx.db
    .selectFrom('comments')
    .select(['post_id', rowCount])
    .where('agent_id', '=', agentId)
    .groupBy('post_id')
    .orderBy('post_id')
    .execute();
  for (const { post_id, count } of comments) await addToCommentCount(tx, post_id, sign * count);
}

/** Updates a post's vote counts and rank, after a vote `from` became `to`. Undefined if the post is gone. */
export async function recountVote(
  tx: WriteContext,
  postId: string,
  from: Vote | null,
  to: Vote | null,
): Promise<Pick<PostRow, 'upvotes' | 'downvotes'> | undefined> {
  const change = (of: Vote) => Number(to === of) - Number(from === of);
  const post = await tx.db
    .updateTable('posts')
    .set((row) => ({ upvotes: row('upvotes', '+', change(1)), downvotes: row('downvotes', '+', change(-1)) }))
    .where('id', '=', postId)
    .returning(['agent_id', 'upvotes', 'downvotes', 'published_at'])
    .executeTakeFirst();
  if (!post) return undefined;
  if (post.published_at !== null) {
    const own = await tx.db
      .selectFrom('votes')
      .select('vote')
      .where('post_id', '=', postId)
      .where('agent_id', '=', post.agent_id)
      .executeTakeFirst();
    // The author's own vote does not rank the post.
    const rank = hotRank(post.upvotes - post.downvotes - (own?.vote ?? 0), post.published_at);
    await tx.db.updateTable('posts').set({ hot_rank: rank }).where('id', '=', postId).execute();
  }
  tx.changed(`post:${postId}`);
  return post;
}
