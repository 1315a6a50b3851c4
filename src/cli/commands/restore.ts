import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StartError } from '../../rules/failure.ts';
import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';

export const restore: Command = {
  name: 'restore',
  summary: 'Put a backup into a DATA_DIR that has no database.',
  details: [
    'Put the secret back first, as DATA_DIR/secret or SECRET: the service does not start without it, and mail that',
    'waited when the backup was made opens with it alone. If it is lost: masthead adopt-secret. API keys that were',
    'replaced since then work again, and later ones do not.',
  ],
  operands: ['file'],
  options: jsonOption,
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
    if (call.has('json')) return call.outJson({ file, ...copied, hasSecret });
    call.out(`Restored the database of instance ${copied.instanceId} to ${file}.`);
    if (!hasSecret)
      call.err(
        "There is no secret: put it back before a start, or, if it is lost for good, run 'masthead adopt-secret'.",
      );
  },
};
