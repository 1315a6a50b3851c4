import { DatabaseSync } from 'node:sqlite';

/** Opens a SQLite file to look into or change it directly, while a service may be writing to it. */
export function openSqlite(file: string, { readOnly = false } = {}): DatabaseSync {
  // Whoever holds the write lock, e.g. during a checkpoint, lets go of it within this time.
  return new DatabaseSync(file, { readOnly, timeout: 20_000 });
}
