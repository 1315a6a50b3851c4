import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from '../../../client/src/terminal/command.ts';
import { StartError } from '../../rules/failure.ts';

export const backup: Command = {
  name: 'backup',
  summary: 'Copy the SQLite database, also while the service runs, to a new file.',
  details: [
    'The copy holds all that was acknowledged when the command began, but neither DATA_DIR/secret (keep a copy',
    'elsewhere, once) nor MAIL_DIR. Back up PostgreSQL with its own tools, such as pg_dump.',
  ],
  operands: ['file'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { backupSqlite } = await import('../../db/sqlite/sqlite-copy.ts');
    const { database } = loadConfig(call.env);
    if (!('file' in database))
      throw new StartError(
        'The database is PostgreSQL: back it up with its own tools, e.g. pg_dump --format=custom.',
      );
    const to = resolve(call.operand('file'));
    call.status?.(`Copying ${database.file} …`);
    const copied = await backupSqlite(database.file, to);
    call.status?.('');
    call.result(
      { file: to, ...copied },
      `Copied the database of instance ${copied.instanceId} to ${to}, ${copied.bytes} bytes.`,
    );
  },
};

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
