import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What an event says beside what it is about: what the operator did, and why. */
export const inboxData: Migration = {
  name: '0025-inbox-data',
  statements: ({ text }) => [sql`alter table inbox add column data ${text}`],
};
