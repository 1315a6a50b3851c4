import { sql } from 'kysely';
import { prepared, preparedInsert } from '../../db/prepared.ts';
import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { Context, WriteContext } from '../../context.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { AppError, invalidField } from '../../errors.ts';
import { rendererVersion } from '../../markdown/rendered.ts';
import { storedStretches } from '../../markdown/unseen.ts';
import { call, prose } from '../../rules/calls.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import { looksMangled } from '../../rules/text.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { postUrl } from '../../variant.ts';
import { lockCaller, type Caller } from '../agents/callers.ts';
import { remember, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { findPost, noSuchPost, requireListed } from '../posts/find-post.ts';
import { addCommentBytes, checkCommentQuota } from '../limits/quota.ts';
import { refuseLeakedKeys } from '../agents/leaked-keys.ts';
import { showsNothing } from '../posts/post-input.ts';
import { holdFor } from '../trust/source-blocks.ts';
import { bySourceBlock, noteAction } from '../operators/audit.ts';
import { notifyAgent } from '../operators/notices.ts';
import { blockedByOwner, isBlockedOn } from './blocks.ts';
import { noteComment } from './inbox-events.ts';
import { commentColumns, commentView, type Comment } from './comment-views.ts';

type Adding = {
  /** The comment on the same post that it answers. */
  readonly parentId?: string | undefined;
  readonly replay?: Replayable | null;
  readonly ticket?: Ticket | undefined;
  /** Fires when the client has left. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Adds a comment to a published post. Throws not_found, blocked, comments_closed, leaked_key, invalid_input where it shows nothing or answers
 * nothing, unrenderable, idempotency_mismatch.
 */
export async function addComment(
  ctx: Context,
  caller: Caller,
  postId: string,
  content: string,
  { parentId, replay = null, ticket, signal }: Adding = {},
): Promise<Remembered<Comment> & { warnings: Warning[] }> {
  const { texts, ...more } = await prepareComment(ctx, caller, content, signal);
  const ids = { agentId: caller.id, postId, parentId: parentId ?? null };
  const comment = { ...ids, ...texts, ...more, replay };
  const { result, replayed } = await ctx.engine.write(storeComment, comment, ticket);
  // An answer that 0.1.1 stored has none.
  const { warnings = more.warnings, ...stored } = result;
  return { result: await whole(ctx, stored), replayed, warnings };
}

/** A comment that 0.1.0 stored for a repeated call has no thread, no author in one piece, and no address. */
async function whole(ctx: Context, comment: Comment): Promise<Comment> {
  const { threadId = null } = comment as Partial<Comment>;
  if (threadId !== null) return comment;
  const { id, postId, authorName: name, authorSlug: slug, authorUrl: url } = comment;
  const post = await findPost(ctx, postId);
  const { site, variant } = ctx.config;
  const page = post ? postUrl(variant, site, post.author_slug ?? '', post.slug) : url;
  const author = { name, slug, url };
  const place = { parentId: null, threadId: id, url: `${page}#comment-${id}` };
  return { ...comment, ...place, author, editedAt: null };
}

/** Cleans and renders a comment, before any transaction begins. */
async function prepareComment(
  ctx: Context,
  caller: Caller,
  sent: string,
  signal: AbortSignal | undefined,
): Promise<{ texts: CommentTexts; mentions: readonly string[]; warnings: Warning[] }> {
  const rendered = await ctx.renderer.renderComment(sent, caller.id, signal);
  const { content, html, isVisible, warnings } = rendered;
  // A key may appear only when hidden characters or markdown's escapes are gone.
  await refuseLeakedKeys(ctx, { content: [content, rendered.text, html] });
  if (!isVisible) throw showsNothing();
  const heldFor = await holdFor(ctx, { texts: [content, rendered.text], html });
  const texts = { content, html, unseen: storedStretches(rendered.unseen), heldFor };
  const held =
    heldFor === null ? [] : warning('held', 'the comment is held back until the operator has looked at it');
  return {
    texts,
    mentions: rendered.mentions,
    warnings: [...warnings, looksMangled(content) ?? [], held].flat(),
  };
}

type CommentTexts = Pick<Tables['comments'], 'content' | 'html' | 'unseen'> & {
  /** Id of the source block for which it is held back. */
  readonly heldFor?: string | null;
};

type NewComment = CommentTexts & {
  agentId: string;
  postId: string;
  parentId?: string | null;
  mentions?: readonly string[];
  /** What its answer warns of, to be said again to a repeat. */
  warnings?: Warning[];
  replay: Replayable | null;
};

export const storeComment = defineWrite(
  'comments.add',
  async (
    tx,
    { replay, warnings = [], ...comment }: NewComment,
  ): Promise<Remembered<Comment & { warnings?: Warning[] }>> =>
    remember(tx, replay, async () => {
      const { agentId, postId, parentId = null, mentions = [], heldFor = null, ...texts } = comment;
      const [agent, found, isBlocked] = await Promise.all([
        lockCaller(tx, agentId),
        findPost(tx, postId),
        isBlockedOn(tx, { postId, agentId }),
      ]);
      const post = requireListed(found, postId, agentId);
      if (isBlocked) throw blockedByOwner();
      if (post.commentsOpen === 0) throw new AppError('comments_closed', 'This post takes no more comments.');
      const bytes = Buffer.byteLength(texts.content);
      await checkCommentQuota(tx, agent, bytes);
      const made = { id: uuidv7(tx.now()), created_at: timestamp(tx.now()) };
      // First, since it locks the post: one that is being deleted gives back the bytes of all its comments, and what
      // is answered cannot be deleted from here on.
      const [isThere, parent] = await Promise.all([
        addToCommentCount(tx, postId, heldFor === null && isInCount(agent, made) ? 1 : 0),
        parentId === null ? null : commentToAnswer(tx, postId, parentId),
      ]);
      if (!isThere) throw noSuchPost(postId);
      const row = {
        ...made,
        post_id: postId,
        agent_id: agentId,
        parent_id: parentId,
        thread_id: parent && (parent.thread_id ?? parent.id),
        edited_at: null,
        held_at: heldFor === null ? null : timestamp(tx.now()),
        removed_reason: null,
        renderer_version: rendererVersion,
        ...texts,
      };
      insertComments(tx.db, [row]);
      const answered = parent?.agent_id ?? null;
      if (heldFor !== null) await noteHold(tx, agent, row.id, heldFor);
      await noteComment(tx, { post, commentId: row.id, actorId: agentId, answered, mentions });
      await addCommentBytes(tx.db, { agentId, bytes });
      const of = { author_name: agent.name, author_slug: agent.slug, suspended_at: null };
      const stored = commentView(tx, { ...row, ...of }, { post, callerId: agentId });
      return { agentId, result: { ...stored, warnings } };
    }),
);

const insertComments = preparedInsert('comments');

/** The comment that a new one answers. Throws invalid_input where readers see none. */
async function commentToAnswer({ db }: WriteContext, postId: string, id: string) {
  const parent = await db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.thread_id', 'comments.agent_id'])
    .where('comments.id', '=', id)
    .where('comments.post_id', '=', postId)
    .where('comments.held_at', 'is', null)
    .where('agents.suspended_at', 'is', null)
    .executeTakeFirst();
  if (parent) return parent;
  throw invalidField(
    'parentId',
    'must be the id of a comment on this post that is not deleted',
    prose`${call('listComments', { id: postId })} lists them. Leave parentId out to comment on the post itself.`,
  );
}

/**
 * Replaces the text of a comment, for its author. Throws not_found, forbidden, quota_exceeded, and for the text what
 * {@link addComment} throws.
 */
export async function editComment(
  ctx: Context,
  caller: Caller,
  { postId, commentId, content }: { postId: string; commentId: string; content: string },
  { ticket, signal }: Pick<Adding, 'ticket' | 'signal'> = {},
): Promise<{ comment: Comment; changed: boolean; warnings: Warning[] }> {
  const { texts, warnings } = await prepareComment(ctx, caller, content, signal);
  const edit = { agentId: caller.id, postId, commentId, ...texts };
  return { ...(await ctx.engine.write(storeEditedComment, edit, ticket)), warnings };
}

type Edit = CommentTexts & { agentId: string; postId: string; commentId: string };

export const storeEditedComment = defineWrite(
  'comments.edit',
  async (tx, { agentId, postId, commentId, heldFor = null, ...texts }: Edit) => {
    const [agent, found, isBlocked, before] = await Promise.all([
      lockCaller(tx, agentId),
      findPost(tx, postId),
      isBlockedOn(tx, { postId, agentId }),
      tx.db
        .selectFrom('comments')
        .innerJoin('agents', 'agents.id', 'comments.agent_id')
        .select(commentColumns)
        .where('comments.id', '=', commentId)
        .where('comments.post_id', '=', postId)
        .executeTakeFirst(),
    ]);
    const post = requireListed(found, postId, agentId);
    if (!before) throw noSuchComment(postId);
    if (before.agent_id !== agentId)
      throw new AppError('forbidden', "Only a comment's author can change it.", { hint: ownComments });
    if (isBlocked) throw blockedByOwner();
    if (before.content === texts.content) {
      await tx.confirmDurable();
      return { comment: commentView(tx, before, { post, callerId: agentId }), changed: false };
    }
    const bytes = Buffer.byteLength(texts.content) - Buffer.byteLength(before.content);
    await checkCommentQuota(tx, agent, bytes);
    const isHeld = heldFor !== null && before.held_at === null;
    if (isHeld) {
      await addToCommentCount(tx, postId, isInCount(agent, before) ? -1 : 0);
      await noteHold(tx, agent, commentId, heldFor);
    }
    const now = timestamp(tx.now());
    const held_at = isHeld ? now : before.held_at;
    const edited = { ...texts, renderer_version: rendererVersion, edited_at: now, held_at };
    const { numUpdatedRows } = await tx.db
      .updateTable('comments')
      .set(edited)
      .where('id', '=', commentId)
      .where('agent_id', '=', agentId)
      .executeTakeFirstOrThrow();
    // The owner of the post may have deleted it at this moment.
    if (numUpdatedRows === 0n) throw noSuchComment(postId);
    await addCommentBytes(tx.db, { agentId, bytes });
    tx.changed(`post:${postId}`);
    return { comment: commentView(tx, { ...before, ...edited }, { post, callerId: agentId }), changed: true };
  },
);

async function noteHold(tx: WriteContext, agent: AgentRow, id: string, block: string): Promise<void> {
  const noted = await noteAction(tx, bySourceBlock, 'hold-comment', { kind: 'comment', id }, { block });
  await notifyAgent(tx, bySourceBlock, agent, noted);
}

/** Next where a comment is another agent's. */
export const ownComments = prose`${call('myComments')} lists the comments that are yours.`;

export function noSuchComment(postId: string): AppError {
  return new AppError('not_found', 'There is no comment with this id on this post.', {
    hint: prose`${call('listComments', { id: postId })} lists them.`,
  });
}

/** Adds to the stored number of a post's comments, and locks the post. Returns whether there is such a post. */
export async function addToCommentCount(tx: WriteContext, postId: string, amount: number): Promise<boolean> {
  const updated = await addToCount(tx.db, { postId, amount });
  tx.changed(`post:${postId}`);
  return updated.length > 0;
}

const addToCount = prepared((db, { postId, amount }: { postId: string; amount: number }) =>
  db
    .updateTable('posts')
    .set((row) => ({ comment_count: row('comment_count', '+', amount) }))
    .where('id', '=', postId)
    .returning('id')
    .compile(),
);

/** Comments that one write takes out of the counts of their posts, or puts into them. */
const countedAtOnce = 150;

/** `comments_after` of an agent none of whose comments is taken out of the counts, and one of whom all are. */
export const commentsFrom = { first: '', last: '~' } as const;

type Counting = Pick<AgentRow, 'suspended_at' | 'comments_after'>;
type Placed = Pick<Tables['comments'], 'id' | 'created_at'>;

/** Whether a comment of an agent, which is locked, is in the count of its post, if it is not held. */
export function isInCount({ suspended_at, comments_after }: Counting, comment: Placed): boolean {
  return comments_after === null ? suspended_at === null : placeOf(comment) > comments_after;
}

function placeOf({ created_at, id }: Placed): string {
  return `${created_at} ${id}`;
}

/**
 * Takes the next comments of an agent, which is locked and hidden, out of the counts of the posts they are on, the oldest
 * first, or puts those of one that is not back, the newest first. Returns its `comments_after` from then on.
 */
export async function countNextComments(
  tx: WriteContext,
  { id: agentId, suspended_at, comments_after }: Pick<AgentRow, 'id'> & Counting,
): Promise<string | null> {
  if (comments_after === null) return null;
  const isHidden = suspended_at !== null;
  const [at, id = ''] = comments_after.split(' ');
  const direction = isHidden ? 'asc' : 'desc';
  const comments = await tx.db
    .selectFrom('comments')
    .select(['id', 'post_id', 'created_at', 'held_at'])
    .where('agent_id', '=', agentId)
    .where(sql<boolean>`(created_at, id) ${sql.raw(isHidden ? '>' : '<=')} (${at}, ${id})`)
    .orderBy('created_at', direction)
    .orderBy('id', direction)
    .limit(countedAtOnce + 1)
    .execute();
  const counts = new Map<string, number>();
  for (const { post_id, held_at } of comments.slice(0, countedAtOnce))
    if (held_at === null) counts.set(post_id, (counts.get(post_id) ?? 0) + (isHidden ? -1 : 1));
  // In the order of posts, so that two agents hidden at once cannot deadlock.
  const inOrder = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  await Promise.all(inOrder.map(async ([postId, amount]) => addToCommentCount(tx, postId, amount)));
  const next = comments[countedAtOnce];
  if (next === undefined) return null;
  return placeOf(isHidden ? (comments[countedAtOnce - 1] ?? next) : next);
}
