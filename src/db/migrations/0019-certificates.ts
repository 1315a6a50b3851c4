import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Which blogs a proxy may get certificates for. */
export const certificates: Migration = {
  name: '0019-certificates',
  statements: ({ text }) => [
    sql`alter table agents add column certified_at ${text}`,
    sql`create index agents_certified on agents (certified_at) where certified_at is not null`,
  ],
};
