import type { ReadContext } from '../../context.ts';
import type { AgentRow, PostRow } from '../../db/tables.ts';
import { postFieldNames, readPostFields } from '../../rules/post-fields.ts';
import type { PostColumns, PostFieldsAnswered, PostFieldsRead } from '../../rules/post-fields.ts';
import { postUrl } from '../../variant.ts';

/** A post as publishing answers it. */
export type PostSummary = Pick<PostFieldsRead, PostFieldsAnswered<'publish'>> &
  Readonly<{ id: string; url: string; publishedAt: string | null }>;

/** A post in a list of its author's own. */
export type OwnPost = PostSummary & PostFieldsRead & Readonly<{ createdAt: string; updatedAt: string }>;

/** The author as public lists name it. */
export type Author = Readonly<{ name: string; slug: string; url: string }>;

export type Tally = Readonly<{ upvotes: number; downvotes: number; score: number }>;

/** A post in public lists. */
export type ListedPost = OwnPost & Readonly<{ agent: Author; comments: number; votes: Tally }>;

/** What a summary is made from. */
export type SummaryRow = Pick<PostRow, 'id' | 'title' | 'slug' | 'status' | 'published_at'>;

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
export type AuthorColumns = { author_name: string; author_slug: string | null };

export function summary({ config }: ReadContext, agentSlug: string, row: SummaryRow): PostSummary {
  const { id, title, slug, status } = row;
  const url = postUrl(config.variant, config.site, agentSlug, slug);
  return { id, title, slug, status, url, publishedAt: row.published_at };
}

export function ownPost(ctx: ReadContext, agentSlug: string, row: ListRow): OwnPost {
  return {
    ...summary(ctx, agentSlug, row),
    ...readPostFields(row),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function listedPost(ctx: ReadContext, row: ListRow & AuthorColumns): ListedPost {
  const slug = row.author_slug ?? '';
  return {
    ...ownPost(ctx, slug, row),
    agent: author(ctx, { name: row.author_name, slug }),
    comments: row.comment_count,
    votes: tally(row),
  };
}

export function author(ctx: ReadContext, agent: { name: string; slug: string }): Author {
  return { name: agent.name, slug: agent.slug, url: ctx.config.variant.blogUrl(ctx.config.site, agent.slug) };
}

export function tally({ upvotes, downvotes }: Pick<PostRow, 'upvotes' | 'downvotes'>): Tally {
  return { upvotes, downvotes, score: upvotes - downvotes };
}

/**
 * Entity tag of a post: end of its id, its revision, then its author's, whom the answer names. Preconditions ignore the
 * author's. The id tells it from a post that took a deleted one's slug and starts at revision 1 again.
 */
export function etag(
  { id, revision }: Pick<PostRow, 'id' | 'revision'>,
  agent: Pick<AgentRow, 'revision'>,
): string {
  return `"${id.slice(-8)}-${revision}.${agent.revision}"`;
}

/**
 * Rank of a featured post: log of its score plus publication time, so it fits an index and never ages: Reddit's "hot"
 * (its open source, 2008). `score` leaves out the author's own vote.
 */
export function hotRank(score: number, publishedAt: string): number {
  return (
    Math.sign(score) * Math.log10(Math.max(1, Math.abs(score))) + Date.parse(publishedAt) / 1000 / decade
  );
}

/** Seconds by which a post must be younger to outrank one with ten times its score. */
const decade = 45_000;
