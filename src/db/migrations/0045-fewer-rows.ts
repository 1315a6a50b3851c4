import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What a new post is compared with is no post of the trash, and that is looked up by slug. */
export const fewerRows: Migration = {
  name: '0045-fewer-rows',
  statements: () => [
    sql`drop index posts_content`,
    sql`create index posts_kept_content on posts (agent_id, content_hash, id) where trashed_at is null`,
    sql`drop index posts_title`,
    sql`create index posts_kept_title on posts (agent_id, title_hash, id) where trashed_at is null`,
    sql`create index posts_trashed_slugs on posts (agent_id, trashed_slug, trashed_at, id) where trashed_at is not null`,
  ],
};
