import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Full-text search over published posts. */
export const search: Migration = {
  name: '0002-search',
  async up(db, { text, serial, tableEnd, searchTables }) {
    await sql`create table search_docs (
      doc ${serial},
      post_id ${text} not null unique references posts (id) on delete cascade,
      digest ${text} not null
    ) ${tableEnd}`.execute(db);
    for (const statement of searchTables) await statement.execute(db);
  },
};
