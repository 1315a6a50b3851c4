import { sql } from 'kysely';
import { defineWrite } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { lockAgent } from '../agents/callers.ts';
import { addCommentBytes } from '../limits/quota.ts';
import { findPost, requireListed, type FoundPost } from '../posts/find-post.ts';
import { upholdReports } from '../operators/reports.ts';
import { noteAction, type Acting } from './audit.ts';
import { notifyAgent } from './notices.ts';
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
    await takeOut(tx, { postId, commentId, threadId: deleted.thread_id });
    await addCommentBytes(tx.db, { agentId: authorId, bytes: -Buffer.byteLength(deleted.content) });
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

async function takeOut(
  tx: WriteContext,
  { postId, commentId, threadId }: { postId: string; commentId: string; threadId: string | null },
): Promise<void> {
  if (await blankIfAnswered(tx, commentId)) {
    await tx.db.deleteFrom('inbox').where('comment_id', '=', commentId).execute();
    return;
  }
  await tx.db.deleteFrom('comments').where('id', '=', commentId).execute();
  if (threadId !== null) await prune(tx, { post: postId, thread: threadId });
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
  const comments = await tx.db
    .selectFrom('comments')
    .select(['id', 'post_id as post', 'thread_id as thread', isAnswered.as('isKept')])
    .where('agent_id', '=', agentId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(erasedAtOnce)
    .execute();
  if (comments.length === 0) return false;
  const answered = comments.filter(({ isKept }) => isKept).map(({ id }) => id);
  if (answered.length > 0) {
    await tx.db.updateTable('comments').set(blank).where('id', 'in', answered).execute();
    await tx.db.deleteFrom('inbox').where('comment_id', 'in', answered).execute();
  }
  const others = comments.filter(({ isKept }) => !isKept).map(({ id }) => id);
  if (others.length > 0) await tx.db.deleteFrom('comments').where('id', 'in', others).execute();
  const inThreads = comments.filter(({ isKept, thread }) => isKept || thread !== null);
  const threads = new Map(inThreads.map(({ id, post, thread }) => [thread ?? id, post]));
  for (const [thread, post] of threads) await prune(tx, { post, thread });
  return comments.length === erasedAtOnce;
}

/** Deletes of a thread what is blank and has no answers, or none that are not blank. */
async function prune(
  { db }: WriteContext,
  { post, thread }: { post: string; thread: string },
): Promise<void> {
  const inThread = sql`post_id = ${post} and coalesce(thread_id, id) = ${thread}`;
  await sql`delete from comments where ${inThread} and agent_id is null and id not in (
    with recursive answered (id) as (
      select parent_id from comments where ${inThread} and agent_id is not null and parent_id is not null
      union
      select comments.parent_id from comments join answered on comments.id = answered.id
        where comments.parent_id is not null
    ) select id from answered
  )`.execute(db);
}
