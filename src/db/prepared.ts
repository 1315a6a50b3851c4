import type { CompiledQuery, Insertable, Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** Stands for a value while a query is built. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** Runs a statement synchronously, where the database can; others are asked through Kysely. */
export const runAtOnce = new WeakMap<
  Kysely<Tables>,
  (text: string, parameters: readonly unknown[]) => unknown[]
>();

/**
 * A query that is built once and run with other values, since building one takes longer than SQLite needs to run it.
 * `build` gets placeholders for the values and must always return the same query; all calls pass the same names.
 */
export function prepared<Values extends object, Row>(
  build: (db: Kysely<Tables>, values: Values) => CompiledQuery<Row>,
): (db: Kysely<Tables>, values: Values) => Promise<Row[]> {
  /** By dialect. */
  const built = new Map<unknown, CompiledQuery<Row>>();
  return async (db, values) => {
    const dialect = db.getExecutor().adapter.constructor;
    let query = built.get(dialect);
    if (query === undefined) {
      const slots = Object.fromEntries(Object.keys(values).map((name) => [name, new Slot(name)]));
      query = build(db, slots as Values);
      built.set(dialect, query);
    }
    const parameters = query.parameters.map((value) =>
      value instanceof Slot ? values[value.name as keyof Values] : value,
    );
    const run = runAtOnce.get(db);
    if (run !== undefined) return run(query.sql, parameters) as Row[];
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

/** Most rows of one statement, so that few queries are built and none has more parameters than a database takes. */
const mostRows = 12;
const insertions = new Map<string, ReturnType<typeof prepared<Record<string, unknown>, unknown>>>();

/** Inserts rows of one shape. A query is built once for each table and number of rows. */
export async function insertPrepared<Table extends 'changes' | 'post_tags'>(
  db: Kysely<Tables>,
  table: Table,
  rows: readonly Insertable<Tables[Table]>[],
): Promise<void> {
  if (rows.length > mostRows) {
    for (let from = 0; from < rows.length; from += mostRows)
      await insertPrepared(db, table, rows.slice(from, from + mostRows));
    return;
  }
  const kind = `${table} ${rows.length}`;
  let insert = insertions.get(kind);
  if (insert === undefined) {
    const columns = Object.keys(rows[0] ?? {});
    insert = prepared((builder, values: Record<string, unknown>) =>
      builder
        .insertInto(table)
        .values(
          rows.map(
            (_, i) => Object.fromEntries(columns.map((name) => [name, values[`${name} ${i}`]])) as never,
          ),
        )
        .compile(),
    );
    insertions.set(kind, insert);
  }
  const values = rows.flatMap((row, i) =>
    Object.entries(row).map(([name, value]) => [`${name} ${i}`, value]),
  );
  await insert(db, Object.fromEntries(values));
}
