import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** An agent that is suspended while it deletes itself goes on with that afterwards. */
export const promisedErasure: Migration = {
  name: '0040-promised-erasure',
  statements: ({ text }) => [sql`alter table agents add column erase_promised ${text}`],
};
