import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { checksumFile, readChecksum, sha256Of } from '../../platform/checksum.ts';
import { syncPath } from '../../platform/private-file.ts';
import { StartError, errorMessage } from '../../rules/failure.ts';
import { migrationsAfter } from '../migrate.ts';
import { markerFile, markKey, writeMarker } from './instance-marker.ts';
import { readMeta, sqliteCode, sqliteStartError } from './sqlite.ts';
import { makeLocalDirectory } from './sqlite-file.ts';
import { eraseAllDeleted } from './sqlite-full-text.ts';

/** How long to wait for a lock, ms. */
const lockPatience = 5_000;

/** A finished copy. */
export type Copied = {
  /** The instance that the database belongs to. */
  readonly instanceId: string;
  readonly bytes: number;
};

/**
 * Copies the database of a running service to a new file: exactly what was committed when it began, without deleted
 * data. The copy is checked, and appears under its name once it is whole and on disk. Throws StartError.
 */
export async function backupSqlite(
  file: string,
  to: string,
  { finish }: { readonly finish?: Finish } = {},
): Promise<Copied> {
  if (existsSync(to)) throw new StartError(`${to} exists already: name a file that does not.`);
  if (!existsSync(file)) throw new StartError(`There is no database at ${file}: is the data volume mounted?`);
  // Opened for writing, so that closing removes the write-ahead log of a stopped service.
  const { mark: _, ...copied } = await copy(file, to, { readOnly: false, finish });
  return copied;
}

/** What is to be done with a checked copy before it appears under its name. */
type Finish = (draft: string) => Promise<void>;

/**
 * Puts a backup where there is no database yet, with the marker that names its instance. Throws StartError when
 * the backup is not whole, or newer than this program, or when anything of a database is there.
 */
export async function restoreSqlite(
  from: string,
  { dataDir, file }: { dataDir: string; file: string },
): Promise<Copied> {
  const marker = markerFile(dataDir);
  // SQLite would apply a stale log to the restored database.
  for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`, marker]) {
    if (existsSync(path))
      throw new StartError(`${path} exists: restore into a DATA_DIR without a database, or move it away.`);
  }
  if (!existsSync(from)) throw new StartError(`There is no file ${from}.`);
  for (const directory of [dataDir, dirname(file)]) makeLocalDirectory(directory);
  await requireChecksum(from);
  const { mark, ...copied } = await copy(from, file, { readOnly: true });
  await writeMarker(marker, { id: copied.instanceId, mark });
  return copied;
}

/** SQLite's own check does not see a changed letter. */
async function requireChecksum(file: string): Promise<void> {
  const recorded = readChecksum(file);
  if (recorded === null || recorded === (await sha256Of(file))) return;
  throw new StartError(
    `${file} is not what ${checksumFile(file)} says: it was changed or cut off since it was made; take an earlier backup.`,
  );
}

async function copy(
  from: string,
  to: string,
  { readOnly, finish }: { readonly readOnly: boolean; readonly finish?: Finish | undefined },
): Promise<Copied & { readonly mark: number }> {
  const draft = `${to}.partial`;
  makeEmpty(draft);
  try {
    const instance = copyRows(from, draft, readOnly);
    const fault = faultOfCopy(draft);
    if (fault !== null)
      throw new StartError(`${from} is damaged (${fault}): nothing was copied; ${mendOf(readOnly)}.`);
    await finish?.(draft);
    await syncPath(draft);
    renameSync(draft, to);
    await syncPath(dirname(to));
    return { ...instance, bytes: statSync(to).size };
  } catch (error) {
    // Only the copy is written, so only its disk can be full.
    const isFull = sqliteCode(error) === 13;
    throw sqliteStartError(error, isFull ? to : from, mendOf(readOnly));
  } finally {
    for (const end of ['', '-wal', '-shm', '-journal', second]) rmSync(`${draft}${end}`, { force: true });
  }
}

/** What helps where the file that is copied is at fault: a backup that is restored, or else the database itself. */
function mendOf(isBackup: boolean): string {
  return isBackup ? 'take an earlier backup' : 'restore it from a backup';
}

/** Suffix of a copy of a copy. */
const second = '-2';

function makeEmpty(file: string): void {
  try {
    rmSync(file, { force: true });
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    throw new StartError(`${file} cannot be written (${errorMessage(error)}): name another place.`);
  }
}

/** Copies all rows, without free pages. Returns the database's instance and mark. */
function copyRows(from: string, to: string, readOnly: boolean): { instanceId: string; mark: number } {
  const source = new DatabaseSync(from, { readOnly, timeout: lockPatience });
  try {
    const taken = source.prepare('select name from migrations order by name').all();
    migrationsAfter(taken.map(({ name }) => String(name)));
    source.prepare('vacuum into ?').run(to);
  } finally {
    source.close();
  }
  const copied = new DatabaseSync(to);
  try {
    const instanceId = readMeta(copied, 'instance_id');
    if (instanceId === undefined) throw new StartError(`${from} is not the database of an instance.`);
    // Merging the index frees pages, which a second copy leaves out; `vacuum` alone would need a temporary file.
    if (eraseAllDeleted(copied)) {
      makeEmpty(`${to}${second}`);
      copied.prepare('vacuum into ?').run(`${to}${second}`);
      renameSync(`${to}${second}`, to);
    }
    return { instanceId, mark: Number(readMeta(copied, markKey) ?? 0) };
  } finally {
    copied.close();
  }
}

/** What is wrong with a copy, or null. Leaves it without a write-ahead log: a single file. */
function faultOfCopy(file: string): string | null {
  const copied = new DatabaseSync(file);
  copied.exec('pragma journal_mode = delete');
  copied.close();
  return sqliteFault(file);
}

/** The first fault in a file, its indexes and references included, or null. Throws StartError if it cannot be opened. */
export function sqliteFault(file: string): string | null {
  if (!existsSync(file)) return 'it is missing';
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: lockPatience });
    const result = database.prepare('pragma integrity_check(1)').get()?.['integrity_check'];
    if (result !== 'ok') return String(result);
    const dangling = database.prepare('pragma foreign_key_check').get();
    return dangling ? `a row of ${String(dangling['table'])} refers to nothing` : null;
  } catch (error) {
    const explained = sqliteStartError(error, file);
    // A disk that takes nothing is no fault of the file.
    if (explained instanceof StartError && (database === null || 'mend' in explained.facts)) throw explained;
    return errorMessage(error);
  } finally {
    database?.close();
  }
}
