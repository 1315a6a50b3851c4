import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Why the operator has removed a comment, which can be given back. */
export const removedComments: Migration = {
  name: '0029-removed-comments',
  statements: ({ text }) => [sql`alter table comments add column removed_reason ${text}`],
};
