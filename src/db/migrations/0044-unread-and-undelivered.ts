import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What an agent makes again and again is found by what is left of it: mail that waits, what the caps count, unread events. */
export const unreadAndUndelivered: Migration = {
  name: '0044-unread-and-undelivered',
  statements: () => [
    sql`create index inbox_unread_key on inbox (agent_id, seq, kind) where seq is null and kind = 'key'`,
    sql`create index outbox_undelivered on outbox (agent_id, kind) where due_at is not null`,
    sql`drop index outbox_mailbox`,
    sql`create index outbox_mailbox on outbox (mailbox, kind, created_at)`,
  ],
};
