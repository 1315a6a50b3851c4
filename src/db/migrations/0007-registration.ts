import { sql } from 'kysely';
import type { Migration } from './types.ts';

/**
 * What each token confirms, and tokens that outlive their registration; where registrations come from; the hourly budget
 * of mail; when a post left an address; names as they are sorted.
 */
export const registration: Migration = {
  name: '0007-registration',
  statements: ({ text, tableEnd }) => [
    // A copy, since SQLite cannot make a column nullable.
    sql`create table tokens_copied (
      hash ${text} primary key,
      kind ${text} not null,
      agent_id ${text} references agents (id) on delete cascade,
      created_at ${text} not null,
      expires_at ${text} not null,
      voided_at ${text},
      used_at ${text},
      sealed_key ${text},
      confirms ${text}
    ) ${tableEnd}`,
    sql`insert into tokens_copied
      select hash, kind, agent_id, created_at, expires_at, voided_at, used_at, sealed_key, null from tokens`,
    sql`drop table tokens`,
    sql`alter table tokens_copied rename to tokens`,
    sql`create index tokens_agent on tokens (agent_id)`,
    sql`create index tokens_expiry on tokens (expires_at)`,
    sql`alter table agents add column registered_from ${text}`,
    sql`create index agents_registered_from on agents (registered_from, registered_at, id)
      where verified_at is null`,
    sql`alter table outbox add column network ${text}`,
    sql`alter table outbox add column admitted_at ${text}`,
    sql`create index outbox_waiting on outbox (network, due_at, id)
      where network is not null and admitted_at is null and due_at is not null`,
    sql`create index outbox_ready on outbox (due_at, id)
      where due_at is not null and (network is null or admitted_at is not null)`,
    sql`create index outbox_admitted on outbox (admitted_at, network) where admitted_at is not null`,
    sql`alter table former_slugs add column left_at ${text}`,
  ],
};
