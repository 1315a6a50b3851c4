import type { CompiledQuery, Insertable, Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** Stands for a value while a query is built. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** Whether rows have the text of a post or its HTML: on PostgreSQL such a read shares no round trip. */
export type Reading = { readonly large: boolean };

/** How an engine runs built queries, without Kysely's layers. */
export type Direct = {
  rows(query: CompiledQuery, how: Reading): readonly unknown[] | Promise<readonly unknown[]>;
  /** Runs a change whose outcome nobody waits for. If it fails, so does what is awaited next, or the transaction. */
  change(query: CompiledQuery): void;
  /** Runs such a change for each of some rows; one of a statement for as many as `queryFor` takes. */
  changeRows(queryFor: QueryForRows, rows: readonly RowValues[]): void;
};
export const directly = new WeakMap<Kysely<Tables>, Direct>();

/** Values of a row's columns, in their order. */
export type RowValues = readonly unknown[];
/** One query for up to {@link mostRows} rows. */
export type QueryForRows = (db: Kysely<Tables>, rows: readonly RowValues[]) => CompiledQuery;

type Build<Values extends object, Row> = (db: Kysely<Tables>, values: Values) => CompiledQuery<Row>;

/**
 * A query that is built once and run with other values, since building one takes longer than SQLite needs to run it.
 * `build` gets placeholders for the values and must always return the same query; all calls pass the same names.
 */
export function prepared<Values extends object, Row>(
  build: Build<Values, Row>,
  how: Reading = { large: false },
): (db: Kysely<Tables>, values: Values) => Promise<Row[]> {
  const fill = fillable(build);
  return async (db, values) => (await directOf(db).rows(fill(db, values), how)) as Row[];
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
export const mostRows = 16;

/** Inserts rows into a table, as {@link preparedRows}; all calls pass rows with the same columns. */
export function preparedInsert<Table extends keyof Tables>(
  table: Table,
): (db: Kysely<Tables>, rows: readonly Insertable<Tables[Table]>[]) => void {
  let columns: readonly string[] = [];
  const insert = preparedRows((db, rows) => {
    const named = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])) as never);
    return db.insertInto(table).values(named).compile();
  });
  return (db, rows) => {
    if (columns.length === 0) columns = Object.keys(rows[0] ?? {});
    insert(
      db,
      rows.map((row) => columns.map((column) => Reflect.get(row, column))),
    );
  };
}

/**
 * A {@link preparedChange} for any number of rows of the same columns. A query is built once for each number of them.
 * PostgreSQL gets rows of several writes by one statement, if it can.
 */
export function preparedRows(
  build: (db: Kysely<Tables>, rows: readonly RowValues[]) => CompiledQuery,
): (db: Kysely<Tables>, rows: readonly RowValues[]) => void {
  const fills: ReturnType<typeof forRows>[] = [];
  const queryFor: QueryForRows = (db, rows) => {
    const fill = (fills[rows.length] ??= forRows(build, rows.length, rows[0]?.length ?? 0));
    return fill(db, rows.flat());
  };
  return (db, rows) => directOf(db).changeRows(queryFor, rows);
}

/** By itself, since what is built stays for good: a closure beside the first rows would keep their texts. */
function forRows(build: Parameters<typeof preparedRows>[0], rows: number, columns: number) {
  return fillable((db, values: RowValues) => {
    const row = (n: number) => Array.from({ length: columns }, (_, i) => values[n * columns + i]);
    return build(
      db,
      Array.from({ length: rows }, (_, n) => row(n)),
    );
  });
}
