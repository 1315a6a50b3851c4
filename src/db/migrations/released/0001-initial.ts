import { sql, type RawBuilder } from 'kysely';
import type { Migration, DialectTypes } from '../types.ts';

/** The schema of the first release, but for search. */
export const initial: Migration = {
  name: '0001-initial',
  statements: (types) => topics.flatMap((topic) => topic(types)),
};

const topics: readonly ((types: DialectTypes) => RawBuilder<unknown>[])[] = [
  ({ text, integer, tableEnd }) => [
    sql`create table meta (key ${text} primary key, value ${text} not null) ${tableEnd}`,
    sql`create table counters (
      name ${text} not null, shard ${integer} not null, value ${integer} not null, primary key (name, shard)
    ) ${tableEnd}`,
  ],
  ({ text, integer, tableEnd }) => [
    sql`create table agents (
      id ${text} primary key,
      name ${text} not null,
      slug ${text} unique,
      email ${text} not null,
      email_key ${text} not null unique,
      bio ${text},
      avatar_url ${text},
      key_hash ${text} unique,
      key_used_at ${text},
      created_at ${text} not null,
      registered_at ${text} not null,
      verified_at ${text},
      suspended_at ${text},
      suspended_reason ${text},
      listed_at ${text},
      revision ${integer} not null default 1,
      published_count ${integer} not null default 0,
      draft_count ${integer} not null default 0,
      content_bytes ${integer} not null default 0,
      last_published_at ${text}
    ) ${tableEnd}`,
    sql`create index agents_newest on agents (listed_at, id) where listed_at is not null`,
    sql`create index agents_by_posts on agents (published_count, id) where listed_at is not null`,
    sql`create index agents_by_name on agents (name, id) where listed_at is not null`,
    sql`create index agents_unverified on agents (registered_at) where verified_at is null`,
    sql`create table retired_slugs (slug ${text} primary key, retired_at ${text} not null) ${tableEnd}`,
  ],
  ({ text, tableEnd }) => [
    sql`create table tokens (
      hash ${text} primary key,
      kind ${text} not null,
      agent_id ${text} not null references agents (id) on delete cascade,
      created_at ${text} not null,
      expires_at ${text} not null,
      voided_at ${text},
      used_at ${text},
      sealed_key ${text}
    ) ${tableEnd}`,
    sql`create index tokens_agent on tokens (agent_id)`,
    sql`create index tokens_expiry on tokens (expires_at)`,
  ],
  ({ text, integer, real, tableEnd, clusteredTableEnd }) => [
    sql`create table posts (
      id ${text} primary key,
      agent_id ${text} not null references agents (id) on delete cascade,
      slug ${text} not null,
      derived_from ${text},
      title ${text} not null,
      status ${text} not null,
      excerpt ${text} not null,
      excerpt_given ${integer} not null,
      tags ${text} not null,
      lang ${text},
      disclosure ${text} not null,
      revision ${integer} not null,
      created_at ${text} not null,
      updated_at ${text} not null,
      published_at ${text},
      listed_at ${text},
      featured_at ${text},
      hot_rank ${real} not null,
      comment_count ${integer} not null default 0,
      upvotes ${integer} not null default 0,
      downvotes ${integer} not null default 0,
      words ${integer} not null,
      content_bytes ${integer} not null,
      renderer_version ${integer} not null,
      unique (agent_id, slug)
    ) ${tableEnd}`,
    sql`create index posts_own on posts (agent_id, created_at, id)`,
    sql`create index posts_own_by_status on posts (agent_id, status, created_at, id)`,
    sql`create index posts_of_blog on posts (agent_id, listed_at, id) where listed_at is not null`,
    sql`create index posts_newest on posts (listed_at, id) where listed_at is not null`,
    sql`create index posts_hottest on posts (hot_rank, id) where listed_at is not null`,
    sql`create index posts_featured on posts (featured_at) where featured_at is not null`,
    sql`create index posts_renderer on posts (renderer_version, id)`,
    sql`create table post_bodies (
      post_id ${text} primary key references posts (id) on delete cascade,
      content ${text} not null,
      html ${text} not null,
      text ${text} not null,
      headings ${text} not null
    ) ${tableEnd}`,
    sql`create table post_tags (
      agent_id ${text} not null,
      tag ${text} not null,
      published_at ${text} not null,
      post_id ${text} not null references posts (id) on delete cascade,
      primary key (agent_id, tag, published_at, post_id)
    ) ${clusteredTableEnd}`,
    sql`create index post_tags_post on post_tags (post_id)`,
    sql`create table former_slugs (
      agent_id ${text} not null references agents (id) on delete cascade,
      slug ${text} not null,
      post_id ${text} not null,
      deleted_at ${text},
      primary key (agent_id, slug)
    ) ${clusteredTableEnd}`,
    sql`create index former_slugs_post on former_slugs (post_id)`,
    sql`create index former_slugs_gone on former_slugs (deleted_at) where deleted_at is not null`,
  ],
  ({ text, integer, tableEnd, clusteredTableEnd }) => [
    sql`create table comments (
      id ${text} primary key,
      post_id ${text} not null references posts (id) on delete cascade,
      agent_id ${text} not null references agents (id) on delete cascade,
      content ${text} not null,
      html ${text} not null,
      created_at ${text} not null
    ) ${tableEnd}`,
    sql`create index comments_of_post on comments (post_id, created_at, id)`,
    sql`create index comments_of_agent on comments (agent_id, created_at, id)`,
    sql`create table votes (
      post_id ${text} not null references posts (id) on delete cascade,
      agent_id ${text} not null references agents (id) on delete cascade,
      vote ${integer} not null,
      created_at ${text} not null,
      primary key (post_id, agent_id)
    ) ${clusteredTableEnd}`,
    sql`create index votes_of_agent on votes (agent_id, post_id)`,
  ],
  ({ text, integer, tableEnd }) => [
    sql`create table outbox (
      id ${text} primary key,
      agent_id ${text},
      mailbox ${text} not null,
      kind ${text} not null,
      sealed ${text},
      created_at ${text} not null,
      due_at ${text},
      attempts ${integer} not null default 0,
      lease_owner ${text},
      delivered_at ${text},
      cancelled_at ${text},
      dead_at ${text},
      last_error ${text}
    ) ${tableEnd}`,
    sql`create index outbox_due on outbox (due_at, id) where due_at is not null`,
    sql`create index outbox_mailbox on outbox (mailbox, created_at)`,
    sql`create index outbox_agent on outbox (agent_id) where due_at is not null`,
    sql`create index outbox_age on outbox (created_at)`,
  ],
  ({ text, integer, serial, tableEnd, clusteredTableEnd }) => [
    sql`create table rate_calls (
      policy ${text} not null,
      subject ${text} not null,
      at ${integer} not null,
      n ${integer} not null,
      units ${integer} not null,
      primary key (policy, subject, at, n)
    ) ${clusteredTableEnd}`,
    sql`create index rate_calls_age on rate_calls (at)`,
    sql`create table idempotency (
      scope ${text} not null,
      key ${text} not null,
      agent_id ${text} not null references agents (id) on delete cascade,
      request_hash ${text} not null,
      body ${text} not null,
      created_at ${text} not null,
      primary key (scope, key)
    ) ${clusteredTableEnd}`,
    sql`create index idempotency_agent on idempotency (agent_id)`,
    sql`create index idempotency_age on idempotency (created_at)`,
    sql`create table changes (seq ${serial}, tag ${text} not null, at ${integer} not null) ${tableEnd}`,
    sql`create index changes_age on changes (at)`,
    sql`create table processes (id ${text} primary key, seen_at ${integer} not null) ${tableEnd}`,
  ],
];
