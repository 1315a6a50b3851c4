import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What is counted of agents is counted once they are verified: those that nobody has verified are not looked at. */
export const verifiedMailboxes: Migration = {
  name: '0046-verified-mailboxes',
  statements: () => [
    sql`drop index agents_uncounted`,
    sql`create index agents_uncounted on agents (id)
      where verified_at is not null and (mailbox_key is null or comment_bytes is null)`,
  ],
};
