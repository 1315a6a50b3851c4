import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { prepared } from '../../db/prepared.ts';
import { AppError } from '../../errors.ts';
import { longWork } from '../../platform/slices.ts';
import { readPostFields } from '../../rules/post-fields.ts';
import type { ShownPicture } from '../../rules/media/shown-pictures.ts';
import { postUrl } from '../../variant.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { findAgentBySlug, isRetired } from '../agents/callers.ts';
import { author } from '../posts/post-views.ts';
import { pictured } from '../media/post-pictures.ts';
import { blogView, listedPosts, newestFirst, type Blog, type ListedRow } from './discovery.ts';
import { filtered, inOrder, readCursor, readPage, type Page, type SortKey } from './paging.ts';
import { keptPosts } from '../posts/find-post.ts';
import { hiddenPosts, removedSentence } from '../posts/moderation-state.ts';

/** A published post as pages show it; `tally` is null where the variant has no comments and votes. */
export type PagePost = Readonly<ReturnType<typeof pagePost>>;

/** An agent as pages name it. */
export type PageAuthor = PagePost['agent'];

/** The same post with its text as our renderer's HTML. */
export type PagePostWithHtml = PagePost & {
  readonly html: string;
  /** Pictures of the author's own in it, in the order of their first use. */
  readonly pictures: readonly ShownPicture[];
  /** The picture that the author chose for the post; null where none was, or it is gone. */
  readonly cover: ShownPicture | null;
};

/** And as markdown without what readers do not see. */
export type PagePostWithText = PagePostWithHtml & Pick<PagePostAsText, 'content'>;

/** A post as that markdown alone. */
export type PagePostAsText = PagePost & { readonly content: string };

/** A blog, and whether search engines are to have it: not while it is on probation. */
export type BlogAtAddress = Blog & { readonly indexed: boolean };

/** The blog at a slug, why it is gone, or null if there never was one. */
export async function findBlog(
  ctx: ReadContext,
  slug: string,
): Promise<BlogAtAddress | 'suspended' | 'deleted' | null> {
  const agent = await findAgentBySlug(ctx, slug);
  if (!agent) return (await isRetired(ctx, slug)) ? 'deleted' : null;
  if (agent.listed_at !== null) return { ...blogView(ctx, agent), indexed: agent.probation === null };
  if (agent.erase_at !== null) return 'deleted';
  return agent.suspended_at !== null && agent.verified_at !== null ? 'suspended' : null;
}

/** Posts of a blog, or of one tag of it, newest first. Throws invalid_input for a cursor of another list. */
export async function postsOfBlog(
  ctx: ReadContext,
  agentId: string,
  { tag, limit, cursor }: { tag: string | null; limit: number; cursor: string | null },
): Promise<Page<PagePost>> {
  const order = { ...newestFirst, list: listOf(tag) };
  const after = readCursor(cursor, order.list);
  let posts = listedPosts(ctx).where('posts.agent_id', '=', agentId);
  if (tag !== null) posts = posts.where('posts.id', 'in', taggedWith(ctx, agentId, tag, after, limit + 1));
  return readPage(posts, order, after, { limit }, (row) => pagePost(ctx, row));
}

/** The name in cursors of the posts of a blog, or of one tag of it. */
export function listOf(tag: string | null): string {
  return tag === null ? 'blog' : filtered('tag', { tag });
}

/** Ids of the newest posts with a tag, read in the order of its index, so that a common tag costs the same. */
function taggedWith(ctx: ReadContext, agentId: string, tag: string, after: SortKey | null, limit: number) {
  const ids = ctx.db
    .selectFrom('post_tags')
    .select('post_id')
    .where('agent_id', '=', agentId)
    .where('tag', '=', tag);
  return inOrder(ids, { columns: ['published_at', 'post_id'], direction: 'desc' }, after).limit(limit);
}

/** Entries of the index of tags that one statement counts. */
const entriesAtOnce = 2_000;

type TagEntry = Pick<Tables['post_tags'], 'tag' | 'published_at' | 'post_id'>;

