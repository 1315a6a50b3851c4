import type { Insertable, Kysely } from 'kysely';
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
  for (let from = 0; from < rows.length; from += mostRows) {
    const some = rows.slice(from, from + mostRows);
    const kind = `${table} ${some.length}`;
    const insert = insertions.get(kind) ?? insertion(table, some.length);
    insertions.set(kind, insert);
    insert(
      db,
      some.flatMap((row) => columnsOf[table].map((name) => Reflect.get(row, name))),
    );
  }
}

function insertion(table: keyof typeof columnsOf, length: number) {
  const columns = columnsOf[table];
  return preparedChange((db, values: readonly unknown[]) => {
    const row = (n: number) => columns.map((name, i) => [name, values[n * columns.length + i]]);
    const rows = Array.from({ length }, (_, n) => Object.fromEntries(row(n)) as never);
    return db.insertInto(table).values(rows).compile();
  });
}
