import type { CompiledQuery, Insertable, Kysely } from 'kysely';
import type { Tables } from './tables.ts';
import { preparedChange } from './write.ts';

/** Most rows of one statement, so that few queries are built and none has more parameters than a database takes. */
const mostRows = 12;
const columnsOf = {
  changes: ['tag', 'at'],
  post_tags: ['agent_id', 'tag', 'published_at', 'post_id'],
} as const;
const insertions = new Map<string, ReturnType<typeof insertion>>();

/** Inserts rows, as {@link preparedChange}. A query is built once for each table and number of rows. */
export function insertPrepared<Table extends keyof typeof columnsOf>(
  db: Kysely<Tables>,
  table: Table,
  rows: readonly Insertable<Tables[Table]>[],
): void {
  const insert = insertions.get(table) ?? insertion(table);
  insertions.set(table, insert);
  insert(
    db,
    rows.map((row) => columnsOf[table].map((name) => Reflect.get(row, name))),
  );
}

function insertion(table: keyof typeof columnsOf) {
  return preparedForRows((db, rows) => {
    const named = rows.map(
      (row) => Object.fromEntries(columnsOf[table].map((name, i) => [name, row[i]])) as never,
    );
    return db.insertInto(table).values(named).compile();
  });
}

type Row = readonly unknown[];

/** A {@link preparedChange} for any number of rows of the same columns. A query is built once for each number of them. */
export function preparedForRows(
  build: (db: Kysely<Tables>, rows: readonly Row[]) => CompiledQuery,
): (db: Kysely<Tables>, rows: readonly Row[]) => void {
  const changes: ReturnType<typeof forRows>[] = [];
  return (db, rows) => {
    for (let from = 0; from < rows.length; from += mostRows) {
      const some = rows.slice(from, from + mostRows);
      const change = (changes[some.length] ??= forRows(build, some.length, some[0]?.length ?? 0));
      change(db, some.flat());
    }
  };
}

/** By itself, since what is built stays for good: a closure beside the first rows would keep their texts. */
function forRows(build: Parameters<typeof preparedForRows>[0], rows: number, columns: number) {
  return preparedChange((db, values: Row) => {
    const row = (n: number) => Array.from({ length: columns }, (_, i) => values[n * columns + i]);
    return build(
      db,
      Array.from({ length: rows }, (_, n) => row(n)),
    );
  });
}
