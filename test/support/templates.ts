import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/config.ts';
import { migrate } from '../../src/db/migrate.ts';
import { connect } from '../../src/db/postgres/postgres-server.ts';
import { postgresTypes } from '../../src/db/postgres/postgres-start.ts';
import { openSqlite, sqliteTypes } from '../../src/db/sqlite/sqlite.ts';

/** When the steps of a template ran. */
const began = '2026-01-01T00:00:00.000Z';

let file: Promise<Buffer> | undefined;

/**
 * Puts an SQLite database that has every schema step, and is no instance's yet, where a service of such settings
 * looks for one: it then starts without running the steps.
 */
export async function putSqliteTemplate(env: Readonly<Record<string, string>>): Promise<void> {
  const { database } = loadConfig(env);
  if ('file' in database)
    await writeFile(database.file, await (file ??= makeSqliteTemplate()), { mode: 0o600 });
}

async function makeSqliteTemplate(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'masthead-template-'));
  const path = join(folder, 'masthead.db');
  const { raw, db } = openSqlite(path, { readOnly: false });
  // It is read whole before anything could be lost.
  raw.exec('pragma synchronous = off');
  await migrate(db, sqliteTypes, began);
  raw.close();
  const content = await readFile(path);
  await rm(folder, { recursive: true });
  return content;
}

/** Runs every schema step in an empty PostgreSQL database, which is then no instance's yet. */
export async function migratePostgres(url: string): Promise<void> {
  const { session, close } = await connect(url);
  await session.run('begin');
  await migrate(session.db, postgresTypes, began);
  await session.commit();
  await close();
}