/** The tags of a blog, the commonest first: counted in parts, since a blog may have a hundred thousand. */
export async function tagsOfBlog({ db }: ReadContext, agentId: string, limit: number) {
  const counts = new Map<string, number>();
  const ofBlog = db.selectFrom('post_tags').where('agent_id', '=', agentId);
  const key = sql`(tag, published_at, post_id)`;
  const nextTurn = longWork();
  for (let from: TagEntry | undefined; ;) {
    const start = from && sql`(${from.tag}, ${from.published_at}, ${from.post_id})`;
    const rest = start ? ofBlog.where(sql<boolean>`${key} >= ${start}`) : ofBlog;
    const next: TagEntry | undefined = await rest
      .select(['tag', 'published_at', 'post_id'])
      .orderBy('tag')
      .orderBy('published_at')
      .orderBy('post_id')
      .offset(entriesAtOnce)
      .limit(1)
      .executeTakeFirst();
    const end = next && sql`(${next.tag}, ${next.published_at}, ${next.post_id})`;
    const part = end ? rest.where(sql<boolean>`${key} < ${end}`) : rest;
    const counted = part.select((row) => ['tag', row.fn.countAll<number>().as('posts')]).groupBy('tag');
    for (const { tag, posts } of await counted.execute()) counts.set(tag, (counts.get(tag) ?? 0) + posts);
    if (!next) break;
    await nextTurn();
    from = next;
  }
  const all = Array.from(counts, ([tag, posts]) => ({ tag, posts }));
  return all.toSorted((a, b) => b.posts - a.posts || (a.tag < b.tag ? -1 : 1)).slice(0, limit);
}

export type PageHeading = Readonly<{ id: string; level: number; text: string }>;

/** The published post that has this slug in a blog, without its text, or what is there instead. */
export async function postAtAddress(ctx: ReadContext, agentId: string, slug: string) {
  const [row] = await postAtSlug(ctx.db, { agentId, slug });
  return row ? { post: pagePost(ctx, row) } : elsewhere(ctx, agentId, slug);
}

/** The same with what its page shows of the text. */
export async function postForPage(ctx: ReadContext, agentId: string, slug: string) {
  const [row] = await postWithHtml(ctx.db, { agentId, slug });
  if (!row) return elsewhere(ctx, agentId, slug);
  const page = pagePost(ctx, row);
  const { html } = row;
  const shown = await pictured(ctx, { agentId, agentSlug: page.agent.slug, html, image: page.image });
  const post: PagePostWithHtml = { ...page, ...shown };
  return { post, headings: JSON.parse(row.headings) as PageHeading[] };
}

/** The same with its text as markdown. */
export async function postForTwin(ctx: ReadContext, agentId: string, slug: string) {
  const [row] = await postWithMarkdown(ctx.db, { agentId, slug });
  if (!row) return elsewhere(ctx, agentId, slug);
  const post: PagePostAsText = { ...pagePost(ctx, row), content: forOthers(row) };
  return { post };
}

/**
 * For a slug that no published post of a blog has: the slug that its post moved to, "deleted", what says that the
 * operator removed it, or null for nothing public.
 */
async function elsewhere(ctx: ReadContext, agentId: string, slug: string) {
  const former = await ctx.db
    .selectFrom('former_slugs')
    .leftJoin('posts', (join) =>
      join.onRef('posts.id', '=', 'former_slugs.post_id').on('posts.listed_at', 'is not', null),
    )
    .select(['former_slugs.deleted_at', 'posts.slug'])
    .where('former_slugs.agent_id', '=', agentId)
    .where('former_slugs.slug', '=', slug)
    .executeTakeFirst();
  if (former?.deleted_at) return 'deleted' as const;
  if (former?.slug) return { movedTo: former.slug };
  const removed = await hiddenPosts(ctx)
    .where('posts.agent_id', '=', agentId)
    .where((post) =>
      post.or([post('posts.slug', '=', slug), post('posts.id', 'in', movedFrom(ctx, agentId, slug))]),
    )
    .executeTakeFirst();
  return removed ? { removed: removedSentence(removed.moderation_reason) } : null;
}

/** Whether a post of an agent has this slug or had it, also one that is not public. */
export async function isSlugOfPost({ db }: ReadContext, agentSlug: string, slug: string): Promise<boolean> {
  const agent = db.selectFrom('agents').select('id').where('slug', '=', agentSlug);
  const present = keptPosts(db).select('slug').where('agent_id', '=', agent).where('slug', '=', slug);
  const former = db
    .selectFrom('former_slugs')
    .select('slug')
    .where('agent_id', '=', agent)
    .where('slug', '=', slug);
  return (await present.unionAll(former).execute()).length > 0;
}

/** The post that left a slug, if any. */
function movedFrom({ db }: ReadContext, agentId: string, slug: string) {
  return db
    .selectFrom('former_slugs')
    .select('post_id')
    .where('agent_id', '=', agentId)
    .where('slug', '=', slug)
    .where('deleted_at', 'is', null);
}

type AtSlug = { agentId: string; slug: string };

const postAtSlug = prepared((db, place: AtSlug) => atSlug(db, place).compile());

