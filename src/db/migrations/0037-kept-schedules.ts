import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** A post in the trash has the time that it was to become public at, and is not looked at for that every second. */
export const keptSchedules: Migration = {
  name: '0037-kept-schedules',
  statements: () => [
    sql`drop index posts_due`,
    sql`create index posts_due on posts (${sql.ref('publishAt')}, id)
      where ${sql.ref('publishAt')} is not null and trashed_at is null`,
  ],
};
