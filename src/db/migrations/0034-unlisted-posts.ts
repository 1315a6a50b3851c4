import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** The few posts with a search entry that are not shown: each match of a search is looked up among them. */
export const unlistedPosts: Migration = {
  name: '0034-unlisted-posts',
  statements: () => [
    sql`create index posts_unlisted on posts (id) where listed_at is null and published_at is not null`,
  ],
};