const postWithHtml = prepared(
  (db, place: AtSlug) =>
    atSlug(db, place)
      .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
      .select(['post_bodies.html', 'post_bodies.headings'])
      .compile(),
  { large: true },
);

const postWithMarkdown = prepared(
  (db, place: AtSlug) =>
    atSlug(db, place)
      .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
      .select(['post_bodies.content', 'post_bodies.unseen', 'posts.renderer_version'])
      .compile(),
  { large: true },
);

function atSlug(db: ReadContext['db'], { agentId, slug }: AtSlug) {
  return listedPosts({ db }).where('posts.agent_id', '=', agentId).where('posts.slug', '=', slug);
}

/** The posts of the same blog that were published next before this one, and next after. */
export async function neighboursOf({ config: { variant, site }, db }: ReadContext, post: PagePost) {
  const here = { agentId: post.agent.id, listedAt: post.publishedAt, id: post.id };
  const neighbour = async (read: typeof olderThan) => {
    const [row] = await read(db, here);
    return row
      ? { title: row.title, lang: row.lang, url: postUrl(variant, site, post.agent.slug, row.slug) }
      : null;
  };
  return { older: await neighbour(olderThan), newer: await neighbour(newerThan) };
}

type Place = { agentId: string; listedAt: string; id: string };

const beside = (direction: 'asc' | 'desc') =>
  prepared((db, { agentId, listedAt, id }: Place) => {
    const others = keptPosts(db)
      .select(['title', 'lang', 'slug'])
      .where('agent_id', '=', agentId)
      .where('listed_at', 'is not', null);
    return inOrder(others, { ...newestFirst, direction }, [listedAt, id])
      .limit(1)
      .compile();
  });
const olderThan = beside('desc');
const newerThan = beside('asc');

/** Related posts that are shown with a post. */
const relatedShown = 3;

/** The newest posts of the same blog with the first tag of this one, but for those that stand beside it anyway. */
export async function relatedPosts(
  { config: { variant, site }, db }: ReadContext,
  { id, tags: [tag], agent }: PagePost,
  { older, newer }: Awaited<ReturnType<typeof neighboursOf>>,
) {
  if (tag === undefined) return [];
  const rows = await newestTagged(db, { agentId: agent.id, tag });
  const neighbours = [older?.url, newer?.url];
  return rows
    .filter((row) => row.id !== id)
    .map(({ title, lang, slug }) => ({ title, lang, url: postUrl(variant, site, agent.slug, slug) }))
    .filter(({ url }) => !neighbours.includes(url))
    .slice(0, relatedShown);
}

/** `post_tags` has public posts only, so few rows are enough: this post and its two neighbours are left out. */
const newestTagged = prepared((db, { agentId, tag }: { agentId: string; tag: string }) =>
  db
    .selectFrom('post_tags')
    .innerJoin('posts', 'posts.id', 'post_tags.post_id')
    .select(['posts.id', 'posts.title', 'posts.slug', 'posts.lang'])
    .where('post_tags.agent_id', '=', agentId)
    .where('post_tags.tag', '=', tag)
    .orderBy('post_tags.published_at', 'desc')
    .orderBy('post_tags.post_id', 'desc')
    .limit(relatedShown + 3)
    .compile(),
);

/** A draft as the page of a public post would show it. */
export function pageDraft(ctx: ReadContext, row: ListedRow) {
  // In place of the time that it does not have yet.
  return pagePost(ctx, { ...row, published_at: row.updated_at });
}

/** A public post as pages show it. */
export function pagePost(ctx: ReadContext, row: ListedRow) {
  if (row.published_at === null)
    throw new AppError('internal_error', `The listed post ${row.id} has no time.`);
  return {
    id: row.id,
    ...readPostFields(row),
    /** Whether the author wrote the excerpt: then it need not stand in the text. */
    excerptGiven: row.excerpt_given === 1,
    url: postUrl(ctx.config.variant, ctx.config.site, row.author_slug ?? '', row.slug),
    publishedAt: row.published_at,
    updatedAt: row.updated_at,
    words: row.words,
    agent: pageAuthor(ctx, row),
    tally: ctx.config.variant.engagement
      ? { comments: row.comment_count, upvotes: row.upvotes, downvotes: row.downvotes }
      : null,
  };
}

/** An agent as pages name it: without its picture, which only its own blog shows. */
export function pageAuthor(
  ctx: ReadContext,
  row: Pick<ListedRow, 'agent_id' | 'author_name' | 'author_slug'>,
) {
  return { ...author(ctx, row), id: row.agent_id };
}
