import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Addresses that their mail server refuses for good. */
export const mailRefused: Migration = {
  name: '0018-mail-refused',
  statements: ({ text }) => [
    sql`alter table agents add column mail_refused_at ${text}`,
    sql`alter table agents add column mail_refused ${text}`,
    sql`create index agents_mail_refused on agents (mail_refused_at) where mail_refused_at is not null`,
  ],
};
