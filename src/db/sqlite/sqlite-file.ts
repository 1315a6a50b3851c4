import { randomUUID } from 'node:crypto';
import { mkdirSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { StartError, errorMessage } from '../../rules/failure.ts';
import {
  markerFile,
  markKey,
  readMarker,
  shownMark,
  writeMarker,
  type InstanceMarker,
} from './instance-marker.ts';
import { migrate, requireUpToDate, type PrepareOptions } from '../migrate.ts';
import {
  openSqlite,
  readMeta,
  rewriteDue,
  sqliteCode,
  sqliteStartError,
  sqliteTypes,
  type SqliteConnection,
} from './sqlite.ts';
import { refuseUnfinishedCopy } from '../whole.ts';
import { releaseWhereFull } from './disk-reserve.ts';

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

/** How long a start waits for another process's rewrite of the file, ms. */
const rewritePatience = 30 * 60_000;

export type SqliteFileOptions = PrepareOptions & { readonly dataDir: string; readonly file: string };

/**
 * Makes sure that the file is this instance's database, whole and up to date, or creates both the database
 * and the marker `dataDir/instance` that names it. Throws StartError with one line for every other state:
 * an empty service must never replace a lost one unnoticed. Returns the migrations that ran.
 */
export async function prepareSqliteFile(options: SqliteFileOptions): Promise<string[]> {
  const { dataDir, file, existing, migrate: mayMigrate } = options;
  const marker = markerFile(dataDir);
  const expected = fromDisk(marker, () => readMarker(marker));
  const size = fromDisk(file, () => statSync(file, { throwIfNoEntry: false })?.size ?? null);
  const present = size !== null && size > 0;
  if (!present && expected !== null) {
    throw new StartError(
      `The database ${file} is ${size === null ? 'missing' : 'empty'}, but ${marker} says that this instance has one (${expected.id}): restore it from a backup, or remove ${marker} to begin anew.`,
      { mend: mendByRestore(dataDir, file) },
    );
  }
  if (!present && (existing || !mayMigrate)) {
    throw new StartError(
      `There is no database at ${file}: is the data volume mounted? Start once without --existing to create one.`,
      { mend: 'masthead migrate' },
    );
  }
  for (const directory of [dataDir, dirname(file)]) makeLocalDirectory(directory);
  if (mayMigrate) releaseWhereFull(file);
  const connection = openSqlite(file, { readOnly: false });
  try {
    const ran = await prepare(connection, expected, options);
    if (mayMigrate) rewriteWhereDue(connection.raw, options);
    return ran;
  } finally {
    connection.raw.close();
  }
}

/** Puts a backup in the place of whatever is there of a database: for root, who alone may stop the service. */
export function mendByRestore(dataDir: string, file: string): string {
  const aside = `'${dataDir}/aside'`;
  // Its socket would start it again at the next connection, in the middle of this.
  const stop = `systemctl stop masthead.socket masthead; mkdir ${aside}; mv '${markerFile(dataDir)}' '${file}'* ${aside}`;
  const settings = `DATA_DIR='${dataDir}' DATABASE_URL='sqlite:${file}'`;
  const restore = `${settings} runuser -u "$(stat -c %U '${dataDir}')" -- masthead restore BACKUP`;
  return `${stop}; ${restore} && systemctl start masthead # 'masthead verify-backup' finds one`;
}

/** What `read` returns. Throws StartError where it fails: what cannot be read must not count as missing. */
function fromDisk<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StartError(
      `${path} cannot be read (${errorMessage(error)}): run this as the user of the service, and check the owner and permissions of the folder.`,
    );
  }
}

async function prepare(
  { raw, db }: SqliteConnection,
  expected: InstanceMarker | null,
  { dataDir, file, migrate: mayMigrate, now }: SqliteFileOptions,
): Promise<string[]> {
  const marker = markerFile(dataDir);
  try {
    if (!mayMigrate) await requireUpToDate(db, `The database ${file}`);
    // The database's own lock: a second process waits here and then finds nothing to do.
    beginInTurn(raw);
    const ran = mayMigrate ? await migrate(db, sqliteTypes, now) : [];
    await refuseUnfinishedCopy(db);
    const stored = readMeta(raw, 'instance_id');
    const id = stored ?? expected?.id ?? randomUUID();
    const mark = Number(readMeta(raw, markKey) ?? 0);
    if (expected !== null && id !== expected.id) {
      throw new StartError(
        `The database ${file} belongs to instance ${id}, but ${marker} names ${expected.id}: point DATABASE_URL or DATA_DIR at the right one, or remove ${marker} to adopt this database.`,
        { mend: `mv '${marker}' '${marker}.of-another'` },
      );
    }
    if (expected !== null && mark < expected.mark) {
      throw new StartError(
        `The database ${file} lacks its newest changes (it has those up to ${shownMark(mark)}, and ${marker} names ${shownMark(expected.mark)}): it was copied without ${basename(file)}-wal, or is older. Put the whole copy or a backup in its place, or remove ${marker} to go on without those changes.`,
        { mend: mendByRestore(dataDir, file) },
      );
    }
    if (stored === undefined && mayMigrate)
      await db.insertInto('meta').values({ key: 'instance_id', value: id }).execute();
    raw.exec('commit');
    if (expected === null) await writeMarker(marker, { id, mark });
    return ran;
  } catch (error) {
    if (raw.isTransaction) raw.exec('rollback');
    throw sqliteStartError(error, file);
  }
}

/** Begins a write transaction. A rewrite by another process takes longer than the busy timeout. */
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
    return readMeta(raw, rewriteDue) !== undefined;
  } catch {
    // A new database: no tables yet.
    return false;
  }
}

/**
 * Rewrites the file once where a migration asked for it: pages freed by early releases still hold deleted data.
 * Where that is not possible now, the next start tries again.
 */
function rewriteWhereDue(raw: DatabaseSync, { file, log }: SqliteFileOptions): void {
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

/** Creates a folder for our files. Throws StartError where that fails, or on a file system unsafe for SQLite. */
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
