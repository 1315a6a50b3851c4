import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Everyone's posts of one tag, in the order of their publication. */
export const tags: Migration = {
  name: '0009-tags',
  statements: () => [sql`create index post_tags_newest on post_tags (tag, published_at, post_id)`],
};
