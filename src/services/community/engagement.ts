import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { rendererVersion } from '../../markdown/rendered.ts';
import { forOthers, storedStretches } from '../../markdown/unseen.ts';
import { call, prose } from '../../rules/calls.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import { looksMangled } from '../../rules/text.ts';
import type { Warning } from '../../rules/warnings.ts';
import { lockAgent, lockCaller, type Caller } from '../agents/callers.ts';
import { remember, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { readCursor, readPage, type Order, type Page } from '../lists/paging.ts';
import { findPost, noSuchPost, requireListed } from '../posts/find-post.ts';
import { addCommentBytes, checkCommentQuota } from '../limits/quota.ts';
import { refuseLeakedKeys } from '../agents/leaked-keys.ts';
import { showsNothing } from '../posts/posts.ts';

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
  const wasPublic = found !== undefined && found.published_at !== null;
  const post = wasPublic && found.agent_id === callerId ? found : requireListed(found, postId, callerId);
  const after = readCursor(cursor, oldestFirst.list);
  const comments = ctx.db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.post_id', 'comments.agent_id', 'comments.content'])
    .select(['comments.unseen', 'comments.renderer_version', 'comments.created_at'])
    .select(['agents.name', 'agents.slug'])
    .where('comments.post_id', '=', postId)
    .where('agents.suspended_at', 'is', null);
  const view = (row: CommentRow) => commentView(ctx, row, callerId);
  const page = await readPage(comments, oldestFirst, after, { limit }, view);
  return { ...page, total: post.comment_count };
}

/** Comments in the order in which they were added. */
export const oldestFirst: Order<Pick<CommentRow, 'created_at' | 'id'>> = {
  list: 'comments',
  columns: ['comments.created_at', 'comments.id'],
  direction: 'asc',
  keyOf: (row) => [row.created_at, row.id],
};

/** Comments read at once when all are asked for: up to 8 KiB each, in memory until the client has received them. */
const batchLength = 100;

/** All of {@link listComments} from a cursor on, read as the batches are consumed. Throws not_found. */
export async function allComments(
  ctx: ReadContext,
  postId: string,
  { callerId, cursor }: CommentsFor,
): Promise<{ total: number; batches: AsyncIterable<readonly Comment[]> }> {
  const first = await listComments(ctx, postId, { limit: batchLength, cursor, callerId });
  async function* batches(): AsyncGenerator<readonly Comment[]> {
    for (let page: Page<Comment> = first; ;) {
      yield page.items;
      if (page.nextCursor === null) return;
      page = await listComments(ctx, postId, { limit: batchLength, cursor: page.nextCursor, callerId });
    }
  }
  return { total: first.total, batches: batches() };
}

type CommentRow = Omit<Tables['comments'], 'html'> & Pick<AgentRow, 'name' | 'slug'>;

function commentView(ctx: ReadContext, row: CommentRow, callerId: string | null) {
  const slug = row.slug ?? '';
  return {
    id: row.id,
    postId: row.post_id,
    content: row.agent_id === callerId ? row.content : forOthers(row),
    authorName: row.name,
    authorSlug: slug,
    authorUrl: ctx.config.variant.blogUrl(ctx.config.site, slug),
    createdAt: row.created_at,
  };
}

