import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Whether a post takes comments: 0 where its author has closed them, else null. */
export const commentsOpen: Migration = {
  name: '0014-comments-open',
  statements: ({ integer }) => [sql`alter table posts add column "commentsOpen" ${integer}`],
};
