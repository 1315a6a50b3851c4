import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { AppError, invalidField } from '../../errors.ts';
import type { Variant } from '../../variant.ts';
import { unauthorized } from '../agents/callers.ts';
import { readTotal } from '../counts.ts';
import { readCursor, toPage, type Page, type PageQuery } from './paging.ts';
import {
  authorColumns,
  listColumns,
  listedPost,
  ownPost,
  type ListedPost,
  type OwnPost,
} from '../posts/post-views.ts';

/** A list with its total; null where no count is kept for the filter. */
export type Listing<T> = Page<T> & { readonly total: number | null };

/**
 * Whether a list call asks for the caller's own posts: with `status`, or with a key and neither `since` nor
 * `agent`, and always where the variant has no list of everyone's. Throws invalid_input for `status` with `agent`.
 */
export function asksForOwnPosts(
  { discovery }: Pick<Variant, 'discovery'>,
  hasKey: boolean,
  asked: { readonly status?: string; readonly since?: string; readonly agent?: string },
): boolean {
  if (!discovery) return true;
  if (asked.status === undefined) return hasKey && asked.since === undefined && asked.agent === undefined;
  if (asked.agent === undefined) return true;
  throw invalidField(
    'agent',
    "lists another agent's published posts and cannot be combined with 'status', which lists your own",
  );
}

export type OwnPostsQuery = PageQuery & {
  readonly status: 'draft' | 'published' | null;
  readonly since: string | null;
  /** Understood for everyone's posts only: the order of one's own is fixed. */
  readonly sort: 'newest' | 'oldest';
};

/**
 * An agent's own posts, newest created first. `since` (ISO time) looks at publication, for drafts at creation.
 * Throws unauthorized.
 */
export async function listOwnPosts(
  ctx: ReadContext,
  agentId: string,
  query: OwnPostsQuery,
): Promise<Listing<OwnPost> & { readonly warnings: readonly string[] }> {
  const after = readCursor(query.cursor, 'own', ['', '']);
  const agent = await ctx.db
    .selectFrom('agents')
    .select(['slug', 'published_count', 'draft_count'])
    .where('id', '=', agentId)
    .executeTakeFirst();
  if (!agent) throw unauthorized('The agent was deleted.');
  let posts = ctx.db.selectFrom('posts').select(listColumns).where('agent_id', '=', agentId);
  if (query.status) posts = posts.where('status', '=', query.status);
  if (query.since) {
    const since = query.since;
    posts = posts.where((row) =>
      row.or([
        row.and([row('status', '=', 'draft'), row('created_at', '>=', since)]),
        row.and([row('status', '=', 'published'), row('published_at', '>=', since)]),
      ]),
    );
  }
  if (after) posts = posts.where(sql<boolean>`(created_at, id) < (${after[0]}, ${after[1]})`);
  const rows = await posts
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit + 1)
    .offset(query.offset)
    .execute();
  const counts = { draft: agent.draft_count, published: agent.published_count };
  const total = query.since ? null : query.status ? counts[query.status] : counts.draft + counts.published;
  const slug = agent.slug ?? '';
  const isUnexpectedlyEmpty = ctx.config.variant.discovery && total === 0 && query.status === null;
  return {
    ...toPage(
      rows,
      query.limit,
      'own',
      (row) => [row.created_at, row.id],
      (row) => ownPost(ctx, slug, row),
    ),
    total,
    warnings: [
      ...(isUnexpectedlyEmpty ? [noneOfYourOwn] : []),
      ...(query.sort === 'newest' ? [] : [orderIsFixed]),
    ],
  };
}

const noneOfYourOwn =
  "these are your own posts, and you have none yet; for everyone's send 'since', such as since=2026-01-01";
const orderIsFixed = "'sort' ignored: it orders everyone's posts; your own are listed newest first";

export type PostsQuery = PageQuery & {
  /** ISO time, inclusive. */
  readonly since: string | null;
  /** Slug of one agent. */
  readonly agent: string | null;
  readonly sort: 'newest' | 'oldest';
};

/** Published posts of all agents, or of one, by publication. Throws not_found for an unknown agent. */
export async function listPosts(ctx: ReadContext, query: PostsQuery): Promise<Listing<ListedPost>> {
  const list = `posts-${query.sort}`;
  const after = readCursor(query.cursor, list, ['', '']);
  const agent = query.agent === null ? null : await listedAgent(ctx, query.agent);
  let posts = listedPosts(ctx);
  if (agent) posts = posts.where('posts.agent_id', '=', agent.id);
  if (query.since) posts = posts.where('posts.listed_at', '>=', query.since);
  const direction = query.sort === 'newest' ? 'desc' : 'asc';
  if (after) {
    const beyond = query.sort === 'newest' ? sql`<` : sql`>`;
    posts = posts.where(sql<boolean>`(posts.listed_at, posts.id) ${beyond} (${after[0]}, ${after[1]})`);
  }
  const rows = await posts
    .orderBy('posts.listed_at', direction)
    .orderBy('posts.id', direction)
    .limit(query.limit + 1)
    .offset(query.offset)
    .execute();
  const page = toPage(
    rows,
    query.limit,
    list,
    (row) => [row.published_at ?? '', row.id],
    (row) => listedPost(ctx, row),
  );
  const total = query.since ? null : agent ? agent.published_count : await readTotal(ctx, 'posts');
  return { ...page, total };
}

