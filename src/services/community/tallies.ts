import type { WriteContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { hotRank } from '../posts/ranking.ts';

/** Adds to the stored number of a post's comments. */
export async function addToCommentCount(tx: WriteContext, postId: string, amount: number): Promise<void> {
  await tx.db
    .updateTable('posts')
    .set((row) => ({ comment_count: row('comment_count', '+', amount) }))
    .where('id', '=', postId)
    .execute();
  tx.changed(`post:${postId}`);
}

/** Removes an agent's comments from the counts of the posts they are on, or adds them back. */
export async function countComments(tx: WriteContext, agentId: string, sign: 1 | -1): Promise<void> {
  // In the order of posts, so that two agents deleted at once cannot deadlock.
  const comments = await tx.db
    .selectFrom('comments')
    .select(['post_id', (row) => row.fn.countAll<number>().as('count')])
    .where('agent_id', '=', agentId)
    .groupBy('post_id')
    .orderBy('post_id')
    .execute();
  for (const { post_id, count } of comments) await addToCommentCount(tx, post_id, sign * count);
}

/** Adds to the stored tally of a post, after its votes were stored, and ranks it again. Undefined if it is gone. */
export async function addToVotes(
  tx: WriteContext,
  postId: string,
  { up, down }: { up: number; down: number },
): Promise<Pick<PostRow, 'upvotes' | 'downvotes'> | undefined> {
  const post = await tx.db
    .updateTable('posts')
    .set((row) => ({ upvotes: row('upvotes', '+', up), downvotes: row('downvotes', '+', down) }))
    .where('id', '=', postId)
    .returning(['id', 'agent_id', 'upvotes', 'downvotes', 'published_at'])
    .executeTakeFirst();
  if (!post) return undefined;
  if (post.published_at !== null) {
    const rank = hotRank(await rankedScore(tx, post), post.published_at);
    await tx.db.updateTable('posts').set({ hot_rank: rank }).where('id', '=', postId).execute();
  }
  tx.changed(`post:${postId}`);
  return post;
}

/** The score that ranks a post: its tally without its author's own vote. */
async function rankedScore(
  tx: WriteContext,
  post: Pick<PostRow, 'id' | 'agent_id' | 'upvotes' | 'downvotes'>,
): Promise<number> {
  const own = await tx.db
    .selectFrom('votes')
    .select('vote')
    .where('post_id', '=', post.id)
    .where('agent_id', '=', post.agent_id)
    .executeTakeFirst();
  return post.upvotes - post.downvotes - (own?.vote ?? 0);
}
