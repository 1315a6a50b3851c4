import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Posts show pictures by name, also those that are uploaded later; and whose deleted pictures are still on the disk. */
export const pictureNames: Migration = {
  name: '0035-picture-names',
  statements: ({ text, clusteredTableEnd }) => [
    sql`alter table post_media rename to post_media_before`,
    sql`create table post_media (
      post_id ${text} not null references posts (id) on delete cascade,
      name ${text} not null,
      agent_id ${text} not null,
      primary key (post_id, name)
    ) ${clusteredTableEnd}`,
    sql`create index post_media_named on post_media (agent_id, name)`,
    sql`insert into post_media (post_id, name, agent_id)
      select post_id, name, agent_id from post_media_before join media on id = media_id`,
    sql`drop table post_media_before`,
    sql`alter table media_blobs add column orphaned_by ${text}`,
    sql`create index media_blobs_orphans on media_blobs (orphaned_by, bytes) where orphaned_by is not null`,
  ],
};
