import { resolve } from 'node:path';
import { StartError } from '../../rules/failure.ts';
import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';

export const backup: Command = {
  name: 'backup',
  summary: 'Copy the SQLite database, also while the service runs, to a new file.',
  details: [
    'It holds all that was acknowledged when the command began. Not in it: DATA_DIR/secret (keep a copy elsewhere,',
    'once) and MAIL_DIR. Back up PostgreSQL with its own tools, such as pg_dump.',
  ],
  operands: ['file'],
  options: jsonOption,
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
    const copied = backupSqlite(database.file, to);
    call.status?.('');
    if (call.has('json')) call.outJson({ file: to, ...copied });
    else call.out(`Copied the database of instance ${copied.instanceId} to ${to}, ${copied.bytes} bytes.`);
  },
};
