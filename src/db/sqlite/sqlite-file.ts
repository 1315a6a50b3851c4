import { randomUUID } from 'node:crypto';
import { mkdirSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { StartError, errorMessage } from '../../rules/failure.ts';
import type { Log } from '../../platform/log.ts';
import {
  markerFile,
  markKey,
  readMarker,
  shownMark,
  writeMarker,
  type InstanceMarker,
} from './instance-marker.ts';
import { migrate, requireUpToDate } from '../migrate.ts';
import { openSqlite, rewriteDue, sqliteCode, sqliteTypes, type SqliteConnection } from './sqlite.ts';
import { refuseUnfinishedCopy } from '../whole.ts';

/** statfs types of file systems on which SQLite's locks or WAL are not safe (linux/magic.h). */
const remoteFileSystems: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB',
  0x5346414f: 'AFS',
  0x00c36400: 'Ceph',
  0x01021997: '9P',
};

/** How long a start waits for another process that rewrites the file, ms. */
const rewritePatience = 30 * 60_000;

export type SqliteFileOptions = {
  readonly dataDir: string;
  readonly file: string;
  /** Refuse to create: a missing database is an error. */
  readonly existing: boolean;
  /** Create, or bring up to date; else change nothing, and refuse a schema that is out of date. */
  readonly migrate: boolean;
  /** ISO time for what is created. */
  readonly now: string;
  readonly log: Log;
};

/**
 * Makes sure that the file is this instance's database, whole and up to date, or creates both the database
 * and the marker `dataDir/instance` that names it. Throws StartError with one line for every other state:
 * an empty service must never stand in for a lost one. Returns the schema steps taken.
 */
export async function prepareSqliteFile(options: SqliteFileOptions): Promise<string[]> {
  const { dataDir, file, existing, migrate: mayMigrate, now, log } = options;
  const marker = markerFile(dataDir);
  const expected = fromDisk(marker, () => readMarker(marker));
  const size = fromDisk(file, () => statSync(file, { throwIfNoEntry: false })?.size ?? null);
  const present = size !== null && size > 0;
  if (!present && expected !== null) {
    throw new StartError(
      `The database ${file} is ${size === null ? 'missing' : 'empty'}, but ${marker} says that this instance has one (${expected.id}): restore it from a backup, or remove ${marker} to begin anew.`,
    );
  }
  if (!present && (existing || !mayMigrate)) {
    throw new StartError(
      `There is no database at ${file}: is the data volume mounted? Start once without --existing to create one.`,
    );
  }
  for (const directory of [dataDir, dirname(file)]) makeLocalDirectory(directory);
  const connection = await open(file);
  try {
    const taken = await prepare(connection, { marker, expected, mayMigrate, now, file });
    if (mayMigrate) rewriteWhereDue(connection.raw, { file, log });
    return taken;
  } finally {
    connection.raw.close();
  }
}

/** What `read` returns. Throws StartError where it fails: what cannot be looked at must not count as missing. */
function fromDisk<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = errorMessage(error);
    throw new StartError(
      `${path} cannot be read (${reason}): run this as the user of the service, and check the owner and permissions of the folder.`,
    );
  }
}

async function prepare(
  { raw, db }: SqliteConnection,
  {
    marker,
    expected,
    mayMigrate,
    now,
    file,
  }: { marker: string; expected: InstanceMarker | null; mayMigrate: boolean; now: string; file: string },
): Promise<string[]> {
  try {
    if (!mayMigrate) await requireUpToDate(db, `The database ${file}`);
    // The lock is the database's own: a second process waits here and then finds nothing to do.
    beginInTurn(raw);
    const taken = mayMigrate ? await migrate(db, sqliteTypes, now) : [];
    await refuseUnfinishedCopy(db);
    const facts = await db
      .selectFrom('meta')
      .selectAll()
      .where('key', 'in', ['instance_id', markKey])
      .execute();
    const known = new Map(facts.map(({ key, value }) => [key, value]));
    const stored = known.get('instance_id');
    const id = stored ?? expected?.id ?? randomUUID();
    const mark = Number(known.get(markKey) ?? 0);
    if (expected !== null && id !== expected.id) {
      throw new StartError(
        `The database ${file} belongs to instance ${id}, but ${marker} names ${expected.id}: point DATABASE_URL or DATA_DIR at the right one, or remove ${marker} to adopt this database.`,
      );
    }
    if (expected !== null && mark < expected.mark) {
      throw new StartError(
        `The database ${file} lacks its newest changes (it has those up to ${shownMark(mark)}, and ${marker} names ${shownMark(expected.mark)}): it was copied without ${basename(file)}-wal, or is older. Put the whole copy or a backup in its place, or remove ${marker} to go on without those changes.`,
      );
    }
    if (stored === undefined && mayMigrate)
      await db.insertInto('meta').values({ key: 'instance_id', value: id }).execute();
    raw.exec('commit');
    if (expected === null) await writeMarker(marker, { id, mark });
    return taken;
  } catch (error) {
    if (raw.isTransaction) raw.exec('rollback');
    throw sqliteStartError(error, file);
  }
}

