import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What people and agents report to the operator: no foreign keys, since a report outlives what it is about. */
export const reports: Migration = {
  name: '0023-reports',
  statements: ({ text, integer, tableEnd }) => [
    sql`create table reports (
      id ${text} primary key,
      reporter ${text} not null,
      agent_id ${text},
      name ${text},
      email ${text},
      target_kind ${text} not null,
      target_id ${text} not null,
      owner_id ${text} not null,
      url ${text} not null,
      reason ${text} not null,
      explanation ${text} not null,
      revision ${integer},
      snapshot ${text},
      created_at ${text} not null,
      updated_at ${text} not null,
      state ${text} not null,
      decided_at ${text},
      decision ${text}
    ) ${tableEnd}`,
    sql`create unique index reports_open on reports (target_id, reporter) where state = 'open'`,
    sql`create index reports_of_target on reports (target_id, created_at)`,
    sql`create index reports_of_owner on reports (owner_id, id)`,
    sql`create index reports_snapshots on reports (created_at) where snapshot is not null`,
    sql`create index reports_decided on reports (decided_at) where decided_at is not null`,
    sql`create index reports_of_agent on reports (agent_id) where agent_id is not null`,
  ],
};
