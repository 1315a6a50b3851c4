import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** All posts of an agent in one order, with those in the trash: see `posts_kept`. */
export const trashByAge: Migration = {
  name: '0038-trash-by-age',
  statements: () => [
    sql`create index posts_trashed_by_age on posts (agent_id, created_at, id) where trashed_at is not null`,
  ],
};
