import { sql } from 'kysely';
import type { Migration } from '../types.ts';

/**
 * Drops personal data that is not needed: unkeyed hashes of mailboxes, and addresses of clients. Messages that are
 * still waiting stay; the caps on mail no longer count them.
 */
export const erasure: Migration = {
  name: '0004-erasure',
  statements: ({ searchErasure, rewritten }) => [
    sql`delete from outbox where due_at is null`,
    sql`update outbox set mailbox = ''`,
    sql`delete from rate_calls where policy in ('register', 'anonymous')`,
    sql`delete from idempotency where scope like '% register'`,
    // No longer partial: rows of any state are deleted with their agent.
    sql`drop index outbox_agent`,
    sql`create index outbox_agent on outbox (agent_id)`,
    ...searchErasure,
    ...rewritten,
  ],
};
