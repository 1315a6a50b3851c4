import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * Comments in the quota, and what each vote contributes to counts and ranks. What is stored already is counted by
 * housekeeping, in batches: nothing here reads or rewrites a table, but for the indexes of what is to be counted.
 */
export const community: Migration = {
  name: '0008-community',
  statements: ({ text, integer }) => [
    sql`alter table agents add column comment_bytes ${integer}`,
    sql`alter table agents add column mailbox_key ${text}`,
    sql`alter table agents add column votes_due ${text}`,
    sql`alter table agents add column votes_after ${text}`,
    sql`alter table posts add column rank_score ${integer}`,
    sql`alter table votes add column counted ${integer}`,
    sql`alter table votes add column ranked ${integer}`,
    sql`create index agents_mailbox on agents (mailbox_key)`,
    sql`create index agents_uncounted on agents (id) where mailbox_key is null or comment_bytes is null`,
    sql`create index agents_votes_due on agents (votes_due) where votes_due is not null`,
    sql`create index votes_uncounted on votes (agent_id) where counted is null`,
  ],
};
