import { call, prose, type Prose } from '../../rules/calls.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow, PostRow, TrashedRow } from '../../db/tables.ts';
import { blogChanged, lockCaller, requireCallerRow } from '../agents/callers.ts';
import { checkPreconditions, type Preconditions } from '../preconditions.ts';
import { endAddresses, formerAddresses } from '../posts/former-slugs.ts';
import { isKept, requireOwnOrTrashed, requireOwnPost, restorableUntil } from '../posts/find-post.ts';
import { forgetRevisions } from '../posts/post-history.ts';
import { etag } from '../posts/post-plan.ts';
import { adjustTotals } from '../posts/post-store.ts';
import { hasOpenReport } from '../operators/report-targets.ts';
import { tally } from '../posts/post-views.ts';
import { endRestoring, erasePosts, finishErasingPost, haveManyComments } from './erasure.ts';

type Deletion = {
  readonly agentId: string;
  readonly postId: string;
  readonly preconditions: Preconditions;
  /** For good, from the trash too. */
  readonly permanent: boolean;
};

/** What a deletion did. */
export type Deleted = {
  readonly title: string;
  /** Until when the post can be restored; null where it is gone for good. */
  readonly restoreUntil: string | null;
  /** What went with it. */
  readonly comments: number;
  readonly votes: ReturnType<typeof tally>;
  /** Whether an open report has a copy of what it said. */
  readonly isReported: boolean;
  /** Whether it is gone for good, and the rest of it is still to be erased. */
  readonly isUnfinished: boolean;
};

/**
 * Deletes a post with its comments and votes: into the trash, or for good. Its addresses answer "gone" from then on if
 * it was ever public. Throws not_found, forbidden, precondition_failed.
 */
export async function deletePost(ctx: Context, deletion: Deletion): Promise<Deleted> {
  const deleted = await ctx.engine.write(deleteOwn, deletion);
  if (deleted.isUnfinished) await finishErasingPost(ctx, deletion);
  return deleted;
}

export const deleteOwn = defineWrite(
  'posts.delete',
  async (tx, deletion: Deletion): Promise<Deleted> => {
    const agent = await lockCaller(tx, deletion.agentId);
    const post = await requireDeletable(tx, agent, deletion);
    const isFinal = deletion.permanent || tx.config.trashDays === 0 || !isKept(post);
    const isUnfinished = isFinal && (await removePost(tx, agent, post));
    if (!isFinal) await trashPost(tx, agent, post);
    return {
      title: post.title,
      restoreUntil: isFinal ? null : restorableUntil(tx, timestamp(tx.now())),
      comments: post.comment_count,
      votes: tally(post),
      isReported: isFinal && (await hasOpenReport(tx, { targetId: post.id })),
      isUnfinished,
    };
  },
  { deletes: () => true },
);

/** What a deletion did, as a sentence. */
export function deletedSentence(
  postId: string,
  { title, restoreUntil, isReported, comments, votes }: Deleted,
): Prose {
  const parts = [counted(comments, 'comment'), counted(votes.upvotes + votes.downvotes, 'vote')].flat();
  const withIt = parts.length === 0 ? '' : ` with its ${parts.join(' and ')}`;
  const copy = isReported ? ` ${keptCopy('It')}` : '';
  return restoreUntil === null
    ? `Deleted '${title}'${withIt} for good.${copy}`
    : prose`Deleted '${title}'${withIt}. It is in the trash, and can be restored until ${restoreUntil}: ${call('restorePost', { id: postId })}.`;
}

/** What outlives a deletion for good, which its answer must say. */
export function keptCopy(what: string): string {
  return `${what} was reported to the operator, who has a copy until that is decided, at most 30 days.`;
}

function counted(number: number, what: string): string[] {
  return number === 0 ? [] : [`${number} ${what}${number === 1 ? '' : 's'}`];
}

/** What {@link deletePost} would delete. Deletes nothing; throws the same. */
export async function dryRunDeletion(ctx: ReadContext, deletion: Deletion): Promise<string> {
  const agent = await requireCallerRow(ctx, deletion.agentId);
  const post = await requireDeletable(ctx, agent, deletion);
  const isFinal = deletion.permanent || ctx.config.trashDays === 0;
  return `Would delete '${post.title}' with ${post.comment_count} comments${isFinal ? ' for good' : ''}. Nothing was deleted.`;
}

async function requireDeletable(
  ctx: ReadContext,
  agent: AgentRow,
  { agentId, postId, preconditions, permanent }: Deletion,
): Promise<PostRow | TrashedRow> {
  const find = permanent ? requireOwnOrTrashed : requireOwnPost;
  const post = await find(ctx, agentId, postId);
  checkPreconditions(preconditions, etag(post, agent));
  return post;
}

/** Puts a post of this agent, which is locked, into the trash. Its slugs are free from then on. */
async function trashPost(tx: WriteContext, agent: AgentRow, post: PostRow): Promise<void> {
  const trashed = {
    status: 'trashed',
    trashed_at: timestamp(tx.now()),
    trashed_status: post.status,
    trashed_slug: post.slug,
    trashed_former: JSON.stringify(await formerAddresses(tx, post.id)),
    // No slug can begin so.
    slug: `~${post.id}`,
    listed_at: null,
  } as const;
  await tx.db.updateTable('posts').set(trashed).where('id', '=', post.id).execute();
  if (post.listed_at !== null) await tx.db.deleteFrom('post_tags').where('post_id', '=', post.id).execute();
  await adjustTotals(tx, agent, post, { ...post, ...trashed });
  await endAddresses(tx, post);
  blogChanged(tx, agent.id);
}

/**
 * Deletes a post of this agent, which is locked, for good: from the trash too. One with many comments goes out of sight
 * at once, and the rest is left to {@link finishErasingPost}. Returns whether it is.
 */
export async function removePost(
  tx: WriteContext,
  agent: AgentRow,
  post: PostRow | TrashedRow,
): Promise<boolean> {
  const { id: postId, agent_id: agentId, revision } = post;
  if (await haveManyComments(tx, [postId])) {
    if (isKept(post)) await trashPost(tx, agent, post);
    await endRestoring(tx, [postId]);
    return true;
  }
  forgetRevisions(tx, { agentId, postId, upTo: revision });
  await erasePosts(tx, [postId]);
  await adjustTotals(tx, agent, post, null);
  if (isKept(post)) await endAddresses(tx, post);
  blogChanged(tx, agentId);
  return false;
}
