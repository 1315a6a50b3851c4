import { sql, type RawBuilder } from 'kysely';
import type { Clause, SearchQuery } from '../search-terms.ts';
import type { Match, SearchIndex } from './full-text.ts';
import { prepared } from './prepared.ts';

/**
 * The index holds no texts, only terms, which are made elsewhere and parted by spaces. A deleted post leaves it
 * by a trigger, since posts go by cascades.
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

export const sqliteSearchIndex: SearchIndex = {
  async store(db, doc, { title, tags, text }) {
    await storeTerms(db, { doc, title: title.join(' '), tags: tags.join(' '), text: text.join(' ') });
  },
};

type Terms = { doc: number; title: string; tags: string; text: string };

const storeTerms = prepared((db, { doc, title, tags, text }: Terms) =>
  // The document may have been deleted since, in the same transaction.
  sql`insert or replace into post_search (rowid, title, tags, text)
    select doc, ${title}, ${tags}, ${text} from search_docs where doc = ${doc}`.compile(db),
);

/**
 * FTS5 walks matches by row number, newest first, and stops at the limit. The cross joins keep SQLite from beginning
 * at a table that has no order of ours.
 */
export function newestMatches(query: SearchQuery, most: number, upTo: number): RawBuilder<Match> {
  return sql<Match>`select d.doc, d.post_id, d.digest
    from post_search as s
    cross join search_docs as d on d.doc = s.rowid
    cross join posts as p on p.id = d.post_id
    where s.post_search match ${expression(query)} and s.rowid <= ${upTo} and p.listed_at is not null
    order by s.rowid desc limit ${most}`;
}

/** Every term is quoted, so that none is an operator. Terms have no quotation marks. */
function expression({ all, none }: SearchQuery): string {
  const wanted = all.map(phrase).join(' AND ');
  return none.length === 0 ? wanted : `(${wanted}) NOT (${none.map(phrase).join(' OR ')})`;
}

function phrase({ terms, prefix }: Clause): string {
  return `"${terms.join(' ')}"${prefix ? ' *' : ''}`;
}
