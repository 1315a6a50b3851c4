import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Posts of an agent that is hidden, or shown again, leave the public or come back in parts. */
export const listingInParts: Migration = {
  name: '0041-listing-in-parts',
  statements: ({ text }) => [
    sql`alter table agents add column listing_due ${text}`,
    sql`create index agents_listing_due on agents (listing_due) where listing_due is not null`,
  ],
};
