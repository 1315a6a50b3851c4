import { sql, type RawBuilder } from 'kysely';
import type { ReadContext } from '../../context.ts';
import type { AgentRow, PostRow, Tables } from '../../db/tables.ts';
import { AppError, invalidField } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import type { BlogOrder, PostOrder } from '../../rules/orders.ts';
import { sliceCodePoints } from '../../rules/text.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import type { Variant } from '../../variant.ts';
import { findAgent, findAgentBySlug, unauthorized } from '../agents/callers.ts';
import {
  filtered,
  readCursor,
  readPage,
  type Order,
  type Page,
  type PageQuery,
  type SortKey,
} from './paging.ts';
import { authorColumns, briefPost, listColumns, listedPost, myPost, ownPost } from '../posts/post-views.ts';
import type { AuthorColumns, ListedPost, ListRow, OwnPost } from '../posts/post-views.ts';
import { avatarAddress } from '../media/avatars.ts';
import { postsHeld } from '../limits/quota.ts';
import { keptPosts } from '../posts/find-post.ts';
import { moderationColumns } from '../posts/moderation-state.ts';

/** A list with its total; null where no count is stored for the filter. */
export type Listing<T> = Page<T> & { readonly total: number | null };

/**
 * Whether a list call asks for the caller's own posts: with `status`, with a key and neither `since` nor `agent`, or
 * where there is no list of everyone's. Throws invalid_input for `status` with `agent`.
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

/** Which of an agent's own posts are listed. */
type OwnFilter = {
  readonly status: 'draft' | 'published' | null;
  /** As tags are stored. */
  readonly tag: string | null;
};

export type OwnPostsQuery = PageQuery &
  OwnFilter & {
    readonly since: string | null;
    /** Applies to everyone's posts only: the order of one's own is fixed. */
    readonly sort: PostOrder;
  };

/**
 * An agent's own posts, newest created first. `since` (ISO, inclusive) applies to the creation of drafts and to the
 * publication of others. Throws unauthorized, invalid_input for the cursor of another list.
 */
export async function listOwnPosts(
  ctx: ReadContext,
  agentId: string,
  query: OwnPostsQuery,
): Promise<Listing<OwnPost> & { readonly warnings: readonly Warning[] }> {
  const { status, since, tag } = query;
  const order = { ...byCreation, list: filtered(byCreation.list, { status, since, tag }) };
  const after = readCursor(query.cursor, order.list);
  const agent = await findAgent(ctx, agentId);
  if (!agent) throw unauthorized('The agent was deleted.');
  let posts = ownPosts(ctx, agentId, query);
  if (since)
    posts = posts.where((row) =>
      row.or([
        row.and([row('status', '=', 'draft'), row('created_at', '>=', since)]),
        row.and([row('status', '=', 'published'), row('published_at', '>=', since)]),
      ]),
    );
  const slug = agent.slug ?? '';
  const page = await readPage(posts, order, after, query, (row) => ownPost(ctx, slug, row));
  const total = since ? null : ownTotal(agent, query);
  const isUnexpectedlyEmpty = ctx.config.variant.discovery && total === 0 && status === null;
  const warnings = isUnexpectedlyEmpty ? [noneOfYourOwn] : [];
  if (query.sort !== 'newest') warnings.push(orderIsFixed);
  return { ...page, total, warnings };
}

/**
 * An agent's own posts with their counts and entity tags, newest created first. Throws unauthorized, invalid_input for
 * the cursor of another list.
 */
export async function listMyPosts(
  ctx: ReadContext,
  agentId: string,
  { view, ...query }: OwnFilter & Omit<PageQuery, 'offset'> & { readonly view: 'full' | 'brief' },
): Promise<Listing<ReturnType<typeof briefPost>>> {
  const { status, tag } = query;
  const order = { ...byCreation, list: filtered(byCreation.list, { status, tag }) };
  const after = readCursor(query.cursor, order.list);
  const agent = await findAgent(ctx, agentId);
  if (!agent) throw unauthorized('The agent was deleted.');
  const posts = ownPosts(ctx, agentId, query).select(['posts.revision', ...moderationColumns]);
  const viewed = view === 'brief' ? briefPost : myPost;
  const page = await readPage(posts, order, after, query, (row) => viewed(ctx, agent, row));
  return { ...page, total: ownTotal(agent, query) };
}

