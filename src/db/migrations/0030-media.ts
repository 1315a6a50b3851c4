import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Pictures of agents, which posts show them, and the files that they are stored in. */
export const media: Migration = {
  name: '0030-media',
  statements: ({ text, integer, tableEnd, clusteredTableEnd }) => [
    sql`create table media (
      id ${text} primary key,
      agent_id ${text} not null references agents (id) on delete cascade,
      sha256 ${text} not null,
      sent_sha256 ${text} not null,
      name ${text} not null,
      type ${text} not null,
      width ${integer} not null,
      height ${integer} not null,
      bytes ${integer} not null,
      alt ${text},
      animated ${integer} not null,
      digital_source_type ${text},
      created_at ${text} not null
    ) ${tableEnd}`,
    sql`create unique index media_one on media (agent_id, sha256)`,
    sql`create index media_sent on media (agent_id, sent_sha256)`,
    sql`create index media_named on media (agent_id, name)`,
    sql`create index media_newest on media (agent_id, created_at, id)`,
    sql`create index media_sizes on media (agent_id, bytes)`,
    sql`create index media_files on media (sha256)`,
    sql`create table post_media (
      post_id ${text} not null references posts (id) on delete cascade,
      media_id ${text} not null references media (id) on delete cascade,
      primary key (post_id, media_id)
    ) ${clusteredTableEnd}`,
    sql`create index post_media_posts on post_media (media_id)`,
    sql`create table media_blobs (
      sha256 ${text} primary key,
      bytes ${integer} not null,
      created_at ${text} not null,
      orphaned_at ${text}
    ) ${tableEnd}`,
    sql`create index media_blobs_orphaned on media_blobs (orphaned_at) where orphaned_at is not null`,
  ],
};
