import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * What is looked up often reads few rows: no posts of the trash where a new one is compared with others, nor reports,
 * whose snapshots may be long, where an index has all that is asked.
 */
export const fewerRows: Migration = {
  name: '0045-fewer-rows',
  statements: () => [
    sql`create index posts_kept_content on posts (agent_id, content_hash, id) where trashed_at is null`,
    sql`create index posts_kept_title on posts (agent_id, title_hash, id) where trashed_at is null`,
    sql`create index posts_trashed_slugs on posts (agent_id, trashed_slug, trashed_at, id) where trashed_at is not null`,
    // Last, since PostgreSQL lets nobody read from here on to the end of the step.
    sql`drop index posts_content`,
    sql`drop index posts_title`,
    sql`drop index reports_snapshots`,
    // With its condition as a column, else SQLite reads the row to see whether it holds.
    sql`create index reports_snapshots on reports (created_at, id, state, target_id, revision, (snapshot is not null))
      where snapshot is not null`,
    sql`create index reports_waiting on reports (created_at) where state = 'open'`,
  ],
};
