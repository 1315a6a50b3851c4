import { sql, type QueryExecutorProvider } from 'kysely';
import type { Log } from '../platform/log.ts';
import { StartError } from '../rules/failure.ts';
import { migrations } from './migrations/list.ts';
import type { Migration, DialectTypes } from './migrations/types.ts';

/** What a start may do to a database. */
export type PrepareOptions = {
  /** Refuse to create: a database without our tables is an error. */
  readonly existing: boolean;
  /** Create the schema or run pending migrations; else change nothing, and refuse a schema that is out of date. */
  readonly migrate: boolean;
  /** ISO time for what is created. */
  readonly now: string;
  readonly log: Log;
};

/**
 * Runs pending migrations and returns their names. The caller holds the engine's migration lock and an open
 * transaction. Throws StartError for a database newer than this program.
 */
export async function migrate(
  db: QueryExecutorProvider,
  types: DialectTypes,
  now: string,
): Promise<string[]> {
  await sql`create table if not exists migrations (name ${types.text} primary key, applied_at ${types.text} not null) ${types.tableEnd}`.execute(
    db,
  );
  const pending = await pendingMigrations(db);
  for (const migration of pending) {
    for (const statement of migration.statements(types)) await statement.execute(db);
    await sql`insert into migrations (name, applied_at) values (${migration.name}, ${now})`.execute(db);
  }
  return pending.map((migration) => migration.name);
}

/** Throws StartError for a database, called `name` in the message, that is older or newer than this program. */
export async function requireUpToDate(db: QueryExecutorProvider, name: string): Promise<void> {
  const [pending] = await pendingMigrations(db);
  if (!pending) return;
  throw new StartError(
    `${name} lacks the schema step '${pending.name}': run 'masthead migrate', without READ_ONLY, once this release is to serve it.`,
    { mend: 'masthead migrate --existing' },
  );
}

/** Migrations that the database lacks; its `migrations` table must exist. Throws StartError. */
async function pendingMigrations(db: QueryExecutorProvider): Promise<readonly Migration[]> {
  const applied = await sql<{ name: string }>`select name from migrations order by name`.execute(db);
  return migrationsAfter(applied.rows.map((row) => row.name));
}

/** Migrations that are not among those that ran. Throws StartError for any that only a newer program has. */
export function migrationsAfter(taken: readonly string[]): readonly Migration[] {
  const unknown = taken.findLast((name) => migrations.every((migration) => migration.name !== name));
  if (unknown !== undefined) {
    throw new StartError(
      `The database is newer than this program (it has the schema step '${unknown}'): start the release that wrote it, or a later one.`,
      { mend: 'npm install --global ./masthead-*.tgz && systemctl restart masthead' },
    );
  }
  return migrations.filter((migration) => !taken.includes(migration.name));
}
