import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import type { Match } from '../../db/database.ts';
import { AppError } from '../../errors.ts';
import { longestLook, snippetOf, type SnippetPart } from '../../rules/search/search-snippet.ts';
import { leastPrefix, parseSearch, searchTerms, type SearchQuery } from '../../rules/search/search-terms.ts';
import { sha256 } from '../../rules/secrets.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { listedPosts, type ListedRow } from './discovery.ts';
import type { Seeker } from './searches.ts';
import { pagePost, type PagePost } from './pages.ts';
import { readCursor, toPage, type Page } from './paging.ts';
import { listedPost, type ListedPost } from '../posts/post-views.ts';

/** How many matches are ranked: the newest ones. */
const rankedMatches = 1000;

/** Snippets made before other work gets its turn. */
const snippetsAtOnce = 10;

/** A query as it was written, and which page of its results. */
type SearchCall = {
  readonly q: string;
  /** As tags are stored. */
  readonly tag: string | null;
  readonly limit: number;
  readonly cursor: string | null;
};

/** A matching post, with the passage that shows why. */
export type Found<Post> = Post & { readonly snippet: readonly SnippetPart[] };

type SearchPage<Post> = Page<Found<Post>> & {
  /** How many match; null if there are more than are ranked. */
  readonly total: number | null;
  readonly warnings: readonly Warning[];
};

/**
 * Posts that contain everything in the query, best first, the newest first among equals. A cursor continues in
 * the same ranking: posts published meanwhile are left out. Throws invalid_input, unavailable.
 */
export async function searchPosts(
  ctx: Context,
  seeker: Seeker,
  call: SearchCall,
): Promise<SearchPage<ListedPost>> {
  const page = await search(ctx, seeker, call, listedPost);
  return page.total === 0 ? { ...page, warnings: [...page.warnings, nothingFound] } : page;
}

const nothingFound = warning(
  'nothing_found',
  "no post contains all of the words; try fewer of them, or the beginning of one, as in 'gaug*' for gauge and gauges",
);

/** The same as pages show it. */
export function searchForPage(ctx: Context, seeker: Seeker, call: SearchCall): Promise<SearchPage<PagePost>> {
  return search(ctx, seeker, call, pagePost);
}

async function search<Post>(
  ctx: Context,
  seeker: Seeker,
  { q, tag, limit, cursor }: SearchCall,
  view: (ctx: ReadContext, row: ListedRow) => Post,
): Promise<SearchPage<Post>> {
  const { warnings, tooShort, ...query } = parseSearch(q);
  if (tooShort !== null) throw tooShortToBegin(tooShort);
  if (query.all.length === 0) throw nothingToLookFor(query);
  const list = `search-${sha256(JSON.stringify(tag === null ? query : { ...query, tag })).slice(0, 16)}`;
  const after = readCursor(cursor, list, [0, 0, 0]);
  const key = JSON.stringify([view.name, query, tag, limit, after]);
  const page = await ctx.searches.find(key, seeker, async (signal) => {
    const [upTo = 0, ...place] = after?.map(Number) ?? [Number.MAX_SAFE_INTEGER];
    const matches = await ctx.engine.findNewest(alsoIn(tag, query), rankedMatches, upTo, signal);
    const tagged = tag === null ? matches : await withTag(ctx, tag, matches);
    const ranked = tagged.toSorted((a, b) => b.score - a.score || b.doc - a.doc);
    const rest = after === null ? ranked : ranked.filter((match) => isBeyond(match, place));
    const asOf = after === null ? (matches[0]?.doc ?? 0) : upTo;
    const order = { list, keyOf: ({ score, doc }: Match) => [asOf, score, doc] };
    const { items: ids, nextCursor } = toPage(rest, limit, order, (match) => match.post_id);
    const rows = ids.length === 0 ? [] : await postsWithTexts(ctx, ids);
    const items = await withSnippets(ids, rows, query, (row) => view(ctx, row));
    return { items, nextCursor, total: matches.length < rankedMatches ? tagged.length : null };
  });
  return { ...page, warnings };
}

/** The words of a tag are in the index, so that of a common query the newest posts of the tag are found. */
function alsoIn(tag: string | null, query: SearchQuery): SearchQuery {
  const terms = searchTerms(tag ?? '');
  return terms.length === 0 ? query : { ...query, all: [...query.all, { terms, prefix: false }] };
}

async function withTag({ db }: ReadContext, tag: string, matches: readonly Match[]): Promise<Match[]> {
  if (matches.length === 0) return [];
  const ids = matches.map((match) => match.post_id);
  const rows = await db
    .selectFrom('post_tags')
    .select('post_id')
    .where('post_id', 'in', ids)
    .where('tag', '=', tag)
    .execute();
  const tagged = new Set(rows.map((row) => row.post_id));
  return matches.filter((match) => tagged.has(match.post_id));
}

function isBeyond(match: Match, [score = 0, doc = 0]: readonly number[]): boolean {
  return match.score < score || (match.score === score && match.doc < doc);
}

function postsWithTexts(ctx: ReadContext, ids: readonly string[]) {
  return listedPosts(ctx)
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(sql<string>`substr(post_bodies.text, 1, ${sql.lit(longestLook)})`.as('text'))
    .where('posts.id', 'in', ids)
    .execute();
}

/** The posts in the order of the ids. One that has just been unpublished is left out. */
async function withSnippets<Post>(
  ids: readonly string[],
  rows: Awaited<ReturnType<typeof postsWithTexts>>,
  query: SearchQuery,
  view: (row: ListedRow) => Post,
): Promise<Found<Post>[]> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const found: Found<Post>[] = [];
  for (const [i, id] of ids.entries()) {
    const row = byId.get(id);
    if (row) found.push({ ...view(row), snippet: snippetOf(row.text, query) });
    // A snippet of a hostile text takes tenths of a millisecond, while other requests wait.
    if (i % snippetsAtOnce === snippetsAtOnce - 1) await nextTurn();
  }
  return found;
}

function tooShortToBegin(start: string): AppError {
  const message = `must have at least ${leastPrefix} letters before a *`;
  return new AppError('invalid_input', `'q' ${message}: '${start}*' would match most posts.`, {
    errors: [{ field: 'q', message }],
    hint: `Give more letters of '${start}', or leave the * out to look for it as a whole word.`,
  });
}

function nothingToLookFor({ none }: SearchQuery): AppError {
  const more = none.length > 0 ? ', beside those that must not occur' : ': letters or digits';
  const message = `must hold a word to look for${more}`;
  return new AppError('invalid_input', `'q' ${message}.`, {
    errors: [{ field: 'q', message }],
    hint: 'Words must all occur; "words in quotes" in this order; -word must not occur; word* is how a word begins.',
  });
}
