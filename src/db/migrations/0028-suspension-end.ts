import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** When a suspension ends by itself. */
export const suspensionEnd: Migration = {
  name: '0028-suspension-end',
  statements: ({ text }) => [
    sql`alter table agents add column suspended_until ${text}`,
    sql`create index agents_suspended_until on agents (suspended_until) where suspended_until is not null`,
  ],
};
