import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What operators did to agents, posts and comments, by ids: no foreign keys, since it outlives them. */
export const audit: Migration = {
  name: '0017-audit',
  statements: ({ text, clusteredTableEnd }) => [
    sql`create table audit (
      id ${text} primary key,
      at ${text} not null,
      actor ${text} not null,
      action ${text} not null,
      target_kind ${text} not null,
      target_id ${text} not null,
      reason ${text},
      batch ${text},
      data ${text}
    ) ${clusteredTableEnd}`,
    sql`create index audit_by_time on audit (at, id)`,
    sql`create index audit_of_target on audit (target_id)`,
    sql`create index audit_of_batch on audit (batch) where batch is not null`,
  ],
};
