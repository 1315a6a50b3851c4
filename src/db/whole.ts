import { sql, type Kysely } from 'kysely';
import type { DatabaseConfig } from '../config/config.ts';
import type { Log } from '../platform/log.ts';
import { StartError } from '../rules/failure.ts';
import type { SearchIndex } from './database.ts';
import type { DialectTypes } from './migrations/types.ts';
import type { Tables } from './tables.ts';

/** A database that nobody serves, on one connection, to read or write all of it. */
export type WholeDatabase = {
  /** Without credentials. */
  readonly description: string;
  readonly db: Kysely<Tables>;
  readonly types: DialectTypes;
  readonly searchIndex: SearchIndex;
  begin(): Promise<void>;
  /** Resolves when it is on disk. */
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Begins a transaction that reads one state of the database, and keeps all others from changing these tables. */
  freeze(tables: readonly string[]): Promise<void>;
  /** Whether it has tables of ours. */
  hasTables(): Promise<boolean>;
  /** To be called after many rows were written: updates sequences and statistics. */
  settle(): Promise<void>;
  close(): Promise<void>;
};

/** Opens a database to read or write all of it; makes an SQLite file where `create` allows. Throws StartError. */
export async function openWhole(
  database: DatabaseConfig,
  { create, log }: { create: boolean; log: Log },
): Promise<WholeDatabase> {
  if ('file' in database) {
    const { openWholeSqlite } = await import('./sqlite/sqlite-whole.ts');
    return openWholeSqlite(database.file, { create });
  }
  const { openWholePostgres } = await import('./postgres/postgres-whole.ts');
  // A pooler would not keep a transaction for as long as a copy takes.
  return openWholePostgres(database.directUrl === null ? database.urls : [database.directUrl], log);
}

/** Columns of a row, by their names. */
export type Row = Readonly<Record<string, unknown>>;

/** Adds rows that have the same columns, in one statement. An engine takes some thousand values at once. */
export async function insertRows(db: Kysely<Tables>, table: string, rows: readonly Row[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const values = rows.map((row) => sql`(${sql.join(columns.map((column) => sql.val(row[column])))})`);
  await sql`insert into ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))})
    values ${sql.join(values)}`.execute(db);
}

/** Runs `body` in a transaction, which is on disk when this resolves and undone when it rejects. */
export async function inTransaction<T>(database: WholeDatabase, body: () => Promise<T>): Promise<T> {
  await database.begin();
  try {
    const value = await body();
    await database.commit();
    return value;
  } catch (error) {
    await database.rollback();
    throw error;
  }
}

/** In `meta` of a copy that is not finished: the instance that it is a copy of. */
export const unfinishedCopy = 'copy_of';

/** Throws StartError for a copy that is not finished: half of an instance must never be served. */
export async function refuseUnfinishedCopy(db: Kysely<Tables>): Promise<void> {
  const row = await db
    .selectFrom('meta')
    .select('value')
    .where('key', '=', unfinishedCopy)
    .executeTakeFirst();
  if (!row) return;
  throw new StartError(
    `The database is an unfinished copy of the instance ${row.value}: repeat the 'masthead migrate-to' that began it, or empty it.`,
  );
}
