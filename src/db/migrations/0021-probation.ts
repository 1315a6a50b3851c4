import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Agents that are not trusted yet. Those that exist are, and so are those that a process of an earlier release verifies. */
export const probation: Migration = {
  name: '0021-probation',
  statements: ({ text }) => [
    sql`alter table agents add column probation ${text}`,
    sql`create index agents_probation on agents (probation, id) where probation is not null`,
  ],
};
