import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from '../../../client/src/terminal/command.ts';
import type { Config, DatabaseConfig } from '../../config/config.ts';
import { StartError } from '../../rules/failure.ts';
import { createLog } from '../../platform/log.ts';

export const backup: Command = {
  name: 'backup',
  summary:
    'Copy the SQLite database, also while the service runs, to a new file, or into a folder of backups.',
  details: [
    'The copy holds all that was acknowledged when the command began, but neither DATA_DIR/secret (keep a copy',
    'elsewhere, once) nor MAIL_DIR, nor the files of pictures: copy MEDIA_DIR beside it. Back up PostgreSQL with its own',
    'tools, such as pg_dump.',
    'With --keep 7 the path is a folder: the backup is named by its time, with its SHA-256 beside it, and once it is',
    'complete all but the newest 7 of this instance are removed. A run that fails removes none.',
  ],
  operands: ['path'],
  options: {
    keep: { meaning: 'How many backups the folder is to hold.', value: 'number', maximum: 10_000 },
  },
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { backupInto, countPictures, noteBackup } = await import('../../db/sqlite/sqlite-backups.ts');
    const { backupSqlite } = await import('../../db/sqlite/sqlite-copy.ts');
    const { database, media } = loadConfig(call.env);
    const file = sqliteFile(database);
    const keep = call.value('keep');
    const path = resolve(call.operand('path'));
    call.status?.(`Copying ${file} …`);
    const now = Date.now();
    const copied =
      keep === null
        ? { file: path, removed: [], ...(await backupSqlite(file, path)) }
        : await backupInto(file, path, { keep: Number(keep), now });
    call.status?.('');
    const isNoted = noteBackup(file, new Date(now).toISOString());
    const { instanceId, bytes, removed } = copied;
    const made = `Copied the database of instance ${instanceId} to ${copied.file}, ${bytes} bytes.`;
    const pictures = countPictures(copied.file);
    const beside =
      pictures === 0
        ? ''
        : ` It knows ${pictures} pictures, whose files are not in it: copy MEDIA_DIR (${media.dir}) beside it.`;
    const text = `${made}${removed.length === 0 ? '' : ` Removed ${removed.length} older.`}${beside}`;
    const note =
      "The database could not note that it was backed up (it is locked, full or read-only): 'masthead doctor' will not know.";
    call.result({ ...copied, pictures }, text, isNoted ? [] : [note]);
  },
};

function sqliteFile(database: DatabaseConfig): string {
  if ('file' in database) return database.file;
  throw new StartError(
    'The database is PostgreSQL: back it up with its own tools, e.g. pg_dump --format=custom.',
  );
}

export const verifyBackup: Command = {
  name: 'verify-backup',
  summary: 'Restore a backup to a scratch folder, and try whether all of it is there and can be served.',
  details: [
    'Takes a file, or a folder of backups, of which it takes the newest. Its checksum, its structure, every stored count',
    'and up to 100 of its pages are examined. The scratch folder is made below TMPDIR, needs the size of the backup, and is',
    'removed, also after Ctrl-C. Of the service nothing is touched, but what was found in a folder is noted for doctor and metrics.',
    'Pictures are held against their files in MEDIA_DIR, which may name a copy of that folder.',
    'Of PostgreSQL: restore the dump into an empty database, and give the address of that one (postgres://…), which is',
    'only read. The exit code is 1 when anything is wrong.',
  ],
  operands: ['backup'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { NoBackup, verifyFile, verifyPostgres } = await import('../verify-backup.ts');
    const given = call.operand('backup');
    const config = loadConfig(call.env);
    // How the scratch database is set up, such as without fsync, is of no matter.
    const log = createLog('error', (line) => call.err(line.trimEnd()));
    const options = { log, now: Date.now(), status: call.status ?? (() => undefined) };
    const isAddress = /^postgres(?:ql)?:\/\//i.test(given);
    const verified = isAddress
      ? await verifyPostgres(config, given, options)
      : await verifyFile(config, resolve(given), options).catch(async (error: unknown) => {
          if (error instanceof StartError && !(error instanceof NoBackup))
            await noteCheck(config, resolve(given), error.message);
          throw error;
        });
    if (!isAddress) await noteCheck(config, resolve(given), verified.faults[0] ?? null);
    const { faults, stored, pictures, pages } = verified;
    const what = `${stored.agents} agents, ${stored.posts} posts and ${stored.comments} comments`;
    const files = pictures === 0 ? '' : `, ${pictures} pictures have their files in ${config.media.dir}`;
    if (faults.length === 0)
      return call.result(
        verified,
        `${verified.backup} is whole: ${what}, every count is right${files}, ${pages} pages open.`,
      );
    call.result(verified, [`${verified.backup} (${what}):`, ...faults].join('\n'), [], 'backup_faulty');
    return 1;
  },
};

/** Notes in the database of the service what was found in its folder of backups. */
async function noteCheck({ database }: Config, folder: string, fault: string | null): Promise<void> {
  if (!('file' in database) || !existsSync(database.file)) return;
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const { noteBackupCheck } = await import('../../db/sqlite/sqlite-backups.ts');
  noteBackupCheck(database.file, { at: new Date().toISOString(), folder, fault });
}

export const restore: Command = {
  name: 'restore',
  summary: 'Put a backup into a DATA_DIR that has no database.',
  details: [
    'Put the secret back first, as DATA_DIR/secret or SECRET: without it the service does not start, and mail that was',
    'waiting when the backup was made cannot be read. If it is lost: masthead adopt-secret. API keys that were replaced',
    'since the backup work again, and later ones do not.',
  ],
  operands: ['file'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { restoreSqlite } = await import('../../db/sqlite/sqlite-copy.ts');
    const { database, dataDir, secret } = loadConfig(call.env);
    if (!('file' in database))
      throw new StartError('DATABASE_URL names PostgreSQL: restore it with its own tools, e.g. pg_restore.');
    const { file } = database;
    const from = resolve(call.operand('file'));
    call.status?.(`Copying ${from} …`);
    const copied = await restoreSqlite(from, { dataDir, file });
    call.status?.('');
    const hasSecret = secret !== null || existsSync(join(dataDir, 'secret'));
    const note =
      "There is no secret: put it back before a start, or, if it is lost for good, run 'masthead adopt-secret'.";
    call.result(
      { file, ...copied, hasSecret },
      `Restored the database of instance ${copied.instanceId} to ${file}.`,
      hasSecret ? [] : [note],
    );
  },
};
