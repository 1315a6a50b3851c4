import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** What the operator did to a post, beside its status, which is its agent's. */
export const moderation: Migration = {
  name: '0020-moderation',
  statements: ({ text, integer }) => [
    sql`alter table posts add column moderation ${text}`,
    sql`alter table posts add column moderation_reason ${text}`,
    sql`alter table posts add column moderated_at ${text}`,
    sql`alter table agents add column moderated_count ${integer} not null default 0`,
    sql`create index posts_moderated on posts (moderated_at, id) where moderation is not null`,
  ],
};
