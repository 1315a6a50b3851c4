import type { DatabaseConfig } from '../config/config.ts';
import type { WholeDatabase } from '../db/whole.ts';
import type { Log } from '../platform/log.ts';
import { tableNames } from '../services/upkeep/transfer.ts';

/** Opens a database to read or write all of it; makes an SQLite file where told to. Throws StartError. */
export async function openWhole(
  database: DatabaseConfig,
  { create, log }: { create: boolean; log: Log },
): Promise<WholeDatabase> {
  if ('file' in database) {
    const { openWholeSqlite } = await import('../db/sqlite/sqlite-whole.ts');
    return openWholeSqlite(database.file, { create });
  }
  const { openWholePostgres } = await import('../db/postgres/postgres-whole.ts');
  // A pooler between would not keep a transaction that lasts as long as a copy.
  const urls = database.directUrl === null ? database.urls : [database.directUrl];
  return openWholePostgres(urls, tableNames, log);
}
