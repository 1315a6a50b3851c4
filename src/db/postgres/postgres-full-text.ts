import { sql, type RawBuilder } from 'kysely';
import type { Clause, SearchFields, SearchQuery } from '../../rules/search/search-terms.ts';
import { SearchCutOff, searchTime } from '../database.ts';
import type { FindNewest, FoundNewest, Match, SearchIndex } from '../database.ts';
import { choices, relevance } from '../relevance.ts';
import { preparedRows } from '../prepared.ts';
import { sqlState } from './postgres.ts';
import type { Session } from './postgres-session.ts';

export const postgresSearchTables: readonly RawBuilder<unknown>[] = [
  sql`create table post_search (
    doc bigint primary key references search_docs (doc) on delete cascade,
    terms tsvector not null
  )`,
  sql`create index post_search_terms on post_search using gin (terms)`,
];

/** Documents of a block, whose number is a term of each; and how many times as many blocks each step back reads. */
const blockLength = 2048;
const wider = 4;

export const postgresSearchIndex: SearchIndex = {
  async store(db, { postId, digest }, fields) {
    storeEntries(db, [[postId, digest, vector(fields)]]);
  },
  storeNumbered(db, documents) {
    storeTerms(
      db,
      documents.map(({ doc, fields }) => [doc, vector(fields)]),
    );
  },
  // A deleted or former row goes like those of all tables: by vacuum.
  noteReplaced: async () => undefined,
  eraseDeleted: async () => true,
};

/** The number that a post gets, or has, decides about its block: one statement, so that nobody has to wait for it. */
const storeEntries = preparedRows((db, entries) => {
  const rows = entries.map(
    ([postId, digest, terms]) =>
      sql`(cast(${postId} as text), cast(${digest} as text), cast(${terms} as tsvector))`,
  );
  return sql`with given (post_id, digest, terms) as (values ${sql.join(rows)}),
    entry as (
      insert into search_docs (post_id, digest) select post_id, digest from given
      on conflict (post_id) do update set digest = excluded.digest returning doc, post_id
    )
    insert into post_search (doc, terms) select doc, ${inItsBlock(sql`terms`)} from entry join given using (post_id)
    on conflict (doc) do update set terms = excluded.terms`.compile(db);
});

const storeTerms = preparedRows((db, documents) => {
  const rows = documents.map(([doc, terms]) => sql`(cast(${doc} as bigint), cast(${terms} as tsvector))`);
  return sql`insert into post_search (doc, terms)
    select doc, ${inItsBlock(sql`terms`)} from (values ${sql.join(rows)}) as numbered (doc, terms)
    on conflict (doc) do update set terms = excluded.terms`.compile(db);
});

/** Terms, and the {@link blockTerm} of the `doc` of the same row. */
function inItsBlock(terms: RawBuilder<unknown>) {
  return sql`cast('''#' || doc / ${sql.lit(blockLength)} || '''' as tsvector) || ${terms}`;
}

/**
 * `FindNewest` on a connection of its own; `cancel` ends what a backend of its server is doing. A GIN index has no
 * order, so the newest blocks are searched first, by their terms: the index starts from the rarest term of a query and
 * skips in the lists of all others.
 */
export async function findNewestOnPostgres(
  session: Session,
  [queries, most, upTo, signal]: Parameters<FindNewest>,
  cancel: (backend: number) => Promise<unknown>,
): Promise<FoundNewest> {
  const end = performance.now() + searchTime;
  let cancelled: Promise<unknown> = Promise.resolve();
  let leave = (): void => undefined;
  // Poolers share connections: what is set holds for this transaction only.
  const limitTime = () => {
    const left = Math.ceil(end - performance.now());
    if (left <= 0 || signal.aborted) throw new SearchCutOff();
    session.send(`select set_config('statement_timeout', $1, true)`, [String(left)]);
  };
  try {
    session.begin();
    limitTime();
    const { rows } = await sql<{ newest: number | null; backend: number }>`
      select max(doc) as newest, pg_backend_pid() as backend from search_docs`.execute(session.db);
    const { newest, backend } = rows[0] ?? { newest: null, backend: 0 };
    leave = () => {
      cancelled = cancel(backend);
    };
    signal.addEventListener('abort', leave);
    for (const [by, query] of queries.entries()) {
      const matches = await newestInBlocks(session, query, { most, upTo, newest: newest ?? 0, limitTime });
      if (matches.length > 0) return { matches, by };
    }
    return { matches: [], by: 0 };
  } catch (error) {
    throw sqlState(error) === queryCanceled ? new SearchCutOff() : error;
  } finally {
    signal.removeEventListener('abort', leave);
    // Before the connection is anybody else's, who would be cancelled.
    await cancelled;
    await session.rollback();
  }
}

type Bounds = {
  readonly most: number;
  readonly upTo: number;
  readonly newest: number;
  readonly limitTime: () => void;
};

