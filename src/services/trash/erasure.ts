import { sql } from 'kysely';
import type { Context, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { TrashedRow } from '../../db/tables.ts';
import { blogChanged, lockAgent, lockCaller } from '../agents/callers.ts';
import { addToCommentCount, isInCount } from '../community/engagement.ts';
import { giveBackComments } from '../limits/quota.ts';
import { oldestTrashed } from '../posts/find-post.ts';

/** Erases everything in an agent's trash, a part at a time. Returns how many posts it erased. */
export async function emptyTrash(ctx: Context, agentId: string): Promise<number> {
  let total = 0;
  for (let more = true; more;) {
    const part = await ctx.engine.write(erasePart, { agentId });
    total += part.erased;
    more = part.more;
  }
  return total;
}

/** Erases a post that is in the trash, or was there for too long, a part at a time. */
export async function finishErasing(ctx: Context, post: { agentId: string; postId: string }): Promise<void> {
  const { agentId, postId } = post;
  for (let more = true; more;) ({ more } = await ctx.engine.write(erasePart, { agentId, postId }));
}

/** Erases the next part of an agent's trash, or of one post in it. Returns of how many nothing is left. */
export const erasePart = defineWrite(
  'trash.empty',
  async (tx, { agentId, postId }: { agentId: string; postId?: string }) => {
    // One post is also erased by the operator, of whoever it is.
    await (postId === undefined ? lockCaller(tx, agentId) : lockAgent(tx, agentId));
    const posts = await tx.db
      .selectFrom('posts')
      .select(['id', 'content_bytes'])
      .where('agent_id', '=', agentId)
      .where('trashed_at', 'is not', null)
      .$if(postId !== undefined, (post) => post.where('id', '=', postId ?? ''))
      .orderBy('trashed_at')
      .orderBy('id')
      .limit(erasedAtOnce)
      .execute();
    const erased = await eraseTrashed(tx, agentId, await firstToErase(tx, posts));
    return { erased, more: erased < posts.length || posts.length === erasedAtOnce };
  },
  { deletes: () => true },
);

/**
 * Erases posts that are in the trash of an agent, which is locked: of what is counted of it they hold bytes alone.
 * Returns how many: none where it was a part of one.
 */
async function eraseTrashed(
  tx: WriteContext,
  agentId: string,
  posts: readonly Pick<TrashedRow, 'id' | 'content_bytes'>[],
): Promise<number> {
  if (posts.length === 0) return 0;
  const ids = posts.map(({ id }) => id);
  const bytes = posts.reduce((sum, { content_bytes }) => sum + content_bytes, 0);
  const former = await tx.db
    .selectFrom('post_revisions')
    .select(sql<number>`coalesce(sum(bytes), 0)`.as('bytes'))
    .where('post_id', 'in', ids)
    .where('content', 'is not', null)
    .executeTakeFirstOrThrow();
  if (!(await erasePostsOrPart(tx, ids))) return 0;
  await tx.db
    .updateTable('agents')
    .set((agent) => ({
      content_bytes: agent('content_bytes', '-', bytes),
      revision_bytes: agent('revision_bytes', '-', former.bytes),
    }))
    .where('id', '=', agentId)
    .execute();
  blogChanged(tx, agentId);
  return posts.length;
}

/** Erases posts that were deleted too long ago, or a part of one. Returns of how many nothing is left, and if any is. */
export const purgeTrash = defineWrite(
  'trash.purge',
  async (tx) => {
    const due = () => tx.db.selectFrom('posts').where('trashed_at', '<=', oldestTrashed(tx));
    const oldest = await due()
      .select(['id', 'agent_id'])
      .orderBy('trashed_at')
      .orderBy('id')
      .limit(erasedAtOnce)
      .execute();
    const first = await firstToErase(tx, oldest);
    let erased = 0;
    // In the order of agents, so that two processes cannot deadlock.
    for (const [agentId, posts] of [...Map.groupBy(first, (post) => post.agent_id)].toSorted(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      await lockAgent(tx, agentId);
      const ids = posts.map(({ id }) => id);
      const still = await due().select(['id', 'content_bytes']).where('id', 'in', ids).execute();
      erased += await eraseTrashed(tx, agentId, still);
    }
    return { erased, more: first.length > 0 };
  },
  { deletes: () => true },
);

/** Posts that one write erases, and comments on them. */
export const erasedAtOnce = 100;
const commentsAtOnce = 1_000;

/** Of posts the first, as many as one write may erase: one at least, and of that perhaps only a part. */
export async function firstToErase<Post extends { readonly id: string }>(
  tx: WriteContext,
  posts: readonly Post[],
): Promise<readonly Post[]> {
  if (posts.length < 2) return posts;
  const counts = await commentsOn(
    tx,
    posts.map(({ id }) => id),
  );
  let comments = 0;
  const first = posts.filter(({ id }) => (comments += counts.get(id) ?? 0) <= commentsAtOnce);
  return first.length > 0 ? first : posts.slice(0, 1);
}

/**
 * Erases posts that nobody finds any more, as {@link erasePosts} does. Of a single one with more comments than one write
 * erases only some of these go, and it can no longer be restored. Returns whether nothing is left.
 */
export async function erasePostsOrPart(tx: WriteContext, ids: readonly string[]): Promise<boolean> {
  const [only = ''] = ids;
  const isPart = ids.length === 1 && (await hasManyComments(tx, only));
  await (isPart ? eraseSomeComments(tx, only) : erasePosts(tx, ids));
  return !isPart;
}

/** Erases posts, but for what is counted of their agents. */
export async function erasePosts(tx: WriteContext, ids: readonly string[]): Promise<void> {
  // Locks the posts: from here on nobody can add a comment that would not be seen below.
  await tx.db.updateTable('posts').set({ listed_at: null }).where('id', 'in', ids).execute();
  await giveBackComments(tx, 'post_id', ids);
  await tx.db.deleteFrom('posts').where('id', 'in', ids).execute();
}

/** Whether a post has more comments than one write erases. */
export async function hasManyComments(tx: WriteContext, postId: string): Promise<boolean> {
  return ((await commentsOn(tx, [postId])).get(postId) ?? 0) > commentsAtOnce;
}

/** How many comments there are on posts, whoever may see them; those without any are left out. */
async function commentsOn({ db }: WriteContext, ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('comments')
    .select(['post_id', sql<number>`count(*)`.as('comments')])
    .where('post_id', 'in', ids)
    .groupBy('post_id')
    .execute();
  return new Map(rows.map(({ post_id, comments }) => [post_id, comments]));
}

async function eraseSomeComments(tx: WriteContext, postId: string): Promise<void> {
  const some = tx.db.selectFrom('comments').select('id').where('post_id', '=', postId).limit(commentsAtOnce);
  const ids = (await some.execute()).map(({ id }) => id);
  // Locks their authors, of whose suspension it depends which are in the count of the post.
  await giveBackComments(tx, 'id', ids);
  const rows = await tx.db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.created_at', 'suspended_at', 'comments_after'])
    .where('comments.id', 'in', ids)
    .where('held_at', 'is', null)
    .execute();
  const counted = rows.filter((row) => isInCount(row, row)).length;
  await addToCommentCount(tx, postId, -counted);
  await endRestoring(tx, postId);
  await tx.db.deleteFrom('comments').where('id', 'in', ids).execute();
}

/** Of a post in the trash: from now on it has been there for too long, and is erased by whoever comes first. */
export async function endRestoring(tx: WriteContext, postId: string): Promise<void> {
  await tx.db
    .updateTable('posts')
    .set({ trashed_at: oldestTrashed(tx) })
    .where('id', '=', postId)
    .where('trashed_at', '>', oldestTrashed(tx))
    .execute();
}
