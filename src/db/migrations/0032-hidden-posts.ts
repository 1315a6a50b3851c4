import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** An agent's hidden posts by their content, which every new post is compared with. */
export const hiddenPosts: Migration = {
  name: '0032-hidden-posts',
  statements: () => [
    sql`create index posts_hidden on posts (agent_id, content_hash, id) where moderation = 'hidden'`,
  ],
};
