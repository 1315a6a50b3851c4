import { sql } from 'kysely';
import type { Context, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { TrashedRow } from '../../db/tables.ts';
import { blogChanged, lockAgent, lockCaller } from '../agents/callers.ts';
import { addCommentBytes } from '../limits/quota.ts';
import { oldestTrashed } from '../posts/find-post.ts';

/** Erases everything in an agent's trash, or one post in it, a part at a time. Returns how many posts it erased. */
export async function eraseTrash(ctx: Context, of: { agentId: string; postId?: string }): Promise<number> {
  let total = 0;
  for (let more = true; more;) {
    const part = await ctx.engine.write(eraseTrashPart, of);
    total += part.erased;
    more = part.more;
  }
  return total;
}

/** The same for a post that is deleted for good already: where it fails, the sweep goes on. */
export async function finishErasingPost(
  ctx: Context,
  post: { agentId: string; postId: string },
): Promise<void> {
  try {
    await eraseTrash(ctx, post);
  } catch (err) {
    ctx.log.warn({ err, post: post.postId }, 'a deleted post is not erased yet');
  }
}

/** Erases the next part of an agent's trash, or of one post in it. Returns of how many nothing is left. */
export const eraseTrashPart = defineWrite(
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

/** Erases posts that were deleted too long ago, or a part of one. Returns how many it found. */
export const purgeTrash = defineWrite(
  'trash.purge',
  async (tx) => {
    const due = () => tx.db.selectFrom('posts').where('trashed_at', '<=', oldestTrashed(tx));
    const oldest = await due()
      .select(['id', 'agent_id', 'content_bytes'])
      .orderBy('trashed_at')
      .orderBy('id')
      .limit(erasedAtOnce)
      .execute();
    const first = await firstToErase(tx, oldest);
    // In the order of agents, so that two processes cannot deadlock.
    for (const [agentId, posts] of [...Map.groupBy(first, (post) => post.agent_id)].toSorted(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      await lockAgent(tx, agentId);
      const ids = posts.map(({ id }) => id);
      const still = await due().select(['id', 'content_bytes']).where('id', 'in', ids).execute();
      await eraseTrashed(tx, agentId, still);
    }
    return first.length;
  },
  { deletes: () => true },
);

/** Posts that one write erases, bytes of their contents, and comments on them. */
export const erasedAtOnce = 100;
const bytesAtOnce = 4 * 1024 * 1024;
const commentsAtOnce = 1_000;

/** Of posts the first, as many as one write may erase: one at least, and of that perhaps only a part. */
export async function firstToErase<Post extends Pick<TrashedRow, 'id' | 'content_bytes'>>(
  tx: WriteContext,
  posts: readonly Post[],
): Promise<readonly Post[]> {
  let bytes = 0;
  let first = posts.filter((post, n) => (bytes += post.content_bytes) <= bytesAtOnce || n === 0);
  const ids = () => first.map(({ id }) => id);
  while (first.length > 1 && (await haveManyComments(tx, ids()))) first = first.slice(0, first.length / 2);
  return first;
}

/** Whether there are more comments on posts, whoever may see them, than one write erases. */
export async function haveManyComments({ db }: WriteContext, ids: readonly string[]): Promise<boolean> {
  const some = db
    .selectFrom('comments')
    .select('id')
    .where('post_id', 'in', ids)
    .limit(commentsAtOnce + 1);
  return (await some.execute()).length > commentsAtOnce;
}

/**
 * Erases posts that nobody finds any more, as {@link erasePosts} does. Of a single one with more comments than one write
 * erases only some of these go, and it can no longer be restored. Returns whether nothing is left.
 */
export async function erasePostsOrPart(tx: WriteContext, ids: readonly string[]): Promise<boolean> {
  if (ids.length > 1 || !(await haveManyComments(tx, ids))) {
    await erasePosts(tx, ids);
    return true;
  }
  await endRestoring(tx, ids);
  await eraseCommentsOn(tx, ids);
  return false;
}

/** Erases posts, but for what is counted of their agents. */
export async function erasePosts(tx: WriteContext, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  // Locks the posts: from here on nobody can add a comment that would not be seen below.
  await tx.db.updateTable('posts').set({ listed_at: null }).where('id', 'in', ids).execute();
  for (let more = true; more;) more = await eraseCommentsOn(tx, ids);
  await tx.db.deleteFrom('posts').where('id', 'in', ids).execute();
}

/**
 * Erases the next comments on posts, which are locked, and gives their authors the bytes back. What is counted of the
 * posts stays as it was. Returns whether there may be more.
 */
async function eraseCommentsOn({ db }: WriteContext, postIds: readonly string[]): Promise<boolean> {
  const some = db.selectFrom('comments').select('id').where('post_id', 'in', postIds).limit(commentsAtOnce);
  const gone = await db
    .deleteFrom('comments')
    .where('id', 'in', some)
    .returning(['agent_id', sql<number>`octet_length(content)`.as('bytes')])
    .execute();
  const authors = new Map<string, number>();
  for (const { agent_id, bytes } of gone)
    if (agent_id !== null) authors.set(agent_id, (authors.get(agent_id) ?? 0) + bytes);
  // In the order of agents, so that two posts deleted at once cannot deadlock.
  for (const [agentId, bytes] of [...authors].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    await addCommentBytes(db, { agentId, bytes: -bytes });
  return gone.length === commentsAtOnce;
}

/** `trashed_at` of a post that is being erased: whatever the settings and the clock say, it was deleted too long ago. */
export const pastRestoring = '';

/** Of posts in the trash, which this locks: nobody finds them any more, and the sweep erases what is left of them. */
export async function endRestoring({ db }: WriteContext, ids: readonly string[]): Promise<void> {
  await db
    .updateTable('posts')
    .set((post) => ({
      trashed_at: post.case().when('trashed_at', 'is', null).then(null).else(pastRestoring).end(),
    }))
    .where('id', 'in', ids)
    .execute();
}