/** Begins to write. While another process rewrites the file, that takes longer than any other wait. */
function beginInTurn(raw: DatabaseSync): void {
  const began = performance.now();
  for (;;) {
    try {
      raw.exec('begin immediate');
      return;
    } catch (error) {
      const isBusy = sqliteCode(error) === 5;
      if (!isBusy || performance.now() - began > rewritePatience || !isRewriteDue(raw)) throw error;
    }
  }
}

function isRewriteDue(raw: DatabaseSync): boolean {
  try {
    return raw.prepare('select value from meta where key = ?').get(rewriteDue) !== undefined;
  } catch {
    // A database that is still to be made.
    return false;
  }
}

/**
 * Rewrites the file once where a schema step asked for it: parts that earlier releases freed still hold what they had.
 * Where that cannot be done now, the next start tries again.
 */
function rewriteWhereDue(raw: DatabaseSync, { file, log }: { file: string; log: Log }): void {
  if (!isRewriteDue(raw)) return;
  const megabytes = Math.ceil(statSync(file).size / 1024 ** 2);
  const { bavail, bsize } = statfsSync(dirname(file));
  const facts = { file, megabytes };
  if (bavail * bsize < 2 * megabytes * 1024 ** 2) {
    log.warn(facts, `${later}: that needs ${2 * megabytes} MiB of free disk`);
    return;
  }
  log.info(facts, 'the database is rewritten once, which frees it of what was deleted before this release');
  try {
    // Not in memory, where it would be the whole database.
    raw.exec('pragma temp_store = file; vacuum');
    raw.prepare('delete from meta where key = ?').run(rewriteDue);
    raw.exec('pragma wal_checkpoint(truncate)');
  } catch (error) {
    // Another process that started at the same time may have done it.
    if (isRewriteDue(raw)) log.warn({ ...facts, err: error }, later);
  }
}

const later = 'what was deleted before this release stays in free parts of the database until a later start';

async function open(file: string): Promise<SqliteConnection> {
  try {
    return openSqlite(file, { readOnly: false });
  } catch (error) {
    throw sqliteStartError(error, file);
  }
}

/** What a failure to open or read the file means to an operator: a StartError where that is known. */
export function sqliteStartError(error: unknown, file: string): unknown {
  const code = sqliteCode(error);
  if (code === null || !(error instanceof Error)) return error;
  if (code === 26)
    return new StartError(`${file} is not an SQLite database: restore it from a backup, or move it away.`);
  if (code === 11)
    return new StartError(`The database ${file} is damaged (${error.message}): restore it from a backup.`);
  if (code === 5 || code === 6)
    return new StartError(
      `The database ${file} is locked by another process: stop it, or wait until it is done.`,
    );
  if (code === 13) return new StartError(`The disk that holds ${file} is full: make room, then start again.`);
  if (code === 8 || code === 10 || code === 14)
    return new StartError(
      `The database ${file} cannot be opened (${error.message}): check the owner and permissions of its folder.`,
    );
  return new StartError(
    `The database ${file} is damaged or not Masthead's (${error.message}): restore it from a backup.`,
  );
}

/** Makes a folder for our files. Throws StartError for one that cannot be made, or where SQLite is not safe. */
export function makeLocalDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(
      `The folder ${directory} cannot be made (${errorMessage(error)}): set DATA_DIR to one that can.`,
    );
  }
  const remote = remoteFileSystems[statfsSync(directory).type];
  if (remote) {
    throw new StartError(
      `${directory} is on ${remote}, where SQLite can lose data: use a local disk, or PostgreSQL (DATABASE_URL=postgres://…).`,
    );
  }
}
