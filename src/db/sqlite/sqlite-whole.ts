import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { sql } from 'kysely';
import { StartError } from '../../rules/failure.ts';
import { openSqlite, sqliteStartError, sqliteTypes } from './sqlite.ts';
import { makeLocalDirectory } from './sqlite-file.ts';
import { sqliteSearchIndex } from './sqlite-full-text.ts';
import type { WholeDatabase } from '../whole.ts';

/** Opens a file, or creates it where `create` allows. Throws StartError. */
export function openWholeSqlite(file: string, { create }: { create: boolean }): WholeDatabase {
  if (!create && !existsSync(file)) throw new StartError(`There is no database at ${file}.`);
  makeLocalDirectory(dirname(file));
  const { raw, db } = openSqlite(file, { readOnly: false });
  const begin = async () => {
    try {
      raw.exec('begin immediate');
    } catch (error) {
      throw sqliteStartError(error, file);
    }
  };
  return {
    description: `SQLite ${file}`,
    db,
    types: sqliteTypes,
    searchIndex: sqliteSearchIndex,
    begin,
    // Its write lock keeps all others out.
    freeze: begin,
    commit: async () => raw.exec('commit'),
    async rollback() {
      if (raw.isTransaction) raw.exec('rollback');
    },
    async hasTables() {
      const { rows } = await sql`select name from sqlite_schema where name = 'migrations'`.execute(db);
      return rows.length > 0;
    },
    settle: async () => undefined,
    close: async () => raw.close(),
  };
}
