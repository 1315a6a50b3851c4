import type { DatabaseSync } from 'node:sqlite';
import { sql, type Kysely, type RawBuilder } from 'kysely';
import type { Clause, SearchQuery } from '../../rules/search/search-terms.ts';
import type { NumberedFields, SearchEntry, SearchIndex } from '../database.ts';
import { choices } from '../relevance.ts';
import { prepared, preparedRows } from '../prepared.ts';
import type { Tables } from '../tables.ts';

/**
 * Pages written by one part of a merge: some milliseconds. FTS5 only marks deleted entries, and drops them when it
 * merges. A negative number starts a full merge; a call that changes fewer than two rows had nothing left to do
 * (https://www.sqlite.org/fts5.html#the_merge_command).
 */
const pagesPerPart = 32;

/**
 * The index holds no texts, only terms separated by spaces. A trigger removes deleted posts, since those go by
 * cascade.
 */
export const sqliteSearchTables: readonly RawBuilder<unknown>[] = [
  sql`create virtual table post_search using fts5 (
    title, tags, text, content = '', contentless_delete = 1, tokenize = 'ascii'
  )`,
  sql`insert into post_search (post_search, rank) values ('automerge', 8)`,
  sql`create trigger search_docs_gone after delete on search_docs begin
    delete from post_search where rowid = old.doc;
  end`,
];

/** Records deletions from the index, past ones included, so that their terms are erased (`services/upkeep/maintenance.ts`). */
export const sqliteSearchErasure: readonly RawBuilder<unknown>[] = [
  sql`drop trigger search_docs_gone`,
  sql`create trigger search_docs_gone after delete on search_docs begin
    delete from post_search where rowid = old.doc;
    insert or replace into meta (key, value) values ('search_erasure', 'due');
  end`,
  sql`insert into meta (key, value) select 'search_erasure', 'due' from meta where key = 'instance_id'`,
];

export const sqliteSearchIndex: SearchIndex = {
  async store(db, entry, fields) {
    sqliteSearchIndex.storeNumbered(db, [{ doc: await numberEntry(db, entry), fields }]);
  },
  storeNumbered(db, documents) {
    const latest = new Map(documents.map((each) => [each.doc, each]));
    // FTS5 also flushes before a document whose number is not above the one before it.
    const inOrder = [...latest.values()].toSorted((a, b) => a.doc - b.doc);
    storeTerms(db, inOrder.map(valuesOf));
  },
  async noteReplaced(db) {
    await noteErasure(db, {});
  },
  async eraseDeleted(db, part) {
    const before = await totalChanges(db);
    const pages = part === 'first' ? -pagesPerPart : pagesPerPart;
    await sql`insert into post_search (post_search, rank) values ('merge', ${sql.lit(pages)})`.execute(db);
    return (await totalChanges(db)) - before < 2;
  },
};

/** Erases the terms of deleted documents from a file in nobody else's use. Returns whether there were any. */
export function eraseAllDeleted(raw: DatabaseSync): boolean {
  if (!raw.prepare(`select value from meta where key = 'search_erasure'`).get()) return false;
  raw.exec(`pragma secure_delete = on;
    insert into post_search (post_search) values ('optimize');
    delete from meta where key = 'search_erasure'`);
  return true;
}

async function totalChanges(db: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{ total: number }>`select total_changes() as total`.execute(db);
  return rows[0]?.total ?? 0;
}

const noteErasure = prepared((db) =>
  sql`insert or replace into meta (key, value) values ('search_erasure', 'due')`.compile(db),
);

/** Stores the entry of a post; returns its number. */
export async function numberEntry(db: Kysely<Tables>, entry: SearchEntry): Promise<number> {
  const [stored] = await storeEntry(db, entry);
  if (!stored) throw new Error(`The search entry of post ${entry.postId} was not stored`);
  return stored.doc;
}

const storeEntry = prepared((db, { postId, digest }: SearchEntry) =>
  db
    .insertInto('search_docs')
    .values({ post_id: postId, digest })
    .onConflict((conflict) => conflict.column('post_id').doUpdateSet({ digest }))
    .returning('doc')
    .compile(),
);

/**
 * Stores many documents by one statement. FTS5 writes out the terms that it holds at each savepoint, and SQLite sets one
 * for every statement that changes a virtual table: one for each document would make as many segments of the index.
 */
const storeTerms = preparedRows((db, documents) => {
  const selects = documents.map(
    ([doc, title, tags, text]) =>
      // The document may have been deleted since, in the same transaction.
      sql`select doc, ${title}, ${tags}, ${text} from search_docs where doc = ${doc}`,
  );
  return sql`insert or replace into post_search (rowid, title, tags, text)
    ${sql.join(selects, sql` union all `)}`.compile(db);
});

function valuesOf({ doc, fields: { title, tags, text } }: NumberedFields) {
  return [doc, title.join(' '), tags.join(' '), text.join(' ')];
}

/**
 * Matches with their digests. FTS5 walks them by row number, newest first, up to the limit: the cross join fixes that as
 * the outer loop. A hidden one is found among the few such posts, with half of the reading that its own row would take.
 */
export function newestMatches(query: SearchQuery, most: number, upTo: number): RawBuilder<unknown> {
  return sql`select d.doc, d.post_id, d.digest
    from post_search as s
    cross join search_docs as d on d.doc = s.rowid
    where s.post_search match ${expression(query)} and s.rowid <= ${upTo} and not exists (
      select 1 from posts as p indexed by posts_unlisted
      where p.id = d.post_id and p.listed_at is null and p.published_at is not null)
    order by s.rowid desc limit ${most}`;
}

/** Every term is quoted, so that none is an operator. Terms have no quotation marks. */
function expression({ all, none, some }: SearchQuery): string {
  const wanted = [...all.map(phrase), ...(some ? [`(${choices(some, phrase, ' AND ').join(' OR ')})`] : [])];
  const joined = wanted.join(' AND ');
  return none.length === 0 ? joined : `(${joined}) NOT (${none.map(phrase).join(' OR ')})`;
}

function phrase({ terms, prefix, or = [] }: Clause): string {
  const sought = `"${terms.join(' ')}"${prefix ? ' *' : ''}`;
  return or.length === 0 ? sought : `(${[sought, ...or.map((term) => `"${term}"`)].join(' OR ')})`;
}
