import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** When drafts become public by themselves, and which links to previews of them are void. */
export const schedule: Migration = {
  name: '0027-schedule',
  statements: ({ text, integer }) => [
    sql`alter table posts add column ${sql.ref('publishAt')} ${text}`,
    sql`alter table posts add column preview_epoch ${integer} not null default 0`,
    sql`create index posts_due on posts (${sql.ref('publishAt')}, id) where ${sql.ref('publishAt')} is not null`,
  ],
};
