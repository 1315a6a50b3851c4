import { sql, type RawBuilder } from 'kysely';
import type { ReadContext } from '../context.ts';

/** A stored fact that differs from what it is derived from. */
export type WronglyKept = {
  /** What is kept, e.g. `public posts`. */
  readonly what: string;
  /** In how many rows, up to {@link mostCounted}. */
  readonly rows: number;
  /** One of them. */
  readonly example: string;
};

/** Rows counted per fault: beyond that the rest of the table need not be read. */
const mostCounted = 1_000;

/** Each finds rows that are wrong, and names them. */
const questions: Readonly<Record<string, RawBuilder<{ name: string }>>> = {
  'public posts': sql`select 'all' as name where
    (select coalesce(sum(value), 0) from counters where name = 'posts')
    <> (select count(*) from posts where listed_at is not null)`,
  'public blogs': sql`select 'all' as name where
    (select coalesce(sum(value), 0) from counters where name = 'blogs')
    <> (select count(*) from agents where listed_at is not null)`,
  'posts of an agent': sql`select id as name from agents where
    published_count <> (select count(*) from posts where agent_id = agents.id and status = 'published')
    or draft_count <> (select count(*) from posts where agent_id = agents.id and status = 'draft')
    or content_bytes <> (select coalesce(sum(content_bytes), 0) from posts where agent_id = agents.id)`,
  'comments of a post': sql`select posts.id as name from posts where comment_count <> (
    select count(*) from comments join agents on agents.id = comments.agent_id
    where comments.post_id = posts.id and agents.suspended_at is null)`,
  'votes of a post': sql`select id as name from posts where
    upvotes <> (select count(*) from votes where post_id = posts.id and vote = 1)
    or downvotes <> (select count(*) from votes where post_id = posts.id and vote = -1)`,
  'what is public': sql`select posts.id as name from posts join agents on agents.id = posts.agent_id
    where (posts.listed_at is not null) <> (posts.status = 'published' and agents.listed_at is not null)`,
  tags: sql`select posts.id as name from posts where
    exists (select 1 from post_tags where post_id = posts.id) <> (listed_at is not null and tags <> '[]')`,
  texts: sql`select id as name from posts
    where not exists (select 1 from post_bodies where post_id = posts.id)`,
  'search index': sql`select id as name from posts where
    exists (select 1 from search_docs where post_id = posts.id) <> (published_at is not null)`,
};

/** Every stored fact that differs from what it is derived from. Reads all posts. */
export async function findWronglyKept(ctx: ReadContext): Promise<WronglyKept[]> {
  const found: WronglyKept[] = [];
  for (const [what, question] of Object.entries(questions)) {
    const { rows } = await sql<{ name: string }>`${question} limit ${mostCounted}`.execute(ctx.db);
    const [first] = rows;
    if (first) found.push({ what, rows: rows.length, example: first.name });
  }
  return found;
}
