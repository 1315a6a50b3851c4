import { sql } from 'kysely';
import type { Migration } from '../types.ts';

/** Exports of the last day: one of an agent runs at a time, and some are allowed in 24 hours. */
export const exports: Migration = {
  name: '0005-exports',
  statements: ({ text, integer, tableEnd }) => [
    sql`create table exports (
      id ${text} primary key,
      agent_id ${text} not null references agents (id) on delete cascade,
      began_at ${integer} not null,
      lease_until ${integer} not null
    ) ${tableEnd}`,
    sql`create index exports_agent on exports (agent_id, began_at)`,
    sql`create index exports_age on exports (began_at)`,
  ],
};
