import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Blogs by the first letters of their names: as many as a cursor has room for. */
export const nameOrder: Migration = {
  name: '0036-name-order',
  statements: () => [
    sql`drop index agents_by_letters`,
    sql`create index agents_by_letters on agents ((substr(coalesce(name_key, name), 1, 80)), id) where listed_at is not null`,
  ],
};
