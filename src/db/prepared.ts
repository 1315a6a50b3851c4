import type { CompiledQuery, Insertable, Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** Stands for a value while a query is built. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** How an engine runs built queries, without Kysely's layers. */
export type Direct = {
  rows(query: CompiledQuery): readonly unknown[] | Promise<readonly unknown[]>;
  /** Runs a change whose outcome nobody waits for. If it fails, so does what is awaited next, or the transaction. */
  change(query: CompiledQuery): void;
};
export const directly = new WeakMap<Kysely<Tables>, Direct>();

type Build<Values extends object, Row> = (db: Kysely<Tables>, values: Values) => CompiledQuery<Row>;

/**
 * A query that is built once and run with other values, since building one takes longer than SQLite needs to run it.
 * `build` gets placeholders for the values and must always return the same query; all calls pass the same names.
 */
export function prepared<Values extends object, Row>(
  build: Build<Values, Row>,
): (db: Kysely<Tables>, values: Values) => Promise<Row[]> {
  const fill = fillable(build);
  return async (db, values) => (await directOf(db).rows(fill(db, values))) as Row[];
}

/** The same for a change that nobody has to wait for: PostgreSQL gets it together with what comes after it. */
export function preparedChange<Values extends object>(
  build: Build<Values, unknown>,
): (db: Kysely<Tables>, values: Values) => void {
  const fill = fillable(build);
  return (db, values) => directOf(db).change(fill(db, values));
}

function directOf(db: Kysely<Tables>): Direct {
  const direct = directly.get(db);
  if (!direct) throw new Error('This connection runs no prepared queries');
  return direct;
}

function fillable<Values extends object, Row>(build: Build<Values, Row>) {
  /** By dialect. */
  const built = new Map<unknown, CompiledQuery<Row>>();
  return (db: Kysely<Tables>, values: Values): CompiledQuery<Row> => {
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
    return { ...query, parameters };
  };
}

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
