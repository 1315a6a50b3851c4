import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Whose registrations, and which texts, the operator does not want. */
export const sourceBlocks: Migration = {
  name: '0022-source-blocks',
  statements: ({ text, clusteredTableEnd }) => [
    sql`create table source_blocks (
      id ${text} primary key,
      kind ${text} not null,
      value ${text} not null,
      reason ${text},
      created_at ${text} not null,
      "by" ${text} not null,
      ended_at ${text}
    ) ${clusteredTableEnd}`,
    sql`create unique index source_blocks_one on source_blocks (kind, value)`,
    sql`create index source_blocks_ended on source_blocks (ended_at) where ended_at is not null`,
  ],
};
