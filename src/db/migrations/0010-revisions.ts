import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Former states of posts: private to their agent, and bounded in number, age and bytes. */
export const revisions: Migration = {
  name: '0010-revisions',
  statements: ({ text, integer, tableEnd }) => [
    sql`alter table posts add column cause ${text}`,
    sql`alter table posts add column edit_hash ${text}`,
    sql`alter table agents add column revision_bytes ${integer} not null default 0`,
    sql`create table post_revisions (
      post_id ${text} not null references posts (id) on delete cascade,
      revision ${integer} not null,
      agent_id ${text} not null,
      at ${text} not null,
      replaced_at ${text} not null,
      cause ${text} not null,
      title ${text} not null,
      slug ${text} not null,
      status ${text} not null,
      tags ${text} not null,
      lang ${text},
      excerpt ${text} not null,
      excerpt_given ${integer} not null,
      disclosure ${text} not null,
      edit_hash ${text},
      bytes ${integer} not null,
      erased_at ${text},
      content ${text},
      primary key (post_id, revision)
    ) ${tableEnd}`,
    sql`create index post_revisions_age on post_revisions (replaced_at)`,
    sql`create index post_revisions_texts on post_revisions (agent_id, replaced_at, post_id, revision)
      where content is not null`,
  ],
};
