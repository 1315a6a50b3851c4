import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { Kysely, SqliteDialect, sql } from 'kysely';
import { AppError } from '../../errors.ts';
import { StartError } from '../../rules/failure.ts';
import type { DialectTypes } from '../migrations/types.ts';
import { sqliteSearchErasure, sqliteSearchTables } from './sqlite-full-text.ts';
import { runAtOnce } from '../prepared.ts';
import type { Tables } from '../tables.ts';

/** Older ones can lose commits in WAL mode when a checkpoint races a writer. */
const leastSqlite = '3.51.3';

/** How long a statement waits for another process's lock, ms. It blocks its thread meanwhile. */
const writerBusyTimeout = 5000;
const readerBusyTimeout = 500;

/** Pages that a connection keeps, KiB; the writer's is large enough for what the indexes touch of many posts. */
const cacheSize = (readOnly: boolean) => (readOnly ? 8_000 : 16_000);

/** In `meta` of a file that is to be rewritten at a start, to be rid of what was deleted before it was overwritten. */
export const rewriteDue = 'rewrite';

/** An open SQLite file: the raw handle and the query builder over it. */
export type SqliteConnection = {
  readonly raw: DatabaseSync;
  readonly db: Kysely<Tables>;
  /** Runs what reads by the raw handle; its failures are explained and told of as those of `db` are. */
  readonly attempt: Failing;
};

export const sqliteTypes: DialectTypes = {
  text: sql`text`,
  integer: sql`integer`,
  real: sql`real`,
  serial: sql`integer primary key autoincrement`,
  tableEnd: sql`strict`,
  clusteredTableEnd: sql`strict, without rowid`,
  searchTables: sqliteSearchTables,
  searchErasure: sqliteSearchErasure,
  rewritten: [
    // A new database has no id yet, and nothing that was deleted.
    sql`insert into meta (key, value)
      select ${sql.lit(rewriteDue)}, 'due' from meta where key = 'instance_id'`,
  ],
};

type OpenOptions = {
  readonly readOnly: boolean;
  /** Told of what SQLite cannot read; its caller is answered with what {@link sqliteFailure} says. */
  readonly onUnreadable?: (error: AppError, fault: string) => void;
};

/**
 * Opens the file with every setting that durability rests on, and asserts each.
 * Throws StartError if this SQLite is too old or a setting did not take.
 */
export function openSqlite(file: string, { readOnly, onUnreadable }: OpenOptions): SqliteConnection {
  const raw = new DatabaseSync(file, { readOnly, timeout: readOnly ? readerBusyTimeout : writerBusyTimeout });
  try {
    // What is deleted is overwritten, not left in free pages.
    if (!readOnly)
      raw.exec('pragma journal_mode = wal; pragma synchronous = full; pragma secure_delete = on');
    raw.exec(
      `pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -${cacheSize(readOnly)}`,
    );
    const version = String(raw.prepare('select sqlite_version() as v').get()?.['v']);
    if (compareVersions(version, leastSqlite) < 0) {
      throw new StartError(
        `SQLite ${version} is too old: Masthead needs ${leastSqlite}, which Node 24.16 and newer bring.`,
      );
    }
    assertPragma(raw, 'journal_mode', 'wal');
    assertPragma(raw, 'synchronous', 2);
    assertPragma(raw, 'foreign_keys', 1);
    if (!readOnly) assertPragma(raw, 'secure_delete', 1);
  } catch (error) {
    raw.close();
    throw error;
  }
  // What a writer's failures mean is said by who knows whether its transaction still stands.
  const attempt = readOnly ? explained(onUnreadable) : passedOn;
  const database = adapter(raw, attempt);
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
  runAtOnce.set(db, (text, parameters) => {
    const statement = database.prepare(text);
    if (statement.reader) return statement.all(parameters);
    statement.run(parameters);
    return [];
  });
  return { raw, db, attempt };
}

function assertPragma(raw: DatabaseSync, name: string, wanted: string | number): void {
  const value = raw.prepare(`pragma ${name}`).get()?.[name];
  if (value !== wanted)
    throw new StartError(
      `SQLite refused the setting ${name}=${wanted} (it is ${String(value)}): is the file system read-only or remote?`,
    );
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

type Failing = <Result>(run: () => Result) => Result;

const passedOn: Failing = (run) => run();

function explained(onUnreadable: OpenOptions['onUnreadable']): Failing {
  return (run) => {
    try {
      return run();
    } catch (error) {
      const failure = sqliteFailure(error, 'read');
      if (failure instanceof AppError && error instanceof Error) onUnreadable?.(failure, error.message);
      throw failure;
    }
  };
}

/** What Kysely's SQLite dialect expects, over node:sqlite. Statements are prepared once and kept. */
function adapter(raw: DatabaseSync, attempt: Failing) {
  const statements = new Map<string, ReturnType<typeof prepare>>();
  const prepare = (text: string) => {
    const statement = raw.prepare(text);
    return {
      // Asked once: telling the columns costs as much as running a query.
      reader: statement.columns().length > 0,
      all: (parameters: readonly unknown[]) =>
        attempt(() => statement.all(...(parameters as SQLInputValue[]))),
      run: (parameters: readonly unknown[]) => statement.run(...(parameters as SQLInputValue[])),
      iterate: (parameters: readonly unknown[]) => statement.iterate(...(parameters as SQLInputValue[])),
    };
  };
  return {
    close: () => raw.close(),
    prepare(text: string) {
      const known = statements.get(text);
      if (known) return known;
      const made = attempt(() => prepare(text));
      // Generated texts are few; a runaway number would mean values pasted into SQL.
      if (statements.size >= 500) statements.clear();
      statements.set(text, made);
      return made;
    },
  };
}

/** The primary result code of an SQLite failure (https://www.sqlite.org/rescode.html); null for any other error. */
export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null;
  // Extended result codes carry the primary code in the low byte.
  return error.errcode & 0xff;
}

/** What an SQLite failure means to the caller; anything else is passed through as unforeseen. */
export function sqliteFailure(error: unknown, doing: 'read' | 'write' = 'write'): unknown {
  switch (sqliteCode(error)) {
    case null: // not SQLite's
      return error;
    case 5: // busy
    case 6: // locked
      return new AppError('unavailable', 'The database is busy. Repeat the call in a moment.', {
        retryAfter: 1,
      });
    case 13: // full
      return new AppError('storage_full', 'The disk of the service is full: nothing was stored.', {
        retryAfter: 5,
      });
    case 10: // input/output error
    case 14: // cannot open
      return new AppError(
        'unavailable',
        doing === 'read'
          ? 'The service cannot read its disk at this moment.'
          : 'The service cannot write to its disk: nothing was stored.',
        { retryAfter: 5 },
      );
    case 8: // read-only file
      return new AppError('read_only', 'The service is read-only at present.', { retryAfter: 60 });
    case 11: // damaged
    case 26: // not a database
      return new AppError(
        'unavailable',
        'The part of the database that this call needs is damaged, and the operator has to restore it.',
        {
          retryAfter: 60,
          damaged: true,
          hint: 'Calls that need other parts still work. Repeat this one later.',
        },
      );
    default:
      return error;
  }
}
