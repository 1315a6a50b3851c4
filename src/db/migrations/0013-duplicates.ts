import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** By what duplicates among an agent's posts are found. Housekeeping fills it in for posts that are stored already. */
export const duplicates: Migration = {
  name: '0013-duplicates',
  statements: ({ text }) => [
    sql`alter table posts add column content_hash ${text}`,
    sql`alter table posts add column title_hash ${text}`,
    sql`create index posts_content on posts (agent_id, content_hash, id)`,
    sql`create index posts_title on posts (agent_id, title_hash, id)`,
    sql`create index posts_unhashed on posts (id) where content_hash is null`,
  ],
};
