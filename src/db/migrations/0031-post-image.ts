import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** The picture that stands for a post. */
export const postImage: Migration = {
  name: '0031-post-image',
  statements: ({ text }) => [sql`alter table posts add column image ${text}`],
};
