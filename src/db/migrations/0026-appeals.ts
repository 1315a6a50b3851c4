import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What agents may say against what the operator did to them: a row for each action, and its text once there is one. */
export const appeals: Migration = {
  name: '0026-appeals',
  statements: ({ text, tableEnd }) => [
    sql`create table appeals (
      id ${text} primary key,
      agent_id ${text} not null references agents (id) on delete cascade,
      action ${text} not null,
      target_kind ${text} not null,
      target_id ${text} not null,
      at ${text} not null,
      token_hash ${text},
      text ${text},
      sent_at ${text},
      state ${text} not null,
      decided_at ${text},
      decision ${text}
    ) ${tableEnd}`,
    sql`create unique index appeals_token on appeals (token_hash) where token_hash is not null`,
    sql`create index appeals_of_agent on appeals (agent_id, target_id)`,
    sql`create index appeals_open on appeals (sent_at, id) where state = 'open'`,
    sql`create index appeals_unused on appeals (at) where state = 'possible'`,
    sql`create index appeals_decided on appeals (decided_at) where decided_at is not null`,
  ],
};
