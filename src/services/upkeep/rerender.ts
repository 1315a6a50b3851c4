import { sql } from 'kysely';
import type { Context } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { rendererVersion, type RenderedPost } from '../../markdown/rendered.ts';
import { blogChanged } from '../agents/callers.ts';
import { inBatches, inOrder } from '../lists/paging.ts';
import { indexPost } from '../posts/post-store.ts';

/** Posts rendered and stored together: enough to keep the threads busy, few enough for a short transaction. */
const batchLength = 32;

/** A post that is left as it was, since it can no longer be rendered. */
export type Unrendered = { readonly id: string; readonly reason: string };

/**
 * Renders every post again whose HTML an older renderer made, oldest renderer first, while the service may be
 * running. It can be interrupted and repeated. `progress` receives how many are done so far.
 */
export async function rerenderPosts(
  ctx: Context,
  progress: (done: number) => void,
): Promise<{ rendered: number; unrendered: readonly Unrendered[] }> {
  const unrendered: Unrendered[] = [];
  let rendered = 0;
  for await (const posts of inBatches<Outdated>(batchLength, (after) => outdatedPosts(ctx, after))) {
    if (posts.length === 0) break;
    const results = await Promise.all(posts.map((post) => render(ctx, post)));
    const ready = results.filter((result) => 'rendered' in result);
    unrendered.push(...results.filter((result) => 'reason' in result));
    rendered += await ctx.engine.write(storeRendered, ready);
    progress(rendered + unrendered.length);
  }
  return { rendered, unrendered };
}

type Outdated = Pick<PostRow, 'id' | 'revision' | 'renderer_version'> & { readonly content: string };

function outdatedPosts({ db }: Context, after: Outdated | undefined): Promise<Outdated[]> {
  const posts = db
    .selectFrom('posts')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(['posts.id', 'posts.revision', 'posts.renderer_version', 'post_bodies.content'])
    .where('renderer_version', '<', rendererVersion);
  const byVersion = { columns: ['renderer_version', 'posts.id'], direction: 'asc' } as const;
  return inOrder(posts, byVersion, after ? [after.renderer_version, after.id] : null)
    .limit(batchLength)
    .execute();
}

type Rerendered = { readonly id: string; readonly revision: number; readonly rendered: RenderedPost };

async function render(
  { renderer }: Context,
  { id, revision, content }: Outdated,
): Promise<Rerendered | Unrendered> {
  try {
    return { id, revision, rendered: await renderer.renderPost(content) };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unrenderable') return { id, reason: error.message };
    throw error;
  }
}

/**
 * Stores what was rendered, except for posts that have changed meanwhile: those were rendered when they changed.
 * Returns how many it stored. To authors nothing has changed: revision and time of change stay.
 */
export const storeRendered = defineWrite('posts.rerender', async (tx, posts: readonly Rerendered[]) => {
  let stored = 0;
  for (const { id, revision, rendered } of posts) {
    const post = await tx.db
      .updateTable('posts')
      .set({
        renderer_version: rendererVersion,
        words: rendered.words,
        excerpt: sql<string>`case when excerpt_given = 1 then excerpt else ${rendered.excerpt} end`,
      })
      .where('id', '=', id)
      .where('revision', '=', revision)
      .returning(['id', 'agent_id', 'title', 'tags', 'published_at', 'listed_at'])
      .executeTakeFirst();
    if (post === undefined) continue;
    stored++;
    await tx.db
      .updateTable('post_bodies')
      .set({ html: rendered.html, text: rendered.text, headings: JSON.stringify(rendered.headings) })
      .where('post_id', '=', id)
      .execute();
    if (post.published_at !== null) await indexPost(tx, post, rendered.text);
    tx.changed(`post:${id}`);
    if (post.listed_at !== null) blogChanged(tx, post.agent_id);
  }
  return stored;
});
