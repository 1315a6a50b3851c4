import { sql, type QueryExecutorProvider } from 'kysely';
import { StartError } from '../rules/failure.ts';
import { migrations } from './migrations/list.ts';
import type { Migration, DialectTypes } from './migrations/types.ts';

/**
 * Brings the schema up to date and returns the names of the steps taken. The caller holds the engine's
 * migration lock and an open transaction. Throws StartError for a database newer than this program.
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

/** Throws StartError for a database, named for the message, that is older or newer than this program. */
export async function requireUpToDate(db: QueryExecutorProvider, name: string): Promise<void> {
  const [pending] = await pendingMigrations(db);
  if (!pending) return;
  throw new StartError(
    `${name} lacks the schema step '${pending.name}': run 'masthead migrate', without READ_ONLY, once this release is to serve it.`,
  );
}

/** Steps that this program has and the database has not; the `migrations` table must exist. Throws StartError. */
async function pendingMigrations(db: QueryExecutorProvider): Promise<readonly Migration[]> {
  const applied = await sql<{ name: string }>`select name from migrations order by name`.execute(db);
  return migrationsAfter(applied.rows.map((row) => row.name));
}

/** Steps that are not among those taken. Throws StartError for steps that only a newer program has. */
export function migrationsAfter(taken: readonly string[]): readonly Migration[] {
  const unknown = taken.findLast((name) => migrations.every((migration) => migration.name !== name));
  if (unknown !== undefined) {
    throw new StartError(
      `The database is newer than this program (it has the schema step '${unknown}'): start the release that wrote it, or a later one.`,
    );
  }
  return migrations.filter((migration) => !taken.includes(migration.name));
}
