import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { Kysely, SqliteDialect, sql, type CompiledQuery } from 'kysely';
import { AppError } from '../../errors.ts';
import { diskFault } from '../../platform/disk.ts';
import { StartError, errorCode, errorMessage } from '../../rules/failure.ts';
import type { DialectTypes } from '../migrations/types.ts';
import { sqliteSearchErasure, sqliteSearchTables } from './sqlite-full-text.ts';
import { directly, mostRows } from '../prepared.ts';
import type { Tables } from '../tables.ts';

/** Older ones can lose commits in WAL mode when a checkpoint races a writer. */
const leastSqlite = '3.51.3';

/** How long a statement waits for another process's lock, ms. This blocks its thread. */
const writerBusyTimeout = 5000;
const readerBusyTimeout = 500;

/** Page cache of a connection, KiB; the writer's holds the index pages that a batch of posts touches. */
const cacheSize = (readOnly: boolean) => (readOnly ? 4_000 : 16_000);

/** Pages of the write-ahead log, 4 KiB each, after which it is written back: many are in it again and again. */
const logPages = 4_000;

/** Key in `meta` of a file that the next start is to rewrite: data deleted by early releases was not overwritten. */
export const rewriteDue = 'rewrite';

/** An open SQLite file: the raw handle and the query builder over it. */
export type SqliteConnection = ReturnType<typeof openSqlite>;

export const sqliteTypes: DialectTypes = {
  text: sql`text`,
  integer: sql`integer`,
  real: sql`real`,
  serial: sql`integer primary key autoincrement`,
  tableEnd: sql`strict`,
  clusteredTableEnd: sql`strict, without rowid`,
  searchTables: sqliteSearchTables,
  searchErasure: sqliteSearchErasure,
  altersColumns: false,
  fastCompression: [],
  cutPositions: [],
  rewritten: [
    // A new database has no id yet, and nothing that was deleted.
    sql`insert into meta (key, value)
      select ${sql.lit(rewriteDue)}, 'due' from meta where key = 'instance_id'`,
  ],
};

type OpenOptions = {
  readonly readOnly: boolean;
  /** Called when SQLite cannot read something, with the AppError that the caller gets. */
  readonly onUnreadable?: (error: AppError, fault: string) => void;
};

/**
 * Opens the file with every setting that durability rests on, and asserts each. Throws StartError where it cannot be
 * opened, this SQLite is too old or a setting did not take. `attempt` runs a read by the raw handle and explains its
 * failures, as those of `db` are.
 */
export function openSqlite(file: string, { readOnly, onUnreadable }: OpenOptions) {
  let raw: DatabaseSync | undefined;
  try {
    raw = new DatabaseSync(file, { readOnly, timeout: readOnly ? readerBusyTimeout : writerBusyTimeout });
    configure(raw, readOnly);
  } catch (error) {
    raw?.close();
    throw sqliteStartError(error, file);
  }
  // What a writer's failure means depends on whether its transaction still stands, which the writer knows.
  const attempt: Attempt = readOnly ? explained(onUnreadable) : (run) => run();
  const database = adapter(raw, attempt);
  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
  const change = ({ sql: text, parameters }: CompiledQuery) => void database.prepare(text).run(parameters);
  directly.set(db, {
    rows: ({ sql: text, parameters }) => database.prepare(text).all(parameters),
    change,
    changeRows(queryFor, rows) {
      for (let n = 0; n < rows.length; n += mostRows) change(queryFor(db, rows.slice(n, n + mostRows)));
    },
  });
  return { raw, db, attempt };
}

function configure(raw: DatabaseSync, readOnly: boolean): void {
  // Deleted content is overwritten, not left in free pages.
  if (!readOnly) {
    switchToWal(raw);
    raw.exec(`pragma synchronous = full; pragma secure_delete = on; pragma wal_autocheckpoint = ${logPages}`);
  }
  raw.exec(
    `pragma foreign_keys = on; pragma temp_store = memory; pragma cache_size = -${cacheSize(readOnly)}`,
  );
  const version = String(raw.prepare('select sqlite_version() as v').get()?.['v']);
  if (version.localeCompare(leastSqlite, 'en', { numeric: true }) < 0) {
    throw new StartError(
      `SQLite ${version} is too old: Masthead needs ${leastSqlite}, which Node 24.16 and newer bring.`,
    );
  }
  assertPragma(raw, 'journal_mode', 'wal');
  assertPragma(raw, 'synchronous', 2);
  assertPragma(raw, 'foreign_keys', 1);
  if (!readOnly) assertPragma(raw, 'secure_delete', 1);
}

/** Of two processes that make a database at once SQLite refuses one immediately, whatever the busy timeout says. */
function switchToWal(raw: DatabaseSync): void {
  const began = performance.now();
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return raw.exec('pragma journal_mode = wal');
    } catch (error) {
      if (sqliteCode(error) !== 5 || performance.now() - began > writerBusyTimeout) throw error;
      Atomics.wait(clock, 0, 0, 10);
    }
  }
}

function assertPragma(raw: DatabaseSync, name: string, wanted: string | number): void {
  const value = raw.prepare(`pragma ${name}`).get()?.[name];
  if (value !== wanted)
    throw new StartError(
      `SQLite refused the setting ${name}=${wanted} (it is ${String(value)}): is the file system read-only or remote?`,
    );
}

type Attempt = <Result>(run: () => Result) => Result;

function explained(onUnreadable: OpenOptions['onUnreadable']): Attempt {
  return (run) => {
    try {
      return run();
    } catch (error) {
      const failure = sqliteFailure(error, 'read');
      if (failure instanceof AppError) onUnreadable?.(failure, errorMessage(error));
      throw failure;
    }
  };
}

