import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { longWork } from '../../platform/slices.ts';
import { readFact } from '../upkeep/facts.ts';
import { blogColumns, blogView, listedPosts, newestFirst } from './discovery.ts';
import { cursorOf, inBatches, inOrder, readCursor, readPage, type Page, type SortKey } from './paging.ts';
import { listOf, pagePost, postsOfBlog, type PagePost, type PagePostWithText } from './pages.ts';
import { withPictures } from '../media/post-pictures.ts';
import { keptPosts } from '../posts/find-post.ts';

/** Posts of a feed, at most; and bytes of HTML in one, and of source, which end it sooner (but not before one post). */
const feedLength = 20;
const feedBytes = 1024 * 1024;

/** Posts with their texts, newest first: of all blogs, of one, or of one tag of it. Throws invalid_input for a cursor of another list. */
export async function postsForFeed(
  ctx: ReadContext,
  of: { readonly agentId: string; readonly tag: string | null } | null,
  cursor: string | null,
): Promise<Page<PagePostWithText>> {
  const page = of
    ? await postsOfBlog(ctx, of.agentId, { tag: of.tag, limit: feedLength, cursor })
    : await postsOfAll(ctx, cursor);
  const posts = await fitting(ctx, page.items);
  const last = posts.at(-1);
  if (last === undefined || posts.length === page.items.length)
    return { ...page, items: await withTexts(ctx, posts) };
  const list = of ? listOf(of.tag) : allPosts.list;
  return {
    items: await withTexts(ctx, posts),
    nextCursor: cursorOf(list, [last.publishedAt, last.id]),
  };
}

const allPosts = { ...newestFirst, list: 'feed' };

async function postsOfAll(ctx: ReadContext, cursor: string | null): Promise<Page<PagePost>> {
  const after = readCursor(cursor, allPosts.list);
  return readPage(listedPosts(ctx), allPosts, after, { limit: feedLength }, (row) => pagePost(ctx, row));
}

/** The first posts whose texts fit a feed. */
async function fitting({ db }: ReadContext, posts: readonly PagePost[]): Promise<readonly PagePost[]> {
  if (posts.length === 0) return posts;
  const sizes = await db
    .selectFrom('post_bodies')
    // Neither engine reads the texts for this. A short table can make long HTML, and what is unseen none.
    .select('post_id')
    .select([
      sql<number>`octet_length(html)`.as('html'),
      sql<number>`octet_length(content) + octet_length(coalesce(unseen, ''))`.as('source'),
    ])
    .where('post_id', 'in', ids(posts))
    .execute();
  const sizeOf = new Map(sizes.map((row) => [row.post_id, row]));
  let [html, source] = [0, 0];
  return posts.filter(({ id }, place) => {
    html += sizeOf.get(id)?.html ?? 0;
    source += sizeOf.get(id)?.source ?? 0;
    return (html <= feedBytes && source <= feedBytes) || place === 0;
  });
}

async function withTexts(ctx: ReadContext, posts: readonly PagePost[]): Promise<PagePostWithText[]> {
  if (posts.length === 0) return [];
  const bodies = await ctx.db
    .selectFrom('post_bodies')
    .innerJoin('posts', 'posts.id', 'post_bodies.post_id')
    .select(['post_id', 'content', 'unseen', 'renderer_version', 'html'])
    .where('post_id', 'in', ids(posts))
    .execute();
  const bodyOf = new Map(bodies.map((body) => [body.post_id, body]));
  const whole = posts.flatMap((post) => {
    const body = bodyOf.get(post.id);
    return body ? { ...post, agentId: post.agent.id, agentSlug: post.agent.slug, ...body } : [];
  });
  const shown = await withPictures(ctx, whole);
  const nextTurn = longWork();
  const all: PagePostWithText[] = [];
  for (const post of posts) {
    const at = whole.findIndex(({ id }) => id === post.id);
    const [body, pictured] = [whole[at], shown[at]];
    if (!body || !pictured) continue;
    all.push({ ...post, content: forOthers(body), ...pictured });
    // Each may take as long as a slice of the event loop.
    await nextTurn();
  }
  return all;
}

function ids(posts: readonly PagePost[]): string[] {
  return posts.map((post) => post.id);
}

/** Rows of a list of everything that are read at once, and those that are passed over to where a part begins. */
const rowsAtOnce = 500;
const passedAtOnce = 5_000;

type Part = { readonly limit: number; readonly offset: number };

/** Slugs and last changes of the published posts of a blog, oldest first, for its sitemap: in batches. */
export function postsForSitemap({ db }: ReadContext, agentId: string, part: Part) {
  const posts = keptPosts(db)
    .select(['id', 'listed_at', 'slug', 'updated_at as updatedAt'])
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null);
  return partOf(part, (after, limit, offset) =>
    inOrder(posts, byPublication('asc'), after).limit(limit).offset(offset).execute(),
  );
}

/**
 * The blogs among those of a part that have posts, in batches: oldest first for sitemaps, without those on probation;
 * newest first for OPML.
 */
export async function* blogsWithPosts(ctx: ReadContext, purpose: 'sitemap' | 'opml', part: Part) {
  const direction = purpose === 'sitemap' ? 'asc' : 'desc';
  const blogs = ctx.db
    .selectFrom('agents')
    .select([...blogColumns, 'probation'])
    .where('listed_at', 'is not', null);
  const batches = partOf(part, (after, limit, offset) =>
    inOrder(blogs, byPublication(direction), after).limit(limit).offset(offset).execute(),
  );
  // Chosen here, since one statement might have to pass over all the others.
  for await (const rows of batches)
    yield rows
      .filter((row) => row.published_count > 0 && (purpose === 'opml' || row.probation === null))
      .map((row) => blogView(ctx, row));
}

const byPublication = (direction: 'asc' | 'desc') => ({ columns: ['listed_at', 'id'], direction }) as const;

/** Where a row stands in the order of publication. */
type Listed = { readonly id: string; readonly listed_at: string | null };

/** The rows of a part, in batches between which other work is done. */
async function* partOf<Row extends Listed>(
  { limit, offset }: Part,
  read: (after: SortKey | null, limit: number, offset: number) => Promise<Row[]>,
): AsyncGenerator<Row[], undefined> {
  const readAfter = async (row: Row | undefined, many: number, passed = 0) =>
    read(row ? [row.listed_at ?? '', row.id] : null, many, passed);
  const nextTurn = longWork();
  let before: Row | undefined;
  for (let left = offset; left > 0; left -= passedAtOnce) {
    [before] = await readAfter(before, 1, Math.min(left, passedAtOnce) - 1);
    if (!before) return;
    await nextTurn();
  }
  let left = limit;
  for await (const rows of inBatches<Row>(rowsAtOnce, (row) => readAfter(row, rowsAtOnce), before)) {
    yield rows.slice(0, left);
    left -= rows.length;
    if (left <= 0) return;
  }
}

/** The UUID that this installation was given when its database was created. */
export async function instanceId({ db }: ReadContext): Promise<string> {
  const id = await readFact(db, 'instance_id');
  if (id === null) throw new Error('The database has no instance id');
  return id;
}
