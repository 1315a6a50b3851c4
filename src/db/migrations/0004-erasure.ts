import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * Drops personal data that is not needed: unkeyed hashes of mailboxes, and addresses of clients. Messages that still
 * wait are kept; the caps on mail no longer count them.
 */
export const erasure: Migration = {
  name: '0004-erasure',
  async up(db, { searchErasure, rewritten }) {
    await sql`delete from outbox where due_at is null`.execute(db);
    await sql`update outbox set mailbox = ''`.execute(db);
    await sql`delete from rate_calls where policy in ('register', 'anonymous')`.execute(db);
    await sql`delete from idempotency where scope like '% register'`.execute(db);
    // Of all rows, since those of an agent go with it.
    await sql`drop index outbox_agent`.execute(db);
    await sql`create index outbox_agent on outbox (agent_id)`.execute(db);
    for (const statement of [...searchErasure, ...rewritten]) await statement.execute(db);
  },
};
