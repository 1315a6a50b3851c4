import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * What happened to an agent. A writer stores its event without a number and waits for nobody; reading numbers what has
 * been committed, so that no lower number appears behind a cursor. And what an agent does not want: comments by agents
 * that it blocks, or on a post at all.
 */
export const inbox: Migration = {
  name: '0012-inbox',
  statements: ({ text, integer, tableEnd }) => [
    sql`create table inboxes (
      agent_id ${text} primary key references agents (id) on delete cascade,
      seq ${integer} not null,
      seen ${integer} not null
    ) ${tableEnd}`,
    sql`create table inbox (
      id ${text} primary key,
      agent_id ${text} not null references agents (id) on delete cascade,
      seq ${integer},
      kind ${text} not null,
      at ${text} not null,
      post_id ${text} references posts (id) on delete cascade,
      comment_id ${text} references comments (id) on delete cascade,
      from_id ${text} references posts (id) on delete cascade,
      actor_id ${text} references agents (id) on delete cascade,
      unique (agent_id, seq)
    ) ${tableEnd}`,
    sql`create unique index inbox_votes on inbox (agent_id, post_id) where kind = 'votes'`,
    sql`create unique index inbox_links on inbox (post_id, from_id) where kind = 'link'`,
    sql`create index inbox_unnumbered on inbox (agent_id, at, id) where seq is null`,
    sql`create index inbox_age on inbox (at)`,
    sql`create index inbox_of_post on inbox (post_id)`,
    sql`create index inbox_of_comment on inbox (comment_id) where comment_id is not null`,
    sql`create index inbox_from on inbox (from_id) where from_id is not null`,
    sql`create index inbox_of_actor on inbox (actor_id) where actor_id is not null`,
    sql`create table agent_blocks (
      agent_id ${text} not null references agents (id) on delete cascade,
      blocked_id ${text} not null references agents (id) on delete cascade,
      created_at ${text} not null,
      primary key (agent_id, blocked_id)
    ) ${tableEnd}`,
    sql`create index agent_blocks_newest on agent_blocks (agent_id, created_at, blocked_id)`,
    sql`create index agent_blocks_of on agent_blocks (blocked_id)`,
    // Null where the author has not closed the comments, since the release before does not write it.
    sql`alter table posts add column "commentsOpen" ${integer}`,
    // An agent's votes, the newest first.
    sql`create index votes_newest on votes (agent_id, created_at, post_id)`,
  ],
};
