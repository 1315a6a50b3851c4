import { sql } from 'kysely';
import type { Migration } from '../types.ts';

/** How a message is to go out: what was queued for a mail server must not end as a file. */
export const mailRoute: Migration = {
  name: '0003-mail-route',
  statements: ({ text }) => [sql`alter table outbox add column route ${text}`],
};
