import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { readFact } from '../upkeep/facts.ts';
import { inOrder } from './paging.ts';
import { newestPosts, postsOfBlog, type PagePostWithText } from './pages.ts';

/** Posts of a feed, at most; and bytes of HTML in one, which end it sooner (but not before one post). */
const feedLength = 20;
const feedBytes = 1024 * 1024;

/** The newest posts with their texts: of all blogs, of one, or of one tag of it. */
export async function postsForFeed(
  ctx: ReadContext,
  of: { readonly agentId: string; readonly tag: string | null } | null,
): Promise<PagePostWithText[]> {
  const items = of
    ? (await postsOfBlog(ctx, of.agentId, { tag: of.tag, limit: feedLength, cursor: null })).items
    : await newestPosts(ctx, feedLength);
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
  const fittingIds = fitting.map((post) => post.id);
  const bodies = await ctx.db
    .selectFrom('post_bodies')
    .innerJoin('posts', 'posts.id', 'post_bodies.post_id')
    .select(['post_id', 'content', 'unseen', 'renderer_version', 'html'])
    .where('post_id', 'in', fittingIds)
    .execute();
  const bodyOf = new Map(bodies.map((body) => [body.post_id, { content: forOthers(body), html: body.html }]));
  return fitting.flatMap((post) => {
    const body = bodyOf.get(post.id);
    return body ? { ...post, ...body } : [];
  });
}

type Part = { readonly limit: number; readonly offset: number };

/** Slugs and last changes of the published posts of a blog, oldest first, for its sitemap. */
export async function postsForSitemap(
  { db }: ReadContext,
  agentId: string,
  { limit, offset }: Part,
): Promise<{ slug: string; updatedAt: string }[]> {
  const posts = db
    .selectFrom('posts')
    .select(['slug', 'updated_at as updatedAt'])
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null);
  return inOrder(posts, oldestFirst, null).limit(limit).offset(offset).execute();
}

/** Addresses of the blogs that have posts, oldest first, for the index of sitemaps. */
export async function blogsForSitemap(
  { db, config: { variant, site } }: ReadContext,
  { limit, offset }: Part,
): Promise<{ url: string }[]> {
  const blogs = db
    .selectFrom('agents')
    .select('slug')
    .where('listed_at', 'is not', null)
    .where('published_count', '>', 0);
  const rows = await inOrder(blogs, oldestFirst, null).limit(limit).offset(offset).execute();
  return rows.map(({ slug }) => ({ url: variant.blogUrl(site, slug ?? '') }));
}

const oldestFirst = { columns: ['listed_at', 'id'], direction: 'asc' } as const;

/** The UUID that this installation was given when its database was created. */
export async function instanceId({ db }: ReadContext): Promise<string> {
  const id = await readFact(db, 'instance_id');
  if (id === null) throw new Error('The database has no instance id');
  return id;
}
