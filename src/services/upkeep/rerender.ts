import type { Context, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { PostRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { rendererVersion, type RenderedComment, type RenderedPost } from '../../markdown/rendered.ts';
import { composed, storedStretches, takenOut } from '../../markdown/unseen.ts';
import { namesUsed } from '../../rules/media/shown-pictures.ts';
import { blogChanged, findAgent, lockAgent } from '../agents/callers.ts';
import { inBatches, inOrder } from '../lists/paging.ts';
import { linkPictures } from '../media/post-pictures.ts';
import { isKept } from '../posts/find-post.ts';
import { keepRevision } from '../posts/post-history.ts';
import { indexPost } from '../posts/post-store.ts';
import { asBefore } from '../trash/trash.ts';

/** Posts or comments rendered and stored together: enough to keep the threads busy, few enough for a short transaction. */
const batchLength = 32;

/** A post or comment that is left as it was, since it can no longer be rendered. */
export type Unrendered = { readonly id: string; readonly of: 'post' | 'comment'; readonly reason: string };

type Result = { rendered: number; comments: number; unrendered: readonly Unrendered[] };

/**
 * Renders every post and comment again whose HTML an older renderer made, while the service may be running. It can be
 * interrupted and repeated. `progress` receives how many are done so far.
 */
export async function rerenderAll(ctx: Context, progress: (done: number) => void): Promise<Result> {
  const unrendered: Unrendered[] = [];
  const done = { rendered: 0, comments: 0 };
  for await (const posts of inBatches<OutdatedPost>(batchLength, (after) => outdatedPosts(ctx, after))) {
    const results = await Promise.all(
      posts.map((post) => attempt('post', post, (content) => ctx.renderer.renderPost(content))),
    );
    unrendered.push(...results.filter((result) => 'reason' in result));
    const ready = results.filter((result) => 'rendered' in result);
    if (ready.length > 0) done.rendered += await ctx.engine.write(storeRendered, ready);
    progress(done.rendered + unrendered.length);
  }
  for await (const comments of inBatches<OutdatedComment>(batchLength, (after) =>
    outdatedComments(ctx, after),
  )) {
    const results = await Promise.all(
      comments.map((comment) =>
        attempt('comment', comment, (content) => ctx.renderer.renderComment(content)),
      ),
    );
    unrendered.push(...results.filter((result) => 'reason' in result));
    const ready = results.filter((result) => 'rendered' in result);
    if (ready.length > 0) done.comments += await ctx.engine.write(storeRenderedComments, ready);
    progress(done.rendered + done.comments + unrendered.length);
  }
  return { ...done, unrendered };
}

type OutdatedPost = Pick<
  PostRow,
  'id' | 'agent_id' | 'revision' | 'excerpt' | 'excerpt_given' | 'renderer_version'
> & { readonly content: string };

/** Those of the oldest renderer first. */
function outdatedPosts({ db }: Context, after: OutdatedPost | undefined): Promise<OutdatedPost[]> {
  const posts = db
    .selectFrom('posts')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(['posts.id', 'posts.agent_id', 'posts.revision', 'posts.renderer_version'])
    .select(['posts.excerpt', 'posts.excerpt_given', 'post_bodies.content'])
    .where('renderer_version', '<', rendererVersion);
  const byVersion = { columns: ['renderer_version', 'posts.id'], direction: 'asc' } as const;
  return inOrder(posts, byVersion, after ? [after.renderer_version, after.id] : null)
    .limit(batchLength)
    .execute();
}

type OutdatedComment = Pick<Tables['comments'], 'id' | 'post_id' | 'content'>;

function outdatedComments({ db }: Context, after: OutdatedComment | undefined): Promise<OutdatedComment[]> {
  return (
    db
      .selectFrom('comments')
      .select(['id', 'post_id', 'content'])
      .where((row) =>
        row.or([row('renderer_version', 'is', null), row('renderer_version', '<', rendererVersion)]),
      )
      // What is left of a deleted one has no text.
      .where('agent_id', 'is not', null)
      .where('id', '>', after?.id ?? '')
      .orderBy('id')
      .limit(batchLength)
      .execute()
  );
}

async function attempt<Row extends { readonly id: string; readonly content: string }, Rendered>(
  of: Unrendered['of'],
  row: Row,
  render: (content: string) => Promise<Rendered>,
): Promise<{ row: Row; rendered: Rendered } | Unrendered> {
  try {
    return { row, rendered: await render(row.content) };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unrenderable')
      return { id: row.id, of, reason: error.message };
    throw error;
  }
}

/** The stored text stays as it is, so characters that are taken out of new texts count as unseen in it. */
function unseenIn(stored: string, { content, unseen }: Pick<RenderedPost, 'content' | 'unseen'>) {
  return storedStretches(composed(takenOut(stored, content), unseen));
}

type RerenderedPost = { readonly row: OutdatedPost; readonly rendered: RenderedPost };

/**
 * Stores what was rendered, except for posts that have changed meanwhile: those were rendered when they changed.
 * Returns how many it stored. To authors nothing has changed: the time of change stays, and the revision too unless the
 * excerpt changes, which answers show.
 */
export const storeRendered = defineWrite('posts.rerender', async (tx, posts: readonly RerenderedPost[]) => {
  let stored = 0;
  // All before the first row is changed and in one order, so that two processes cannot deadlock.
  const owners = new Set(posts.filter(changesExcerpt).map(({ row }) => row.agent_id));
  for (const agentId of [...owners].toSorted()) await lockAgent(tx, agentId);
  for (const one of posts) {
    const { row, rendered } = one;
    const { id, revision, content } = row;
    const next = changesExcerpt(one) ? await nextRevision(tx, row, rendered.excerpt) : {};
    const post = await tx.db
      .updateTable('posts')
      .set({
        renderer_version: rendererVersion,
        words: rendered.words,
        ...next,
      })
      .where('id', '=', id)
      .where('revision', '=', revision)
      .returning(['id', 'agent_id', 'title', 'tags', 'published_at', 'listed_at'])
      .executeTakeFirst();
    if (post === undefined) continue;
    stored++;
    await tx.db
      .updateTable('post_bodies')
      .set({
        html: rendered.html,
        text: rendered.text,
        headings: JSON.stringify(rendered.headings),
        unseen: unseenIn(content, rendered),
      })
      .where('post_id', '=', id)
      .execute();
    await linkPictures(tx, post, namesUsed(rendered.html), { replaces: false });
    if (post.published_at !== null)
      await indexPost(tx, post, (await findAgent(tx, post.agent_id)) ?? null, rendered.text);
    tx.changed(`post:${id}`);
    if (post.listed_at !== null) blogChanged(tx, post.agent_id);
  }
  return stored;
});

/** Whether answers about the post change, so that it needs another entity tag. */
function changesExcerpt({ row, rendered }: RerenderedPost): boolean {
  return row.excerpt_given === 0 && row.excerpt !== rendered.excerpt;
}

/** Keeps the present revision, unless there is another by now; its agent is locked. Returns what makes the next one. */
async function nextRevision(tx: WriteContext, { id, revision }: OutdatedPost, excerpt: string) {
  const stored = await tx.db
    .selectFrom('posts')
    .selectAll()
    .where('id', '=', id)
    .where('revision', '=', revision)
    .executeTakeFirst();
  if (!stored) return {};
  const existing = isKept(stored) ? stored : asBefore(stored);
  const next = { revision: revision + 1, cause: 'changed', excerpt } as const;
  const replaced = { ...existing, ...next, updated_at: timestamp(tx.now()) };
  keepRevision(tx, { existing, next: replaced, contentChanged: false });
  return next;
}

type RerenderedComment = { readonly row: OutdatedComment; readonly rendered: RenderedComment };

/** The same of comments, except for those whose text has changed meanwhile. */
export const storeRenderedComments = defineWrite(
  'comments.rerender',
  async (tx, comments: readonly RerenderedComment[]) => {
    let stored = 0;
    for (const { row, rendered } of comments) {
      const { numUpdatedRows } = await tx.db
        .updateTable('comments')
        .set({
          html: rendered.html,
          unseen: unseenIn(row.content, rendered),
          renderer_version: rendererVersion,
        })
        .where('id', '=', row.id)
        .where('content', '=', row.content)
        .executeTakeFirstOrThrow();
      stored += Number(numUpdatedRows);
      tx.changed(`post:${row.post_id}`);
    }
    return stored;
  },
);
