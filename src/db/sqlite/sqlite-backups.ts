import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { checksumFile, sha256Of, writeChecksum } from '../../platform/checksum.ts';
import { hour } from '../../platform/durations.ts';
import { syncPath } from '../../platform/private-file.ts';
import { StartError, errorMessage } from '../../rules/failure.ts';
import { readMeta, sqliteCode } from './sqlite.ts';
import { backupSqlite, type Copied } from './sqlite-copy.ts';

/** Key in `meta`: when the last backup was completed, as a timestamp. */
export const lastBackupFact = 'last_backup_at';

/** Key in `meta`: what the last check of a folder of backups found, as JSON of {@link BackupCheck}. */
export const backupCheckFact = 'backup_check';

/** What `verify-backup` found in the newest backup of a folder; `fault` is null where it is whole. */
export type BackupCheck = { readonly at: string; readonly folder: string; readonly fault: string | null };

/** A backup in a folder of backups, and what was removed for it. */
export type NightlyBackup = Copied & {
  readonly file: string;
  readonly sha256: string;
  readonly removed: readonly string[];
};

/**
 * Makes a backup in a folder, named by its time, with its checksum beside it; then removes all but the newest `keep`
 * of this instance, and what an interrupted run has left. Throws StartError, and has then removed no backup.
 */
export async function backupInto(
  file: string,
  folder: string,
  { keep, now }: { readonly keep: number; readonly now: number },
): Promise<NightlyBackup> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new StartError(
      `There is no folder ${folder}: make it, or mount its disk, then repeat the command.`,
    );
  const lock = lockFolder(folder);
  try {
    // What has no name of its own yet is left by a run that was cut off: no other runs now.
    for (const name of readdirSync(folder)) if (unfinished(folder, name)) rmSync(join(folder, name));
    let at = now;
    while (existsSync(join(folder, nameAt(at)))) at += 1_000;
    const to = join(folder, nameAt(at));
    let sha256 = '';
    const copied = await backupSqlite(file, to, {
      async finish(draft) {
        sha256 = await sha256Of(draft);
        await writeChecksum(to, sha256);
      },
    });
    // One that cannot be read is nobody's to remove.
    const older = listBackups(folder, at).filter(
      (path) => path !== to && instanceIn(path) === copied.instanceId,
    );
    const removed = older.slice(keep - 1);
    // The checksum last: a backup without one would look as if it never had any.
    for (const path of removed) for (const each of [path, checksumFile(path)]) rmSync(each, { force: true });
    await syncPath(folder);
    return { ...copied, file: to, sha256, removed };
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `The backup in ${folder} failed (${errorMessage(error)}): see that the folder is writable and its disk not full.`,
    );
  } finally {
    lock.close();
  }
}

/** Differences of clocks that are nothing to speak of, ms. */
const clocksDiffer = hour;

/**
 * The backups of a folder that are complete, newest first; those of a later time than `now` last, since they were made while
 * the clock was ahead, and nobody knows when. Throws errors of node:fs.
 */
export function listBackups(folder: string, now: number): string[] {
  const last = nameAt(now + clocksDiffer);
  const names = readdirSync(folder).filter((name) => backupName.test(name));
  const newestFirst = names.toSorted().toReversed();
  return [...newestFirst.filter((name) => name <= last), ...newestFirst.filter((name) => name > last)].map(
    (name) => join(folder, name),
  );
}

/** Notes in the database when its last backup was completed. False where that cannot be stored: the backup is whole. */
export function noteBackup(file: string, at: string): boolean {
  return note(file, lastBackupFact, at);
}

/** Notes in the database what the check of its backups found. False where that cannot be stored. */
export function noteBackupCheck(file: string, check: BackupCheck): boolean {
  return note(file, backupCheckFact, JSON.stringify(check));
}

function note(file: string, key: string, value: string): boolean {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(file, { timeout: 5_000 });
    database
      .prepare(
        `insert into meta (key, value) values (?, ?)
        on conflict (key) do update set value = excluded.value`,
      )
      .run(key, value);
    return true;
  } catch (error) {
    if (sqliteCode(error) === null) throw error;
    return false;
  } finally {
    database?.close();
  }
}

const backupName = /^masthead-\d{8}T\d{6}Z\.db$/;

function nameAt(at: number): string {
  return `masthead-${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.db`;
}

function unfinished(folder: string, name: string): boolean {
  const [, backup, end] = /^\.?(masthead-\d{8}T\d{6}Z\.db)(\..+)$/.exec(name) ?? [];
  if (backup === undefined || end === undefined) return false;
  return end.startsWith('.partial') || (end.startsWith('.sha256') && !existsSync(join(folder, backup)));
}

/** The instance that a database is of, such as a backup, or null where it cannot be read. */
export function instanceIn(path: string): string | null {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, { readOnly: true });
    return readMeta(database, 'instance_id') ?? null;
  } catch {
    return null;
  } finally {
    database?.close();
  }
}

/** How many pictures a backup knows; none in one of a release that had none. */
export function countPictures(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(database.prepare('select count(*) as n from media').get()?.['n']);
  } catch (error) {
    if (sqliteCode(error) === null) throw error;
    return 0;
  } finally {
    database.close();
  }
}

/** Keeps two runs out of one folder. SQLite's lock is used, since the system gives it up with the process. */
function lockFolder(folder: string): DatabaseSync {
  const path = join(folder, '.masthead-backup.lock');
  let lock: DatabaseSync | null = null;
  try {
    lock = new DatabaseSync(path, { timeout: 0 });
    lock.exec('pragma journal_mode = memory; begin exclusive');
    return lock;
  } catch (error) {
    lock?.close();
    throw new StartError(
      sqliteCode(error) === 5
        ? `Another backup into ${folder} is running: wait until it is done.`
        : `The folder ${folder} cannot be written (${errorMessage(error)}): give it to the user of the service.`,
    );
  }
}
