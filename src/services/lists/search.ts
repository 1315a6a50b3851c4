import { sql } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import type { Match } from '../../db/database.ts';
import { timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { longWork } from '../../platform/slices.ts';
import { longestLook, snippetOf, type SnippetPart } from '../../rules/search/search-snippet.ts';
import { agentTerm, leastPrefix, parseSearch, searchTerms } from '../../rules/search/search-terms.ts';
import type { SearchQuery } from '../../rules/search/search-terms.ts';
import { searchWays, type SearchWay } from '../../rules/search/search-ways.ts';
import type { SearchOrder } from '../../rules/orders.ts';
import { sha256 } from '../../rules/secrets.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { listedPosts, type ListedRow } from './discovery.ts';
import type { Seeker } from './searches.ts';
import { pagePost, type PagePost } from './pages.ts';
import { nearWords } from './vocabulary.ts';
import { readCursor, toPage, type Page, type SortKey } from './paging.ts';
import { listedPost, type ListedPost } from '../posts/post-views.ts';

/** How many matches are ranked: the newest ones. */
const rankedMatches = 1000;

/** Posts are numbered in the order of their publication, but for some of the last ones, and within so many ms. */
const lastNumbered = 100;
const numberedWithin = 600_000;

/** Snippets made before other work gets its turn. */
const snippetsAtOnce = 10;

/** A query as it was written, and which page of its results. */
type SearchCall = {
  readonly q: string;
  /** As tags are stored. */
  readonly tag: string | null;
  /** Id of the agent whose posts alone are looked through. */
  readonly agentId: string | null;
  readonly sort: SearchOrder;
  readonly limit: number;
  readonly cursor: string | null;
};

/** A matching post, with the passage that shows why. */
export type Found<Post> = Post & { readonly snippet: readonly SnippetPart[] };

type SearchPage<Post> = Page<Found<Post>> & {
  /** How many match; null if there are more than are ranked. */
  readonly total: number | null;
  /** What was looked for instead, since nothing has all of the words; null where it was as written. */
  readonly instead: string | null;
  /** The query with words of posts in place of unknown ones; null where none is near. */
  readonly suggestion: string | null;
  readonly warnings: readonly Warning[];
};

/**
 * Posts that contain everything in the query, best first, the newest first among equals; where there are none, those
 * that come near it. A cursor continues in the same ranking: posts published meanwhile are left out. Throws
 * invalid_input, unavailable.
 */
export function searchPosts(ctx: Context, seeker: Seeker, call: SearchCall): Promise<SearchPage<ListedPost>> {
  return search(ctx, seeker, call, listedPost);
}

/** The same as pages show it. */
export function searchForPage(ctx: Context, seeker: Seeker, call: SearchCall): Promise<SearchPage<PagePost>> {
  return search(ctx, seeker, call, pagePost);
}

async function search<Post>(
  ctx: Context,
  seeker: Seeker,
  { q, agentId, sort, limit, cursor, ...call }: SearchCall,
  view: (ctx: ReadContext, row: ListedRow) => Post,
): Promise<SearchPage<Post>> {
  const { warnings, tooShort, tag: named, ...query } = parseSearch(q);
  if (tooShort !== null) throw tooShortToBegin(tooShort);
  const tag = call.tag ?? named;
  const hasNone = query.all.length === 0 && (tag === null || searchTerms(tag).length === 0);
  if (hasNone && (tag === null || query.none.length > 0)) throw nothingToLookFor(query);
  const filter = { query, tag, agentId, sort };
  const list = `search-${sha256(JSON.stringify(filter)).slice(0, 16)}`;
  const after = readCursor(cursor, list, [0, 0, 0, 0]);
  const key = JSON.stringify([view.name, filter, limit, after]);
  const sought = { q, query, tag, agentId, sort, limit, list, after };
  const page = await ctx.searches.find(key, seeker, async (signal) => {
    const { ids, rows, found, ...said } = await findPage(ctx, sought, signal);
    return { ...said, items: await withSnippets(ids, rows, found, (row) => view(ctx, row)) };
  });
  return { ...page, warnings: [...warnings, ...notes(page, { tag, words: query.all.length })] };
}

function asWritten(query: SearchQuery): SearchWay {
  return { query, instead: null };
}

type Sought = Pick<SearchCall, 'q' | 'tag' | 'agentId' | 'sort' | 'limit'> & {
  readonly query: SearchQuery;
  readonly list: string;
  readonly after: SortKey | null;
};

/** A page of the first way to understand the query that finds anything; of later pages, of the way of the first one. */
async function findPage(ctx: Context, sought: Sought, signal: AbortSignal) {
  const { q, query, sort, limit, list, after } = sought;
  const [upTo = 0, way = 0, ...place] = after?.map(Number) ?? [Number.MAX_SAFE_INTEGER];
  const ways = searchWays(query);
  const tried = after === null ? ways : ways.slice(way, way + 1);
  const { matches, tagged, by } = await findMatches(ctx, { ...sought, tried, upTo }, signal);
  const { query: found, instead } = tried[by] ?? asWritten(query);
  const score = (match: Match) => (sort === 'newest' ? 0 : match.score);
  const ranked = tagged.toSorted((a, b) => score(b) - score(a) || b.doc - a.doc);
  const rest = after === null ? ranked : ranked.filter((match) => isBeyond(score(match), match.doc, place));
  const asOf = after === null ? (matches[0]?.doc ?? 0) : upTo;
  const number = after === null ? by : way;
  const order = { list, keyOf: (match: Match) => [asOf, number, score(match), match.doc] };
  const { items: ids, nextCursor } = toPage(rest, limit, order, (match) => match.post_id);
  const rows = ids.length === 0 ? [] : await postsWithTexts(ctx, ids);
  const total = matches.length < rankedMatches ? tagged.length : null;
  const isNear = instead !== null || tagged.length === 0;
  const suggestion = isNear && after === null ? await suggestionFor(ctx, q, query, signal) : null;
  return { ids, rows, found, nextCursor, total, instead, suggestion };
}

/** The newest matches of the first way that has any, and those of them that have the tag. */
async function findMatches(
  ctx: Context,
  sought: Sought & { readonly tried: readonly SearchWay[]; readonly upTo: number },
  signal: AbortSignal,
): Promise<{ matches: readonly Match[]; tagged: readonly Match[]; by: number }> {
  const { query, tag, tried, upTo } = sought;
  if (query.all.length === 0 && tag !== null && searchTerms(tag).length === 0) {
    const matches = await newestWithTag(ctx, { ...sought, tag });
    return { matches, tagged: matches, by: 0 };
  }
  const queries = tried.map((each) => within(each.query, sought));
  const found = await ctx.engine.findNewest(queries, rankedMatches, upTo, signal);
  return { ...found, tagged: tag === null ? found.matches : await withTag(ctx, tag, found.matches) };
}

function notes(
  { total, instead, suggestion }: Pick<SearchPage<unknown>, 'total' | 'instead' | 'suggestion'>,
  asked: { tag: string | null; words: number },
) {
  const said: Warning[] = [];
  if (instead !== null && total !== 0)
    said.push(warning('widened_search', `no post contains all of the words; these have ${instead}`));
  if (total === 0) said.push(warning('nothing_found', nothingFound(asked)));
  if (suggestion !== null) said.push(warning('other_words', `did you mean '${suggestion}'?`));
  return said;
}

function nothingFound({ tag, words }: { tag: string | null; words: number }): string {
  if (tag === null) return 'no post contains any of the words; try others, or fewer in quotes';
  return words === 0
    ? 'no post has this tag; try another, or look for its words without tag'
    : 'no post with this tag contains any of the words; try others, or leave the tag out';
}

/** The query with known words in place of unknown ones, if it finds anything that way. */
async function suggestionFor(
  ctx: Context,
  q: string,
  query: SearchQuery,
  signal: AbortSignal,
): Promise<string | null> {
  const words = query.all.filter((clause) => !clause.quoted).flatMap(({ terms }) => terms);
  const near = await nearWords(ctx, words);
  if (near.size === 0) return null;
  const suggestion = q.replace(/[a-z]+/gi, (word) => near.get(word.toLowerCase()) ?? word);
  const ways = searchWays(parseSearch(suggestion)).slice(0, 3);
  const sought = ways.map((way) => way.query);
  const { matches } = await ctx.engine.findNewest(sought, 1, Number.MAX_SAFE_INTEGER, signal);
  return matches.length === 0 ? null : suggestion;
}

/** The words of a tag, and the author, are in the index, so that of a common query their newest posts are found. */
function within(query: SearchQuery, { tag, agentId }: Pick<Sought, 'tag' | 'agentId'>): SearchQuery {
  const terms = searchTerms(tag ?? '');
  const more = [...(terms.length > 0 ? [terms] : []), ...(agentId === null ? [] : [[agentTerm(agentId)]])];
  return { ...query, all: [...query.all, ...more.map((each) => ({ terms: each, prefix: false }))] };
}

/** The newest posts with a tag that has no word, such as an emoji: the index has none of it. */
async function newestWithTag(
  ctx: ReadContext,
  { tag, agentId, upTo, after }: Pick<Sought, 'agentId' | 'after'> & { tag: string; upTo: number },
): Promise<Match[]> {
  // Or a cursor that says less than there is would be looked for among all posts with the tag.
  const latest = after === null ? null : await latestOf(ctx, upTo);
  if (latest === undefined) return [];
  const tagged = ctx.db.selectFrom('post_tags').where('tag', '=', tag);
  const rows = await (agentId === null ? tagged : tagged.where('post_tags.agent_id', '=', agentId))
    .innerJoin('search_docs', 'search_docs.post_id', 'post_tags.post_id')
    .select(['search_docs.doc', 'search_docs.post_id'])
    .where('search_docs.doc', '<=', upTo)
    .$if(latest !== null, (row) => row.where('post_tags.published_at', '<=', latest))
    .orderBy('published_at', 'desc')
    .orderBy('post_tags.post_id', 'desc')
    .limit(rankedMatches)
    .execute();
  return rows.map((row) => ({ ...row, score: 0 })).toSorted((a, b) => b.doc - a.doc);
}

/** When one of the last posts up to this number was published at the latest; undefined where there is none. */
async function latestOf({ db }: ReadContext, upTo: number): Promise<string | undefined> {
  const last = db
    .selectFrom('search_docs')
    .select('post_id')
    .where('doc', '<=', upTo)
    .orderBy('doc', 'desc')
    .limit(sql.lit(lastNumbered));
  const { latest } = await db
    .selectFrom('posts')
    .select(({ fn }) => fn.max('published_at').as('latest'))
    .where('id', 'in', last)
    .executeTakeFirstOrThrow();
  return latest === null ? undefined : timestamp(Date.parse(latest) + numberedWithin);
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

function isBeyond(own: number, ownDoc: number, [score = 0, doc = 0]: readonly number[]): boolean {
  return own < score || (own === score && ownDoc < doc);
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
  const nextTurn = longWork();
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
    hint: 'Words must all occur; "words in quotes" in this order; -word must not occur; word* is how a word begins; tag:name or tag:"two words" is a tag, \\" a quote in one.',
  });
}
