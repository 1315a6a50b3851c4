import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Comments of an agent that is hidden, or shown again, leave the counts of posts or come back in parts. */
export const commentsInParts: Migration = {
  name: '0043-comments-in-parts',
  statements: ({ text }) => [sql`alter table agents add column comments_after ${text}`],
};