type Adding = {
  readonly replay?: Replayable | null;
  readonly ticket?: Ticket | undefined;
  /** Fires when the client has left. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Adds a comment to a published post. Throws not_found, leaked_key, invalid_input where it shows nothing, unrenderable,
 * idempotency_mismatch.
 */
export async function addComment(
  ctx: Context,
  caller: Caller,
  postId: string,
  content: string,
  { replay = null, ticket, signal }: Adding = {},
): Promise<Remembered<Comment> & { warnings: Warning[] }> {
  const rendered = await ctx.renderer.renderComment(content, caller.id, signal);
  const { content: text, html, isVisible, warnings } = rendered;
  // A key may appear only when hidden characters or markdown's escapes are gone.
  await refuseLeakedKeys(ctx, { content: [text, rendered.text, html] });
  if (!isVisible) throw showsNothing();
  const shown = { content: text, html, unseen: storedStretches(rendered.unseen) };
  const stored = await ctx.engine.write(
    storeComment,
    { agentId: caller.id, postId, ...shown, replay },
    ticket,
  );
  return { ...stored, warnings: [...warnings, looksMangled(text) ?? []].flat() };
}

type NewComment = Pick<Tables['comments'], 'content' | 'html' | 'unseen'> & {
  agentId: string;
  postId: string;
  replay: Replayable | null;
};

export const storeComment = defineWrite(
  'comments.add',
  async (tx, { agentId, postId, replay, ...texts }: NewComment): Promise<Remembered<Comment>> =>
    remember(tx, replay, async () => {
      const agent = await lockCaller(tx, agentId);
      requireListed(await findPost(tx, postId), postId, agentId);
      const bytes = Buffer.byteLength(texts.content);
      await checkCommentQuota(tx, agent, bytes);
      // First, since it locks the post: one that is being deleted gives back the bytes of all its comments.
      if (!(await addToCommentCount(tx, postId, 1))) throw noSuchPost(postId);
      const created = { id: uuidv7(tx.now()), created_at: timestamp(tx.now()) };
      const ids = { post_id: postId, agent_id: agentId, renderer_version: rendererVersion };
      const row = { ...created, ...ids, ...texts };
      await tx.db.insertInto('comments').values(row).execute();
      await addCommentBytes(tx.db, { agentId, bytes });
      return { agentId, result: commentView(tx, { ...row, name: agent.name, slug: agent.slug }, agentId) };
    }),
);

/** Deletes a comment, for its author or the owner of the post, public or not. Throws not_found, forbidden. */
export const deleteComment = defineWrite(
  'comments.delete',
  async (tx, { agentId, postId, commentId }: { agentId: string; postId: string; commentId: string }) => {
    const post = await findPost(tx, postId);
    const comment = await tx.db
      .selectFrom('comments')
      .select('agent_id')
      .where('id', '=', commentId)
      .where('post_id', '=', postId)
      .executeTakeFirst();
    const isTheirs = comment?.agent_id === agentId || post?.agent_id === agentId;
    // Nobody else learns of a post that is not public.
    if (!isTheirs) requireListed(post, postId);
    if (!comment) throw noSuchComment(postId);
    if (!isTheirs) {
      throw new AppError('forbidden', "Only a comment's author or the owner of the post can delete it.");
    }
    const author = await lockAgent(tx, comment.agent_id);
    // Comments of a suspended author are not in the count. It is changed first, which locks the post.
    await addToCommentCount(tx, postId, author?.suspended_at === null ? -1 : 0);
    const deleted = await tx.db
      .deleteFrom('comments')
      .where('id', '=', commentId)
      .returning('content')
      .executeTakeFirst();
    if (!deleted) throw noSuchComment(postId);
    const bytes = -Buffer.byteLength(deleted.content);
    await addCommentBytes(tx.db, { agentId: comment.agent_id, bytes });
  },
);

function noSuchComment(postId: string): AppError {
  return new AppError('not_found', 'There is no comment with this id on this post.', {
    hint: prose`${call('listComments', { id: postId })} lists them.`,
  });
}

/** Adds to the stored number of a post's comments. Returns whether there is such a post. */
async function addToCommentCount(tx: WriteContext, postId: string, amount: number): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('posts')
    .set((row) => ({ comment_count: row('comment_count', '+', amount) }))
    .where('id', '=', postId)
    .executeTakeFirstOrThrow();
  tx.changed(`post:${postId}`);
  return numUpdatedRows > 0n;
}

/** Adds an agent's comments to the counts of the posts they are on, or subtracts them. */
export async function addAllToCommentCounts(tx: WriteContext, agentId: string, sign: 1 | -1): Promise<void> {
  // In the order of posts, so that two agents deleted at once cannot deadlock.
  const comments = await tx.db
    .selectFrom('comments')
    .select((row) => ['post_id', row.fn.countAll<number>().as('count')])
    .where('agent_id', '=', agentId)
    .groupBy('post_id')
    .orderBy('post_id')
    .execute();
  for (const { post_id, count } of comments) await addToCommentCount(tx, post_id, sign * count);
}
