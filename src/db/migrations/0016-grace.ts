import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Agents whose deletion is under way: to a release that does not know of it they are suspended. */
export const grace: Migration = {
  name: '0016-grace',
  statements: ({ text }) => [
    sql`alter table agents add column erase_at ${text}`,
    sql`alter table agents add column undo_hash ${text}`,
    sql`create index agents_erasure on agents (erase_at) where erase_at is not null`,
    sql`create unique index agents_undo on agents (undo_hash) where undo_hash is not null`,
  ],
};
