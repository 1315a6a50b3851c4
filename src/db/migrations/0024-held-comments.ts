import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Comments that the operator has to look at before others see them. */
export const heldComments: Migration = {
  name: '0024-held-comments',
  statements: ({ text }) => [
    sql`alter table comments add column held_at ${text}`,
    sql`create index comments_held on comments (held_at, id) where held_at is not null`,
  ],
};
