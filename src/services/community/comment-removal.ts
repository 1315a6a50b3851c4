import { sql } from 'kysely';
import { defineWrite } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { lockAgent } from '../agents/callers.ts';
import { addCommentBytes } from '../limits/quota.ts';
import { findPost, requireListed, type FoundPost } from '../posts/find-post.ts';
import { upholdReports } from '../operators/reports.ts';
import { noteAction, type Acting } from '../operators/audit.ts';
import { notifyAgent } from '../operators/notices.ts';
import { isAnswered } from './comment-views.ts';
import { addToCommentCount, isInCount, noSuchComment, ownComments } from './engagement.ts';

// A comment that has answers stays when it is deleted, without its author and text; the last answer takes it along.

type Removal = {
  readonly agentId: string;
  readonly postId: string;
  readonly commentId: string;
  /** The operator, who deletes in the name of the owner of the post. */
  readonly by?: Acting;
};

/** Deletes a comment, for its author or the owner of the post, public or not. Throws not_found, forbidden. */
export const deleteComment = defineWrite(
  'comments.delete',
  async (tx, { agentId, postId, commentId, by }: Removal) => {
    const [post, comment] = await Promise.all([findPost(tx, postId), storedComment(tx, postId, commentId)]);
    const authorId = comment?.agent_id ?? null;
    const isTheirs = (comment && authorId === agentId) || post?.agent_id === agentId;
    // Nobody else learns of a post that is not public.
    if (!isTheirs) requireListed(post, postId);
    if (authorId === null) throw noSuchComment(postId);
    if (!isTheirs) {
      throw new AppError('forbidden', "Only a comment's author or the owner of the post can delete it.", {
        hint: ownComments,
      });
    }
    const author = await lockAgent(tx, authorId);
    const deleted = await storedComment(tx, postId, commentId);
    if (!deleted?.agent_id) throw noSuchComment(postId);
    // What is held, or of a suspended author, is not in the count, which locks the post.
    const isCounted = author !== undefined && isInCount(author, deleted) && deleted.held_at === null;
    await addToCommentCount(tx, postId, isCounted ? -1 : 0);
    if (by && author) await noteRemoval(tx, by, author, { commentId, post });
    await addCommentBytes(tx.db, { agentId: authorId, bytes: -Buffer.byteLength(deleted.content) });
    await lockThreads(tx, [deleted]);
    await takeOut(tx, commentId);
  },
  { deletes: () => true },
);

async function storedComment({ db }: WriteContext, postId: string, commentId: string) {
  return db
    .selectFrom('comments')
    .select(['id', 'created_at', 'agent_id', 'thread_id', 'content', 'held_at'])
    .where('id', '=', commentId)
    .where('post_id', '=', postId)
    .executeTakeFirst();
}

/** Notes that the operator deletes a comment, and says so to those who reported it and to its author, who is locked. */
async function noteRemoval(
  tx: WriteContext,
  by: Acting,
  author: AgentRow,
  { commentId, post }: { commentId: string; post: FoundPost | undefined },
): Promise<void> {
  const noted = await noteAction(tx, by, 'delete-comment', { kind: 'comment', id: commentId });
  const reported = await upholdReports(tx, { targetId: commentId }, by);
  const on = post ? { post: { authorSlug: post.author_slug, slug: post.slug } } : {};
  await notifyAgent(tx, { ...by, rule: by.rule ?? reported }, author, noted, on);
}

/** One at a time looks at what is left above and below: two who delete the last answers would each see the other's. */
async function lockThreads(
  tx: WriteContext,
  comments: readonly { id: string; thread_id: string | null }[],
): Promise<void> {
  const threads = new Set(comments.map(({ id, thread_id }) => thread_id ?? id));
  // In order, so that two cannot deadlock.
  for (const thread of [...threads].toSorted()) await tx.lock(`thread:${thread}`);
}

async function takeOut(tx: WriteContext, commentId: string): Promise<void> {
  if (await blankIfAnswered(tx, commentId))
    await tx.db.deleteFrom('inbox').where('comment_id', '=', commentId).execute();
  else await deleteUpwards(tx, commentId);
}

/** What is left of a deleted comment. */
const blank = { agent_id: null, content: '', html: '', unseen: null, edited_at: null, removed_reason: null };

async function blankIfAnswered({ db }: WriteContext, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('comments')
    .set(blank)
    .where('id', '=', id)
    .where('id', 'in', db.selectFrom('comments').select('parent_id').where('parent_id', '=', id))
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Comments of an agent that one write erases. */
const erasedAtOnce = 100;

/**
 * Erases the next comments of an agent that is being erased: the counts of the posts that they are on are without them.
 * Returns whether there are more.
 */
export async function eraseComments(tx: WriteContext, agentId: string): Promise<boolean> {
  const next = await tx.db
    .selectFrom('comments')
    .select(['id', 'thread_id'])
    .where('agent_id', '=', agentId)
    // The newest first: of one that answers another of them, nothing is left that would have to stay.
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(erasedAtOnce)
    .execute();
  if (next.length === 0) return false;
  await lockThreads(tx, next);
  const comments = await tx.db
    .selectFrom('comments')
    .select(['id', 'parent_id as parent', isAnswered.as('isKept')])
    .where(
      'id',
      'in',
      next.map(({ id }) => id),
    )
    .orderBy('id')
    .execute();
  const answered = comments.filter(({ isKept }) => isKept).map(({ id }) => id);
  if (answered.length > 0) {
    await tx.db.updateTable('comments').set(blank).where('id', 'in', answered).execute();
    await tx.db.deleteFrom('inbox').where('comment_id', 'in', answered).execute();
  }
  const others = comments.filter(({ isKept }) => !isKept);
  const alone = others.filter(({ parent }) => parent === null).map(({ id }) => id);
  if (alone.length > 0) await tx.db.deleteFrom('comments').where('id', 'in', alone).execute();
  let gone = 0;
  for (const { id, parent } of others) {
    if (parent === null) continue;
    if (gone >= mostUpwards) return true;
    gone += await deleteUpwards(tx, id);
  }
  return next.length === erasedAtOnce;
}

/** Comments that a deletion takes along at most, as threads may be of any depth: further ones above stay blank. */
const mostUpwards = 1_000;

/**
 * Deletes a comment that has no answers, and those above it, one after the other, that are blank and have no other answers.
 * Returns how many.
 */
async function deleteUpwards({ db }: WriteContext, id: string): Promise<number> {
  const { numAffectedRows } = await sql`with recursive gone (id, parent_id, steps) as (
      select id, parent_id, 1 from comments where id = ${id}
      union all
      select above.id, above.parent_id, gone.steps + 1
        from gone join comments as above on above.id = gone.parent_id
        where above.agent_id is null and gone.steps < ${sql.lit(mostUpwards)} and (
          select 1 from comments as answer where answer.parent_id = above.id and answer.id <> gone.id limit 1
        ) is null
    )
    delete from comments where id in (select id from gone)`.execute(db);
  return Number(numAffectedRows ?? 0);
}
