import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { syncPath } from '../../platform/private-file.ts';
import { StartError, errorMessage } from '../../rules/failure.ts';
import { migrationsAfter } from '../migrate.ts';
import { markerFile, markKey, writeMarker } from './instance-marker.ts';
import { sqliteCode } from './sqlite.ts';
import { makeLocalDirectory, sqliteStartError } from './sqlite-file.ts';
import { eraseAllDeleted } from './sqlite-full-text.ts';

/** How long to wait for a lock, ms. */
const lockPatience = 5_000;

/** What a copy holds. */
export type Copied = {
  /** The instance whose database it is. */
  readonly instanceId: string;
  readonly bytes: number;
};

/**
 * Copies the database of a running service to a new file: all that was committed when it began, nothing of later, and
 * nothing of what was deleted. The copy is checked, and appears under its name when it is whole and on disk. Throws
 * StartError.
 */
export async function backupSqlite(file: string, to: string): Promise<Copied> {
  if (existsSync(to)) throw new StartError(`${to} exists already: name a file that does not.`);
  if (!existsSync(file)) throw new StartError(`There is no database at ${file}: is the data volume mounted?`);
  // Opened to write, so that the log of a service that has stopped is not left behind.
  const { mark: _, ...copied } = await copy(file, to, { readOnly: false });
  return copied;
}

/**
 * Puts a backup where there is no database yet, with the marker that names its instance. Throws StartError when
 * the backup is not whole, or newer than this program, or when anything of a database is there.
 */
export async function restoreSqlite(
  from: string,
  { dataDir, file }: { dataDir: string; file: string },
): Promise<Copied> {
  const marker = markerFile(dataDir);
  // A log that was left behind would be taken for a part of the restored database.
  for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`, marker]) {
    if (existsSync(path))
      throw new StartError(`${path} exists: restore into a DATA_DIR without a database, or move it away.`);
  }
  if (!existsSync(from)) throw new StartError(`There is no file ${from}.`);
  for (const directory of [dataDir, dirname(file)]) makeLocalDirectory(directory);
  const { mark, ...copied } = await copy(from, file, { readOnly: true });
  await writeMarker(marker, { id: copied.instanceId, mark });
  return copied;
}

async function copy(
  from: string,
  to: string,
  { readOnly }: { readOnly: boolean },
): Promise<Copied & { readonly mark: number }> {
  const draft = `${to}.partial`;
  makeEmpty(draft);
  try {
    const instance = copyRows(from, draft, { readOnly });
    check(draft);
    await syncPath(draft);
    renameSync(draft, to);
    await syncPath(dirname(to));
    return { ...instance, bytes: statSync(to).size };
  } catch (error) {
    // Full: it only ever writes where the copy goes.
    throw sqliteStartError(error, sqliteCode(error) === 13 ? to : from);
  } finally {
    for (const end of ['', '-wal', '-shm', '-journal', second]) rmSync(`${draft}${end}`, { force: true });
  }
}

/** Ends the name of a copy of a copy. */
const second = '-2';

function makeEmpty(file: string): void {
  try {
    rmSync(file, { force: true });
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    throw new StartError(`${file} cannot be written (${errorMessage(error)}): name another place.`);
  }
}

/** Copies what the database holds, without its free pages. Returns the instance whose it is, and its mark. */
function copyRows(
  from: string,
  to: string,
  { readOnly }: { readOnly: boolean },
): { instanceId: string; mark: number } {
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
    const fact = (key: string) => copied.prepare('select value from meta where key = ?').get(key)?.['value'];
    const instanceId = fact('instance_id');
    if (typeof instanceId !== 'string') throw new StartError(`${from} is not the database of an instance.`);
    // Merging the index frees pages, which a second copy leaves out; `vacuum` alone would need a temporary file.
    if (eraseAllDeleted(copied)) {
      makeEmpty(`${to}${second}`);
      copied.prepare('vacuum into ?').run(`${to}${second}`);
      renameSync(`${to}${second}`, to);
    }
    return { instanceId, mark: Number(fact(markKey) ?? 0) };
  } finally {
    copied.close();
  }
}

/** Throws for a copy that is damaged. Leaves it without a log of its own, so that it is one file. */
function check(file: string): void {
  const copied = new DatabaseSync(file);
  copied.exec('pragma journal_mode = delete');
  copied.close();
  const fault = sqliteFault(file);
  if (fault !== null) throw new StartError(`The database is damaged (${fault}): nothing was copied.`);
}

/**
 * The first fault of a whole file, its indexes and references included; null where there is none. Throws StartError
 * for one that cannot be opened.
 */
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
    if (database === null && explained instanceof StartError) throw explained;
    return errorMessage(error);
  } finally {
    database?.close();
  }
}
