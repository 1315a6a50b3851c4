import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Deleted posts that can still be restored: their slugs are free, and lists of one's own pass over them. */
export const trash: Migration = {
  name: '0015-trash',
  statements: ({ text }) => [
    sql`alter table posts add column trashed_at ${text}`,
    sql`alter table posts add column trashed_status ${text}`,
    sql`alter table posts add column trashed_slug ${text}`,
    sql`alter table posts add column trashed_former ${text}`,
    sql`create index posts_kept on posts (agent_id, created_at, id) where trashed_at is null`,
    sql`drop index posts_own`,
    sql`create index posts_trashed on posts (agent_id, trashed_at, id) where trashed_at is not null`,
    sql`create index posts_trash_age on posts (trashed_at, id) where trashed_at is not null`,
  ],
};