/**
 * A statement that is planned once. By the value of a bound limit SQLite plans it anew at each run; by that of a sum it
 * does not.
 */
export function plannedOnce(text: string): string {
  return text.replaceAll(/\blimit \?/g, '$& + 0');
}

/** What Kysely's SQLite dialect expects, over node:sqlite. Statements are prepared once and cached. */
function adapter(raw: DatabaseSync, attempt: Attempt) {
  const statements = new Map<string, ReturnType<typeof prepare>>();
  const prepare = (text: string) => {
    const statement = raw.prepare(plannedOnce(text));
    return {
      // Asked once: reading the columns costs as much as running a query.
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
      let statement = statements.get(text);
      if (statement === undefined) {
        statement = attempt(() => prepare(text));
        // Generated texts are few; a runaway number would mean values pasted into SQL.
        if (statements.size >= 500) statements.clear();
        statements.set(text, statement);
      }
      return statement;
    },
  };
}

/** A value of the table `meta`, if the key has one. */
export function readMeta(raw: DatabaseSync, key: string): string | undefined {
  const value = raw.prepare('select value from meta where key = ?').get(key)?.['value'];
  return value === undefined ? undefined : String(value);
}

/** The primary result code of an SQLite failure (https://www.sqlite.org/rescode.html); null for any other error. */
export function sqliteCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null;
  // Extended result codes carry the primary code in the low byte.
  return error.errcode & 0xff;
}

const busy = [
  'unavailable',
  'The database is busy. Repeat the call in a moment.',
  { retryAfter: 1 },
] as const;
const full = [
  'storage_full',
  'The disk of the service is full: nothing was stored.',
  {
    retryAfter: 5,
    hint: 'Reading works, and so do deletions while any room is left. Repeat the call later.',
  },
] as const;
const unwritable = 'The service cannot write to its disk: nothing was stored.';
const damaged = [
  'unavailable',
  'The part of the database that this call needs is damaged, and the operator has to restore it.',
  {
    retryAfter: 60,
    damaged: true,
    hint: 'Calls that need other parts still work. Repeat this one later.',
  },
] as const;

/** The AppErrors of a failed write, by result code. */
const failures: Readonly<Record<number, Readonly<ConstructorParameters<typeof AppError>>>> = {
  5: busy, // busy
  6: busy, // locked
  8: ['read_only', 'The service is read-only at present.', { retryAfter: 60 }], // read-only file
  10: ['unavailable', unwritable, { retryAfter: 5 }], // input/output error
  11: damaged,
  13: full,
  14: ['unavailable', unwritable, { retryAfter: 5 }], // cannot open
  26: damaged, // not a database
};

/** What an SQLite failure means to the caller of a read or write: an AppError where that is known, else itself. */
export function sqliteFailure(error: unknown, doing: 'read' | 'write' = 'write'): unknown {
  const known = failures[sqliteCode(error) ?? -1];
  if (known === undefined) return error;
  const [code, message, extra] = known;
  const isUnreadable = doing === 'read' && message === unwritable;
  return new AppError(
    code,
    isUnreadable ? 'The service cannot read its disk at this moment.' : message,
    extra,
  );
}

/** The refusal of a write other than a deletion until so many bytes are free. */
export function storageFull(needed: number): AppError {
  const [code, , options] = full;
  const least = `${Math.ceil(needed / 1024 ** 2)} MiB`;
  const detail = `The disk of the service is full: nothing was stored. Until ${least} are free it only deletes.`;
  return new AppError(code, detail, options);
}

type Explain = (file: string, reason: string, mend: string) => string;

const isLocked: Explain = (file) =>
  `The database ${file} is locked by another process: stop it, or wait until it is done.`;
const cannotOpen: Explain = (file, reason) =>
  `The database ${file} cannot be opened (${reason}): check the owner and permissions of its folder.`;
const isFullDisk: Explain = (file) => `The disk that holds ${file} is full: make room, then start again.`;
const isForeign: Explain = (file, reason, mend) =>
  `The database ${file} is damaged or not Masthead's (${reason}): ${mend}.`;

/** What to tell the operator, by result code. */
const startFailures: Readonly<Record<number, Explain>> = {
  5: isLocked, // busy
  6: isLocked, // locked
  8: cannotOpen, // read-only file
  10: cannotOpen, // input/output error
  11: (file, reason, mend) => `The database ${file} is damaged (${reason}): ${mend}.`,
  13: isFullDisk,
  14: cannotOpen,
  26: (file, _reason, mend) => `${file} is not an SQLite database: ${mend}, or move it away.`,
};

/**
 * What a failure to open or read the file means to the operator: a StartError, unless it is not SQLite's. `mend` is
 * what helps where the file itself is at fault.
 */
export function sqliteStartError(error: unknown, file: string, mend = 'restore it from a backup'): unknown {
  const code = sqliteCode(error);
  if (code === null) return error;
  // Where it cannot make what it keeps beside the file, SQLite says that it cannot read or open that.
  const isOfDisk = [8, 10, 14].includes(code);
  const disk = isOfDisk ? diskFault(dirname(file)) : null;
  if (disk !== null)
    return new StartError(`The disk that holds ${file} is ${disk.is}: ${disk.todo}, then start again.`, {
      mend: disk.mend,
    });
  const said = (startFailures[code] ?? isForeign)(file, errorMessage(error), mend);
  return new StartError(
    said,
    isOfDisk && isClosed(file) ? { mend: `chmod u+rwX '${dirname(file)}' '${file}'` } : {},
  );
}

/** Whether this user may not write a file, or in its folder. */
function isClosed(file: string): boolean {
  try {
    for (const path of [dirname(file), file]) accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch (error) {
    return errorCode(error) === 'EACCES';
  }
}
