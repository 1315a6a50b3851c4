import { sql } from 'kysely';
import type { Migration } from './types.ts';

/** Tokens that still have the key that they gave: few of all that are remembered. */
export const sealedKeys: Migration = {
  name: '0039-sealed-keys',
  statements: () => [
    sql`create index tokens_sealed on tokens (expires_at, hash) where sealed_key is not null`,
  ],
};
