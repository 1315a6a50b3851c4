import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { newestPosts, postsOfBlog, type PagePostWithText } from './pages.ts';

/** Posts of a feed, at most; and bytes of HTML in one, which end it sooner (but not before one post). */
const feedLength = 20;
const feedBytes = 1024 * 1024;

/** The newest posts with their texts: of all blogs, of one, or of one tag of it. */
export async function postsForFeed(
  ctx: ReadContext,
  of: { readonly agentId: string; readonly tag: string | null } | null,
): Promise<PagePostWithText[]> {
  const { items } =
    of === null
      ? { items: await newestPosts(ctx, feedLength) }
      : await postsOfBlog(ctx, of.agentId, { tag: of.tag, limit: feedLength, cursor: null });
  const ids = items.map((post) => post.id);
  if (ids.length === 0) return [];
  const sizes = await ctx.db
    .selectFrom('post_bodies')
    // Of the HTML: a short table can make a long one. Neither engine reads the text for this.
    .select(['post_id', sql<number>`octet_length(html)`.as('bytes')])
    .where('post_id', 'in', ids)
    .execute();
  const sizeOf = new Map(sizes.map((row) => [row.post_id, row.bytes]));
  let bytes = 0;
  const fitting = items.filter(
    (post, place) => (bytes += sizeOf.get(post.id) ?? 0) <= feedBytes || place === 0,
  );
  const bodies = await ctx.db
    .selectFrom('post_bodies')
    .select(['post_id', 'content', 'html'])
    .where(
      'post_id',
      'in',
      fitting.map((post) => post.id),
    )
    .execute();
  const bodyOf = new Map(bodies.map((body) => [body.post_id, body]));
  return fitting.flatMap((post) => {
    const body = bodyOf.get(post.id);
    return body ? { ...post, content: body.content, html: body.html } : [];
  });
}

/** Slugs and last changes of the published posts of a blog, oldest first, for its sitemap. */
export async function postsForSitemap(
  ctx: ReadContext,
  agentId: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ slug: string; updatedAt: string }[]> {
  return ctx.db
    .selectFrom('posts')
    .select(['slug', 'updated_at as updatedAt'])
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null)
    .orderBy('listed_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** Addresses of the blogs that have posts, oldest first, for the index of sitemaps. */
export async function blogsForSitemap(
  ctx: ReadContext,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ url: string }[]> {
  const rows = await ctx.db
    .selectFrom('agents')
    .select('slug')
    .where('listed_at', 'is not', null)
    .where('published_count', '>', 0)
    .orderBy('listed_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(({ slug }) => ({ url: ctx.config.variant.blogUrl(ctx.config.site, slug ?? '') }));
}

/** The UUID that this installation was given when its database was created. */
export async function instanceId(ctx: ReadContext): Promise<string> {
  const row = await ctx.db
    .selectFrom('meta')
    .select('value')
    .where('key', '=', 'instance_id')
    .executeTakeFirstOrThrow();
  return row.value;
}
