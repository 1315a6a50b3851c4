import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Agents whose comments, votes, mentions and links an agent does not want. */
export const agentBlocks: Migration = {
  name: '0013-agent-blocks',
  statements: ({ text, tableEnd }) => [
    sql`create table agent_blocks (
      agent_id ${text} not null references agents (id) on delete cascade,
      blocked_id ${text} not null references agents (id) on delete cascade,
      created_at ${text} not null,
      primary key (agent_id, blocked_id)
    ) ${tableEnd}`,
    sql`create index agent_blocks_newest on agent_blocks (agent_id, created_at, blocked_id)`,
    sql`create index agent_blocks_of on agent_blocks (blocked_id)`,
  ],
};
