import { sql } from 'kysely';
import type { Context, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { PostRow, TrashedRow } from '../../db/tables.ts';
import { blogChanged, lockAgent, lockCaller } from '../agents/callers.ts';
import { giveBackComments } from '../limits/quota.ts';
import { oldestTrashed } from '../posts/find-post.ts';

/** Erases everything in an agent's trash, a part at a time. Returns how many posts it erased. */
export async function emptyTrash(ctx: Context, agentId: string): Promise<number> {
  let erased = 0;
  for (let last = 1; last > 0; erased += last) last = await ctx.engine.write(erasePart, { agentId });
  return erased;
}

export const erasePart = defineWrite(
  'trash.empty',
  async (tx, { agentId }: { agentId: string }) => {
    await lockCaller(tx, agentId);
    const posts = await tx.db
      .selectFrom('posts')
      .select(['id', 'comment_count', 'content_bytes'])
      .where('agent_id', '=', agentId)
      .where('trashed_at', 'is not', null)
      .orderBy('trashed_at')
      .orderBy('id')
      .limit(erasedAtOnce)
      .execute();
    const first = firstToErase(posts);
    await eraseTrashed(tx, agentId, first);
    return first.length;
  },
  { deletes: () => true },
);

/** Erases posts that are in the trash of an agent, which is locked: of what is counted of it they hold bytes alone. */
async function eraseTrashed(
  tx: WriteContext,
  agentId: string,
  posts: readonly Pick<TrashedRow, 'id' | 'content_bytes'>[],
): Promise<void> {
  if (posts.length === 0) return;
  const ids = posts.map(({ id }) => id);
  const bytes = posts.reduce((sum, { content_bytes }) => sum + content_bytes, 0);
  const former = tx.db
    .selectFrom('post_revisions')
    .select(sql<number>`coalesce(sum(bytes), 0)`.as('bytes'))
    .where('post_id', 'in', ids)
    .where('content', 'is not', null);
  await tx.db
    .updateTable('agents')
    .set((agent) => ({
      content_bytes: agent('content_bytes', '-', bytes),
      revision_bytes: agent('revision_bytes', '-', former),
    }))
    .where('id', '=', agentId)
    .execute();
  await erasePosts(tx, ids);
  blogChanged(tx, agentId);
}

/** Erases posts that were deleted too long ago. Returns how many. */
export const purgeTrash = defineWrite(
  'trash.purge',
  async (tx) => {
    const due = () => tx.db.selectFrom('posts').where('trashed_at', '<=', oldestTrashed(tx));
    const oldest = await due()
      .select(['id', 'agent_id', 'comment_count'])
      .orderBy('trashed_at')
      .orderBy('id')
      .limit(erasedAtOnce)
      .execute();
    const first = firstToErase(oldest);
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

/** Posts that one write erases, and the comments on them after which it takes no more. */
export const erasedAtOnce = 100;
const commentsAtOnce = 1_000;

/** Of posts that are to be erased the first, as many as one write may erase. */
export function firstToErase<Post extends Pick<PostRow, 'comment_count'>>(posts: readonly Post[]): Post[] {
  let comments = 0;
  return posts
    .slice(0, erasedAtOnce)
    .filter(({ comment_count }) => (comments += comment_count) - comment_count < commentsAtOnce);
}

/** Erases posts, but for what is counted of their agents. */
export async function erasePosts(tx: WriteContext, ids: readonly string[]): Promise<void> {
  await giveBackComments(tx, ids);
  await tx.db.deleteFrom('posts').where('id', 'in', ids).execute();
}
