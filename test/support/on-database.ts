import type { Context } from '../../src/context.ts';
import { query } from './postgres.ts';
import { openSqlite } from './sqlite-file.ts';

/** Runs a statement on the database of a service, past the service. */
export async function onDatabase(
  { config: { database } }: Pick<Context, 'config'>,
  statement: string,
): Promise<void> {
  if (database.engine === 'postgres') return void (await query(database.urls[0] ?? '', statement));
  const file = openSqlite(database.file);
  file.exec(statement);
  file.close();
}
