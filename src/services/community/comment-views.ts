import type { ReadContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { sql, type Selectable } from 'kysely';
import { forOthers } from '../../markdown/unseen.ts';
import { postUrl } from '../../variant.ts';
import {
  filtered,
  readCursor,
  readInParts,
  toPage,
  type Batches,
  type Order,
  type Page,
} from '../lists/paging.ts';
import { findPost, requireListed, type FoundPost } from '../posts/find-post.ts';
import { author, authorColumns, type AuthorColumns } from '../posts/post-views.ts';

export type Comment = Readonly<ReturnType<typeof commentView>>;

/** Who asks for comments, null without a key, and the cursor to continue from. */
export type CommentsFor = { readonly callerId: string | null; readonly cursor: string | null };

/** Comments on a published post, or for its owner on a withdrawn one, oldest first. Throws not_found. */
export async function listComments(
  ctx: ReadContext,
  postId: string,
  { limit, cursor, callerId }: CommentsFor & { limit: number },
): Promise<Page<Comment> & { total: number }> {
  const found = await findPost(ctx, postId);
  const wasPublic = found !== undefined && found.published_at !== null && found.moderation === null;
  const post = wasPublic && found.agent_id === callerId ? found : requireListed(found, postId, callerId);
  const order = { ...oldestFirst, list: filtered(oldestFirst.list, { postId }) };
  const after = readCursor(cursor, order.list);
  const comments = shownComments(ctx, postId).select(commentColumns);
  const view = (row: CommentRow) => commentView(ctx, row, { post, callerId });
  const rows = await readInParts(comments, commentsOf(ctx, postId), order, { after, limit: limit + 1 });
  return { ...toPage(rows, limit, order, view), total: post.comment_count };
}

/** Comments in the order in which they were added. */
export const oldestFirst: Order<Pick<CommentRow, 'created_at' | 'id'>> = {
  list: 'comments',
  columns: ['comments.created_at', 'comments.id'],
  direction: 'asc',
  keyOf: (row) => [row.created_at, row.id],
};

/**
 * Whether a row of `comments` has an answer. Not `exists`: where that is one of several conditions, PostgreSQL may read
 * the whole table for it.
 */
export const isAnswered = sql<boolean>`(select 1 from comments as answer where answer.parent_id = comments.id limit 1) is not null`;

/** Whether a row of `comments` is not held back. */
export const isPlain = sql<boolean>`comments.held_at is null`;

/** All comments on a post: of them {@link shownComments} may pass over many. */
export function commentsOf({ db }: ReadContext, postId: string) {
  return db.selectFrom('comments').where('comments.post_id', '=', postId);
}

/** The comments on a post, but for those that are held or of suspended agents and that nobody has answered. */
export function shownComments(ctx: ReadContext, postId: string) {
  return commentsOf(ctx, postId)
    .leftJoin('agents', 'agents.id', 'comments.agent_id')
    .where((row) => row.or([row.and([isPlain, row('agents.suspended_at', 'is', null)]), isAnswered]));
}

/** Comments read at once when all are asked for: up to 8 KiB each, in memory until the client has received them. */
const batchLength = 100;

/** All of {@link listComments} from a cursor on, read as they are asked for. Throws not_found. */
export async function allComments(
  ctx: ReadContext,
  postId: string,
  { callerId, cursor }: CommentsFor,
): Promise<{ total: number; isWhole: boolean; comments: Batches<Comment> }> {
  const limit = batchLength;
  const page = await listComments(ctx, postId, { limit, cursor, callerId });
  let { nextCursor } = page;
  async function next(): Promise<readonly Comment[] | null> {
    if (nextCursor === null) return null;
    const { items, nextCursor: after } = await listComments(ctx, postId, {
      limit,
      cursor: nextCursor,
      callerId,
    });
    nextCursor = after;
    return items;
  }
  return { total: page.total, isWhole: nextCursor === null, comments: { first: page.items, next } };
}

/** What {@link commentView} reads, with the author's columns. */
export const commentColumns = [
  'comments.id',
  'comments.post_id',
  'comments.agent_id',
  'comments.parent_id',
  'comments.thread_id',
  'comments.content',
  'comments.unseen',
  'comments.renderer_version',
  'comments.created_at',
  'comments.edited_at',
  'comments.held_at',
  'comments.removed_reason',
  'agents.suspended_at',
  ...authorColumns,
] as const;

export type CommentRow = Omit<Selectable<Tables['comments']>, 'html'> & {
  readonly suspended_at: string | null;
} & { readonly [Column in keyof AuthorColumns]: AuthorColumns[Column] | null };

/**
 * A comment as its list shows it: to its author as it was sent, and blank where it was deleted or its author suspended, or
 * to others where it is held.
 */
export function commentView(
  ctx: ReadContext,
  row: CommentRow,
  { post, callerId }: { post: Pick<FoundPost, 'slug' | 'author_slug'>; callerId: string | null },
) {
  const { site, variant } = ctx.config;
  const isOwn = row.agent_id !== null && row.agent_id === callerId;
  const shown = shownAuthor(ctx, isOwn ? { ...row, held_at: null } : row);
  const content = isOwn ? row.content : forOthers(row);
  return {
    id: row.id,
    postId: row.post_id,
    parentId: row.parent_id,
    threadId: row.thread_id ?? row.id,
    content: shown ? content : '',
    author: shown,
    authorName: shown?.name ?? '',
    authorSlug: shown?.slug ?? '',
    authorUrl: shown?.url ?? '',
    url: `${postUrl(variant, site, post.author_slug ?? '', post.slug)}#comment-${row.id}`,
    createdAt: row.created_at,
    editedAt: shown ? row.edited_at : null,
    ...(shown ? {} : { deleted: true as const }),
    ...(isOwn && row.held_at !== null ? { moderation: moderationOf(row.held_at, row.removed_reason) } : {}),
  };
}

function moderationOf(at: string, reason: string | null) {
  return reason === null ? { action: 'held', at } : { action: 'removed', reason, at };
}

/** The author of a comment; null where it was deleted or is held, or its author is suspended. */
export function shownAuthor(
  ctx: ReadContext,
  {
    author_name,
    author_slug,
    suspended_at,
    held_at,
  }: Pick<CommentRow, keyof AuthorColumns | 'suspended_at' | 'held_at'>,
) {
  const isHidden = suspended_at !== null || held_at !== null;
  return author_name === null || isHidden ? null : author(ctx, { author_name, author_slug });
}