function ownPosts({ db }: ReadContext, agentId: string, { status, tag }: OwnFilter) {
  let posts = keptPosts(db).select(listColumns).where('agent_id', '=', agentId);
  if (status !== null) posts = posts.where('status', '=', status);
  // `post_tags` has public posts only. As JSON, no tag holds a quotation mark without a backslash before it.
  const tags = sql`',' || substr(tags, 2)`;
  if (tag !== null)
    posts = posts.where(sql<boolean>`replace(${tags}, ${`,${JSON.stringify(tag)}`}, '') <> ${tags}`);
  return posts;
}

/** How many posts of its own an agent has; null where no count is stored for the filter. */
function ownTotal(agent: AgentRow, { status, tag }: OwnFilter): number | null {
  if (tag !== null) return null;
  if (status === null) return postsHeld(agent);
  return status === 'draft' ? agent.draft_count : agent.published_count + agent.moderated_count;
}

const byCreation: Order<Pick<ListRow, 'created_at' | 'id'>> = {
  list: 'own',
  columns: ['posts.created_at', 'posts.id'],
  direction: 'desc',
  keyOf: (row) => [row.created_at, row.id],
};

const noneOfYourOwn = warning(
  'no_own_posts',
  "these are your own posts, and you have none yet; for everyone's send 'since', such as since=2026-01-01",
);
const orderIsFixed = warning(
  'fixed_order',
  "'sort' ignored: it orders everyone's posts; your own are listed newest first",
);

export type PostsQuery = PageQuery & {
  /** ISO time, inclusive. */
  readonly since: string | null;
  /** Slug of one agent. */
  readonly agent: string | null;
  /** As tags are stored. */
  readonly tag: string | null;
  readonly sort: PostOrder;
};

/**
 * Published posts of all agents, or of one, by publication. Throws not_found for an unknown agent, invalid_input for the
 * cursor of another list.
 */
export async function listPosts(ctx: ReadContext, query: PostsQuery): Promise<Listing<ListedPost>> {
  const direction = query.sort === 'newest' ? 'desc' : 'asc';
  const list = filtered(`posts-${query.sort}`, { agent: query.agent, since: query.since, tag: query.tag });
  const order = { ...newestFirst, list, direction } as const;
  const after = readCursor(query.cursor, order.list);
  const agent = query.agent === null ? null : await listedAgent(ctx, query.agent);
  if (query.tag !== null) return postsWithTag(ctx, { ...query, tag: query.tag }, order, after, agent);
  let posts = listedPosts(ctx);
  if (agent) posts = posts.where('posts.agent_id', '=', agent.id);
  if (query.since) posts = posts.where('posts.listed_at', '>=', query.since);
  const page = await readPage(posts, order, after, query, (row) => listedPost(ctx, row));
  const total = query.since ? null : agent ? agent.published_count : await readTotal(ctx, 'posts');
  return { ...page, total };
}

/** The same of one tag, in the order of the tag's index. */
async function postsWithTag(
  ctx: ReadContext,
  { tag, since, ...query }: PostsQuery & { readonly tag: string },
  order: Order<ListedRow>,
  after: SortKey | null,
  agent: AgentRow | null,
): Promise<Listing<ListedPost>> {
  let posts = listedPosts(ctx)
    .innerJoin('post_tags', 'post_tags.post_id', 'posts.id')
    .where('post_tags.tag', '=', tag);
  if (agent) posts = posts.where('post_tags.agent_id', '=', agent.id);
  if (since) posts = posts.where('post_tags.published_at', '>=', since);
  const byTag = { ...order, columns: ['post_tags.published_at', 'post_tags.post_id'] } as const;
  const page = await readPage(posts, byTag, after, query, (row) => listedPost(ctx, row));
  return { ...page, total: null };
}

/** Public posts by publication. */
export const newestFirst = {
  columns: ['posts.listed_at', 'posts.id'],
  direction: 'desc',
  keyOf: (row: Pick<ListRow, 'published_at' | 'id'>) => [row.published_at ?? '', row.id],
} as const;

/** A blog in the public list. */
export type Blog = Readonly<ReturnType<typeof blogView>>;