async function newestInBlocks(
  session: Session,
  query: SearchQuery,
  { most, upTo, newest, limitTime }: Bounds,
): Promise<Match[]> {
  const found: Match[] = [];
  let last = blockOf(Math.min(upTo, newest));
  for (let length = 1; last >= 0 && found.length < most; length *= wider) {
    const first = Math.max(0, last - length + 1);
    const blocks = Array.from({ length: last - first + 1 }, (_, i) => blockTerm(first + i));
    limitTime();
    const within = await matchesWithin(blocks, query, most - found.length, upTo).execute(session.db);
    for (const { doc, post_id, digest } of within.rows)
      found.push({ doc, post_id, score: relevance(digest, query) });
    last = first - 1;
  }
  return found;
}

/** SQLSTATE of a statement that its timeout or `pg_cancel_backend` ended. */
const queryCanceled = '57014';

type Row = Omit<Match, 'score'> & { readonly digest: string };

/** Matches in some blocks, newest first. Materialized, or the planner would go through posts by their order. */
function matchesWithin(
  blocks: readonly string[],
  query: SearchQuery,
  most: number,
  upTo: number,
): RawBuilder<Row> {
  const wanted = `(${blocks.join(' | ')}) & ${expression(query)}`;
  return sql<Row>`with matching as materialized (
      select doc from post_search where terms @@ cast(${wanted} as tsquery)
    )
    select d.doc, d.post_id, d.digest
    from matching join search_docs as d using (doc)
    where d.doc <= ${upTo} and not exists (
      select 1 from posts as p where p.id = d.post_id and p.listed_at is null and p.published_at is not null)
    order by d.doc desc limit ${most}`;
}

function blockOf(doc: number): number {
  return Math.floor(doc / blockLength);
}

/** No term of a text has such a character. */
function blockTerm(block: number): string {
  return `'#${block}'`;
}

/** What a phrase of three fields cannot bridge. */
const gap = 10;

/**
 * A tsvector of terms with their positions as the server receives it in binary, which takes it a fraction of the time
 * that it takes to read one in words: the number of terms, then each term, a zero, the number of its positions and these
 * (`tsvectorrecv` in its src/backend/utils/adt/tsvector.c). It puts them in order.
 */
function vector({ title, tags, text }: SearchFields): Buffer {
  const positions = new Map<string, number[]>();
  let position = 0;
  for (const field of [title, tags, text]) {
    for (const term of field) {
      position = Math.min(position + 1, lastPosition);
      const known = positions.get(term);
      if (known === undefined) positions.set(term, [position]);
      else if (known.at(-1) !== position) known.push(position);
    }
    position += gap;
  }
  for (const [term, places] of positions) {
    for (let part = 1; places.length > mostPositions; part++)
      positions.set(furtherTerm(term, part), places.splice(-mostPositions));
  }
  let most = 4;
  for (const [term, places] of positions) most += longestUnit * term.length + 3 + 2 * places.length;
  const bytes = Buffer.allocUnsafe(most);
  let at = bytes.writeInt32BE(positions.size);
  for (const [term, places] of positions) {
    at += bytes.write(term, at);
    at = bytes.writeUInt8(0, at);
    at = bytes.writeUInt16BE(places.length, at);
    for (const place of places) at = bytes.writeUInt16BE(place, at);
  }
  return bytes.subarray(0, at);
}

/** Most bytes of a UTF-16 unit in UTF-8. */
const longestUnit = 3;

/** The term that has more positions of a term than one can have; what they begin with is in no term of a text. */
function furtherTerm(term: string, part: number | ''): string {
  return `${term}\uE001${part}`;
}

/** PostgreSQL keeps no more of one term, and none beyond: https://www.postgresql.org/docs/current/textsearch-limitations.html */
const mostPositions = 255;
const lastPosition = 16_383;

function expression({ all, none, some }: SearchQuery): string {
  return [
    ...all.map(phrase),
    ...(some ? [`(${choices(some, phrase, ' & ').join(' | ')})`] : []),
    ...none.map((clause) => `!${phrase(clause)}`),
  ].join(' & ');
}

function phrase({ terms, prefix, or = [] }: Clause): string {
  const others = or.map((each) => `(${inOrder(each.split(' '))})`);
  return `(${[`(${inOrder(terms, prefix)})`, ...others].join(' | ')})`;
}

/** Each term of a phrase at any of its positions: a term alone is there by its first ones, and a beginning has all. */
function inOrder(terms: readonly string[], prefix = false): string {
  const written = terms.map((term, i) => {
    if (prefix && i === terms.length - 1) return `'${term}':*`;
    return terms.length === 1 ? `'${term}'` : `('${term}' | '${furtherTerm(term, '')}':*)`;
  });
  return written.join(' <-> ');
}
