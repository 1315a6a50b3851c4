import type { ReadContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { eraseUnverified } from '../agents/registration.ts';
import { rememberedFor } from '../limits/idempotency.ts';
import { expireMail } from '../outbox.ts';
import { callsAhead, rateWindow } from '../limits/rate-limiter.ts';
import { countRows } from '../lists/paging.ts';
import { readFact } from './facts.ts';

const day = 24 * 3_600_000;

/** How long a deleted post's address answers "gone", ms. */
const goneFor = 365 * day;
/** Expired tokens are deleted after this long, ms. */
const rememberTokensFor = 30 * day;
/** Changes are deleted after this long, ms: processes poll them every second. */
const keepChangesFor = 10 * 60_000;
/** A process without a heartbeat for this long is gone, ms. */
export const processGoneAfter = 15_000;

/** Shows other processes that this one runs, and proves that the database can be written. Returns how many run. */
export const heartbeat = defineWrite('maintenance.heartbeat', async (tx, { id }: { id: string }) => {
  const row = { seen_at: tx.now() };
  await tx.db
    .insertInto('processes')
    .values({ id, ...row })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
    .execute();
  await tx.db
    .deleteFrom('processes')
    .where('seen_at', '<', tx.now() - processGoneAfter)
    .execute();
  return countRows(tx.db.selectFrom('processes'));
});

/** The process is ending in an orderly way. */
export const farewell = defineWrite('maintenance.farewell', async (tx, { id }: { id: string }) => {
  await tx.db.deleteFrom('processes').where('id', '=', id).execute();
});

/**
 * Deletes what is no longer needed. Returns how many undelivered messages were given up, and whether there may be more to
 * delete at once.
 */
export const sweep = defineWrite('maintenance.sweep', async (tx) => {
  const ago = (ms: number) => timestamp(tx.now() - ms);
  await tx.db
    .deleteFrom('rate_calls')
    .where('at', '<', tx.now() - rateWindow)
    .execute();
  await callsAhead(tx).execute();
  await tx.db
    .deleteFrom('changes')
    .where('at', '<', tx.now() - keepChangesFor)
    .execute();
  await tx.db.deleteFrom('idempotency').where('created_at', '<', ago(rememberedFor)).execute();
  await tx.db
    .deleteFrom('exports')
    .where('began_at', '<', tx.now() - day)
    .execute();
  await tx.db.deleteFrom('former_slugs').where('deleted_at', '<', ago(goneFor)).execute();
  await tx.db.deleteFrom('tokens').where('expires_at', '<', ago(rememberTokensFor)).execute();
  const mailGivenUp = await expireMail(tx);
  const more = await eraseUnverified(tx);
  return { mailGivenUp, ...(more ? { more } : {}) };
});

/** In `meta`: `due` since something was deleted from the search index, `begun` while its terms are being erased. */
const searchErasure = 'search_erasure';

/** Whether terms of deleted posts are still in the storage of the search index. */
export async function areTermsLeft({ db }: ReadContext): Promise<boolean> {
  return (await readFact(db, searchErasure)) !== null;
}

/** Erases terms of deleted posts from the search index, a part at a time. Returns whether that was the last part. */
export const eraseTerms = defineWrite(
  'maintenance.erase-terms',
  async (tx, { part }: { part: 'first' | 'next' }) => {
    const noted = tx.db.updateTable('meta').where('key', '=', searchErasure);
    if (part === 'first') await noted.set({ value: 'begun' }).execute();
    const done = await tx.searchIndex.eraseDeleted(tx.db, part);
    if (done)
      await tx.db.deleteFrom('meta').where('key', '=', searchErasure).where('value', '=', 'begun').execute();
    return done;
  },
);