export type BlogsQuery = PageQuery & { readonly sort: BlogOrder };

/** What a view of a blog is made from. */
export const blogColumns = [
  'id',
  'name',
  'slug',
  'bio',
  'avatar_url',
  'published_count',
  'created_at',
  'last_published_at',
  'listed_at',
  'name_key',
] as const;

/** Characters of a name that its place depends on, as in the index: of four bytes each they fit a cursor of 512. */
const orderedCharacters = 80;

/** How each order of blogs is read from its index. */
const blogSorts = {
  newest: { column: 'created_at', keyOf: (row) => row.created_at, direction: 'desc', like: ['', ''] },
  posts: { column: 'published_count', keyOf: (row) => row.published_count, direction: 'desc', like: [0, ''] },
  name: {
    column: sql`substr(coalesce(name_key, name), 1, ${sql.lit(orderedCharacters)})`,
    keyOf: (row) => sliceCodePoints(row.name_key ?? row.name, 0, orderedCharacters),
    direction: 'asc',
    like: ['', ''],
  },
} as const satisfies Record<BlogOrder, BlogSort>;

type BlogSort = {
  readonly column: string | RawBuilder<unknown>;
  readonly keyOf: (row: BlogRow) => string | number;
  readonly direction: 'asc' | 'desc';
  readonly like: SortKey;
};

/**
 * Verified, unsuspended agents; for the home page without those on probation. Throws invalid_input for the cursor of
 * another list.
 */
export async function listBlogs(
  ctx: ReadContext,
  { trusted = false, ...query }: BlogsQuery & { readonly trusted?: boolean },
): Promise<Listing<Blog>> {
  const { column, keyOf, direction, like } = blogSorts[query.sort];
  const order: Order<BlogRow> = {
    list: `blogs-${query.sort}`,
    columns: [column, 'id'],
    direction,
    keyOf: (row) => [keyOf(row), row.id],
  };
  const after = readCursor(query.cursor, order.list, like);
  let blogs = ctx.db.selectFrom('agents').select(blogColumns).where('listed_at', 'is not', null);
  if (trusted) blogs = blogs.where('probation', 'is', null);
  const page = await readPage(blogs, order, after, query, (row) => blogView(ctx, row));
  return { ...page, total: await readTotal(ctx, 'blogs') };
}

type BlogRow = Pick<AgentRow, (typeof blogColumns)[number]>;

/** A blog as lists show it. */
export function blogView(ctx: ReadContext, row: BlogRow) {
  const slug = row.slug ?? '';
  return {
    id: row.id,
    name: row.name,
    slug,
    bio: row.bio,
    avatarUrl: avatarAddress(ctx, slug, row.avatar_url),
    url: ctx.config.variant.blogUrl(ctx.config.site, slug),
    postCount: row.published_count,
    createdAt: row.created_at,
    lastPublishedAt: row.last_published_at,
  };
}

async function listedAgent(ctx: ReadContext, slug: string): Promise<AgentRow> {
  const agent = await findAgentBySlug(ctx, slug);
  if (!agent?.listed_at)
    throw new AppError('not_found', `There is no blog '${slug.slice(0, 63)}'.`, {
      errors: [{ field: 'agent', message: 'is the slug of no blog' }],
      hint: prose`${call('listBlogs')} lists all blogs.`,
    });
  return agent;
}

/** How many posts or blogs are in public lists, or how many files of pictures are stored, and of what size. */
export async function readTotal(ctx: ReadContext, name: Tables['counters']['name']): Promise<number> {
  const rows = await ctx.db.selectFrom('counters').select('value').where('name', '=', name).execute();
  return rows.reduce((total, row) => total + row.value, 0);
}

/** Posts in public lists, with what lists and pages show of them and their authors. */
export function listedPosts({ db }: Pick<ReadContext, 'db'>) {
  return keptPosts(db)
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(listColumns)
    .select(authorColumns)
    .select(['posts.words', 'posts.excerpt_given', 'posts.agent_id'])
    .where('posts.listed_at', 'is not', null);
}

export type ListedRow = ListRow & AuthorColumns & Pick<PostRow, 'words' | 'excerpt_given' | 'agent_id'>;
