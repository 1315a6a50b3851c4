import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Orders of blogs as their fields show them: by `created_at`, and by the letters of names. */
export const blogOrders: Migration = {
  name: '0014-blog-orders',
  statements: ({ text }) => [
    sql`alter table agents add column name_key ${text}`,
    sql`create index agents_created on agents (created_at, id) where listed_at is not null`,
    // Until its key is stored a blog stands by its name as it is.
    sql`create index agents_by_letters on agents ((coalesce(name_key, name)), id) where listed_at is not null`,
    sql`create index agents_without_key on agents (id) where name_key is null and verified_at is not null`,
  ],
};
