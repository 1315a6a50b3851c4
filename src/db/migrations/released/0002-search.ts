import { sql } from 'kysely';
import type { Migration } from '../types.ts';

/** Full-text search over published posts. */
export const search: Migration = {
  name: '0002-search',
  statements: ({ text, serial, tableEnd, searchTables }) => [
    sql`create table search_docs (
      doc ${serial},
      post_id ${text} not null unique references posts (id) on delete cascade,
      digest ${text} not null
    ) ${tableEnd}`,
    ...searchTables,
  ],
};
