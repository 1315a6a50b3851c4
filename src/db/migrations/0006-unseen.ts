import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What readers do not see of a post or comment, and which renderer made a comment; null: the release before did. */
export const unseen: Migration = {
  name: '0006-unseen',
  statements: ({ text, integer }) => [
    sql`alter table post_bodies add column unseen ${text}`,
    sql`alter table comments add column unseen ${text}`,
    sql`alter table comments add column renderer_version ${integer}`,
  ],
};
