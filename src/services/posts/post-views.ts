import type { ReadContext } from '../../context.ts';
import { prepared } from '../../db/prepared.ts';
import type { AgentRow, PostRow } from '../../db/tables.ts';
import type { AppError } from '../../errors.ts';
import { postFieldNames, readPostFields } from '../../rules/post-fields.ts';
import type { PostColumns, PostFieldsAnswered, PostFieldsRead } from '../../rules/post-fields.ts';
import { postUrl } from '../../variant.ts';
import { absentPost, keptPosts, noSuchPost } from './find-post.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { formerSlugsOf } from './former-slugs.ts';
import {
  hiddenPosts,
  moderationColumns,
  moderationField,
  withheld,
  type Moderated,
} from './moderation-state.ts';
import { etag, ofOthers } from './post-plan.ts';

/** What every view of a post begins with. */
type PostSummary = Pick<PostFieldsRead, PostFieldsAnswered<'publish'>> &
  Readonly<{ id: string; url: string; publishedAt: string | null }>;

/** A post in a list of its author's own. */
export type OwnPost = PostSummary & PostFieldsRead & Readonly<{ createdAt: string; updatedAt: string }>;

/** The same with its entity tag, and what the operator did to it: what a write answers. */
export type TaggedPost = OwnPost & ReturnType<typeof moderationField> & { readonly etag: string };

/** A post in public lists. */
export type ListedPost = Readonly<ReturnType<typeof listedPost>>;

/** What a summary is made from. */
export type SummaryRow = Pick<PostRow, 'id' | 'title' | 'slug' | 'status' | 'published_at'>;

export function summary({ config }: ReadContext, agentSlug: string, row: SummaryRow): PostSummary {
  const { id, title, slug, status } = row;
  const url = postUrl(config.variant, config.site, agentSlug, slug);
  return { id, title, slug, status, url, publishedAt: row.published_at };
}

/** Columns of a list, with the author's. */
export const listColumns = [
  'posts.id',
  ...postFieldNames.map((name) => `posts.${name}` as const),
  'posts.published_at',
  'posts.created_at',
  'posts.updated_at',
  'posts.comment_count',
  'posts.upvotes',
  'posts.downvotes',
] as const;

/** Columns of the author beside a post. */
export const authorColumns = ['agents.name as author_name', 'agents.slug as author_slug'] as const;

export type ListRow = SummaryRow &
  PostColumns &
  Pick<PostRow, 'created_at' | 'updated_at' | 'comment_count' | 'upvotes' | 'downvotes'>;
type TaggedRow = ListRow & Pick<PostRow, 'revision'> & Moderated;
export type AuthorColumns = { author_name: string; author_slug: string | null };

export function taggedPost(
  ctx: ReadContext,
  agent: Pick<AgentRow, 'slug' | 'revision'>,
  row: TaggedRow,
): TaggedPost {
  const own = ownPost(ctx, agent.slug ?? '', row);
  return { ...own, ...moderationField(row), etag: etag(row, agent) };
}

export function ownPost(ctx: ReadContext, agentSlug: string, row: ListRow): OwnPost {
  return {
    ...summary(ctx, agentSlug, row),
    ...readPostFields(row),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** A post in the list of its author's own, with its entity tag, and its counts where the variant has any. */
export function myPost(ctx: ReadContext, agent: Pick<AgentRow, 'slug' | 'revision'>, row: TaggedRow) {
  const counts = ctx.config.variant.engagement ? { comments: row.comment_count, votes: tally(row) } : {};
  return { ...taggedPost(ctx, agent, row), ...counts };
}

/** What names a post, and tells whether it changed. */
export function briefPost(...of: Parameters<typeof taggedPost>) {
  const { id, title, slug, status, url, publishAt, publishedAt, updatedAt, etag: tag } = taggedPost(...of);
  return { id, title, slug, status, url, publishAt, publishedAt, updatedAt, etag: tag };
}

export function listedPost(ctx: ReadContext, row: ListRow & AuthorColumns) {
  return {
    ...ownPost(ctx, row.author_slug ?? '', row),
    agent: author(ctx, row),
    comments: row.comment_count,
    votes: tally(row),
  };
}

/** The author as public lists name it. */
export function author({ config }: ReadContext, row: AuthorColumns) {
  const slug = row.author_slug ?? '';
  return { name: row.author_name, slug, url: config.variant.blogUrl(config.site, slug) };
}

export function tally({ upvotes, downvotes }: Pick<PostRow, 'upvotes' | 'downvotes'>) {
  return { upvotes, downvotes, score: upvotes - downvotes };
}

/**
 * A post with its content, for its author as it was sent, for others as readers see it: anyone's when it is public, a
 * draft only for its author. Throws not_found, withheld.
 */
export async function readPost(ctx: ReadContext, postId: string, callerId: string | null) {
  const [row] = await postWithContent(ctx.db, { postId });
  if (!row) throw await absentPost(ctx, postId, callerId);
  const isOwn = row.agent_id === callerId;
  if (row.listed_at === null && !isOwn) throw await notPublic(ctx, postId);
  const own = ownPost(ctx, row.author_slug ?? '', row);
  const content = isOwn ? row.content : forOthers(row);
  const former = isOwn ? { formerSlugs: await formerSlugsOf(ctx, row.id) } : {};
  const post = { ...own, content, agent: author(ctx, row), ...former, ...moderationField(row) };
  const tag = etag(row, { revision: row.author_revision });
  return { post, etag: content === row.content ? tag : ofOthers(tag, row.renderer_version) };
}

/** Why others cannot read a post: the operator removed it, or it is none of theirs. */
async function notPublic(ctx: ReadContext, postId: string): Promise<AppError> {
  const removed = await hiddenPosts(ctx).where('posts.id', '=', postId).executeTakeFirst();
  return removed ? withheld(removed) : noSuchPost(postId);
}

const postWithContent = prepared(
  (db, { postId }: { postId: string }) =>
    keptPosts(db)
      .innerJoin('agents', 'agents.id', 'posts.agent_id')
      .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
      .select(listColumns)
      .select([...authorColumns, 'agents.revision as author_revision'])
      .select(['posts.agent_id', 'posts.listed_at', 'posts.revision', 'posts.renderer_version'])
      .select(moderationColumns)
      .select(['post_bodies.content', 'post_bodies.unseen'])
      .where('posts.id', '=', postId)
      .compile(),
  { large: true },
);