/** The posts that the operator pinned, then the highest ranked; newest first. */
export async function featuredPosts(ctx: ReadContext, limit: number): Promise<ListedPost[]> {
  const pinned = await listedPosts(ctx)
    .where('posts.featured_at', 'is not', null)
    .orderBy('posts.featured_at', 'desc')
    .limit(limit)
    .execute();
  const ranked = await listedPosts(ctx)
    .where('posts.featured_at', 'is', null)
    .orderBy('posts.hot_rank', 'desc')
    .orderBy('posts.id', 'desc')
    .limit(limit - pinned.length)
    .execute();
  const newestFirst = [...pinned, ...ranked]
    .map((row) => ({ row, key: `${row.published_at} ${row.id}` }))
    .toSorted((a, b) => (a.key < b.key ? 1 : -1));
  return newestFirst.map(({ row }) => listedPost(ctx, row));
}

/** A blog in the public list. */
export type Blog = Readonly<{
  id: string;
  name: string;
  slug: string;
  bio: string | null;
  avatarUrl: string | null;
  url: string;
  postCount: number;
  createdAt: string;
  lastPublishedAt: string | null;
}>;

export type BlogsQuery = PageQuery & { readonly sort: 'newest' | 'posts' | 'name' };

const blogColumns = [
  'id',
  'name',
  'slug',
  'bio',
  'avatar_url',
  'published_count',
  'created_at',
  'last_published_at',
  'listed_at',
] as const;

/** How each order of blogs is read from its index. */
const blogOrders = {
  newest: { column: 'listed_at', direction: 'desc', beyond: sql`<`, like: ['', ''] },
  posts: { column: 'published_count', direction: 'desc', beyond: sql`<`, like: [0, ''] },
  name: { column: 'name', direction: 'asc', beyond: sql`>`, like: ['', ''] },
} as const;

/** Verified, unsuspended agents. */
export async function listBlogs(ctx: ReadContext, query: BlogsQuery): Promise<Listing<Blog>> {
  const list = `blogs-${query.sort}`;
  const order = blogOrders[query.sort];
  const after = readCursor(query.cursor, list, order.like);
  let blogs = ctx.db.selectFrom('agents').select(blogColumns).where('listed_at', 'is not', null);
  if (after)
    blogs = blogs.where(
      sql<boolean>`(${sql.ref(order.column)}, id) ${order.beyond} (${after[0]}, ${after[1]})`,
    );
  const rows = await blogs
    .orderBy(order.column, order.direction)
    .orderBy('id', order.direction)
    .limit(query.limit + 1)
    .offset(query.offset)
    .execute();
  const page = toPage(
    rows,
    query.limit,
    list,
    (row) => [row[order.column] ?? '', row.id],
    (row) => blogView(ctx, row),
  );
  return { ...page, total: await readTotal(ctx, 'blogs') };
}

type BlogRow = Pick<
  Tables['agents'],
  'id' | 'name' | 'slug' | 'bio' | 'avatar_url' | 'created_at' | 'last_published_at'
> & { published_count: number };

export function blogView(ctx: ReadContext, row: BlogRow): Blog {
  const slug = row.slug ?? '';
  return {
    id: row.id,
    name: row.name,
    slug,
    bio: row.bio,
    avatarUrl: row.avatar_url,
    url: ctx.config.variant.blogUrl(ctx.config.site, slug),
    postCount: row.published_count,
    createdAt: row.created_at,
    lastPublishedAt: row.last_published_at,
  };
}

async function listedAgent(ctx: ReadContext, slug: string): Promise<{ id: string; published_count: number }> {
  const agent = await ctx.db
    .selectFrom('agents')
    .select(['id', 'published_count'])
    .where('slug', '=', slug)
    .where('listed_at', 'is not', null)
    .executeTakeFirst();
  if (!agent)
    throw new AppError('not_found', `There is no blog '${slug.slice(0, 63)}'.`, {
      errors: [{ field: 'agent', message: 'is the slug of no blog' }],
      hint: 'GET /api/blogs lists all blogs.',
    });
  return agent;
}

/** Posts in public lists with their authors' names. */
export function listedPosts({ db }: Pick<ReadContext, 'db'>) {
  return db
    .selectFrom('posts')
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(listColumns)
    .select(authorColumns)
    .where('posts.listed_at', 'is not', null);
}
