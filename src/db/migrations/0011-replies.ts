import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * Comments that answer others: `parent_id`, and `thread_id` of the first of them. No foreign key, since a release that
 * knows neither deletes comments that have answers. Without an author a comment is blank, and holds its answers.
 */
export const replies: Migration = {
  name: '0011-replies',
  statements: ({ text, integer, tableEnd, altersColumns }) => [
    ...(altersColumns
      ? [
          sql`alter table comments alter column agent_id drop not null`,
          sql`alter table comments add column parent_id ${text}`,
          sql`alter table comments add column thread_id ${text}`,
          sql`alter table comments add column edited_at ${text}`,
        ]
      : [
          sql`create table comments_copied (
            id ${text} primary key,
            post_id ${text} not null references posts (id) on delete cascade,
            agent_id ${text} references agents (id) on delete cascade,
            content ${text} not null,
            html ${text} not null,
            created_at ${text} not null,
            unseen ${text},
            renderer_version ${integer},
            parent_id ${text},
            thread_id ${text},
            edited_at ${text}
          ) ${tableEnd}`,
          sql`insert into comments_copied
            select id, post_id, agent_id, content, html, created_at, unseen, renderer_version, null, null, null
            from comments`,
          sql`drop table comments`,
          sql`alter table comments_copied rename to comments`,
          sql`create index comments_of_post on comments (post_id, created_at, id)`,
          sql`create index comments_of_agent on comments (agent_id, created_at, id)`,
        ]),
    sql`create index comments_of_thread on comments (post_id, coalesce(thread_id, id), id)`,
    sql`create index comments_answering on comments (parent_id) where parent_id is not null`,
  ],
};
