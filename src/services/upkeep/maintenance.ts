import { sql, type RawBuilder } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { eraseUnverified } from '../agents/registration.ts';
import { tokenLifetime } from '../agents/tokens.ts';
import { rememberedFor } from '../limits/idempotency.ts';
import { expireMail, hastenMail } from '../mail-delivery.ts';
import { clocksMayDiffer, rateWindow } from '../limits/rate-window.ts';
import { countRows } from '../lists/paging.ts';
import { readFact } from './facts.ts';
import { day } from '../../platform/durations.ts';

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
  // Those ahead were seen while a clock was.
  await tx.db
    .deleteFrom('processes')
    .where((process) =>
      process.or([
        process('seen_at', '<', tx.now() - processGoneAfter),
        process('seen_at', '>', tx.now() + clocksMayDiffer),
      ]),
    )
    .execute();
  return countRows(tx.db.selectFrom('processes'));
});

/** The process is ending in an orderly way. */
export const farewell = defineWrite('maintenance.farewell', async (tx, { id }: { id: string }) => {
  await tx.db.deleteFrom('processes').where('id', '=', id).execute();
});

/** Rows of a table that one sweep deletes: all others wait for the writer meanwhile. */
const mostSwept = 200;

/**
 * Deletes what is no longer needed, so many rows of each table. Returns how many undelivered messages were given up, and
 * whether there may be more to delete at once.
 */
export const sweep = defineWrite('maintenance.sweep', async (tx) => {
  const ago = (ms: number) => timestamp(tx.now() - ms);
  const now = tx.now();
  const swept = [
    await sweepOldest(tx, 'rate_calls', ['at', 'policy', 'subject', 'n'], sql`< ${now - rateWindow}`),
    await sweepOldest(tx, 'rate_calls', ['at', 'policy', 'subject', 'n'], sql`> ${now + clocksMayDiffer}`),
    await sweepOldest(tx, 'changes', ['at', 'seq'], sql`< ${now - keepChangesFor}`),
    await sweepOldest(tx, 'idempotency', ['created_at', 'scope', 'key'], sql`< ${ago(rememberedFor)}`),
    await sweepOldest(tx, 'exports', ['began_at', 'id'], sql`< ${now - day}`),
    await sweepOldest(tx, 'exports', ['began_at', 'id'], sql`> ${now + clocksMayDiffer}`),
    await sweepOldest(tx, 'former_slugs', ['deleted_at', 'agent_id', 'slug'], sql`< ${ago(goneFor)}`),
    await sweepOldest(tx, 'tokens', ['expires_at', 'hash'], sql`< ${ago(rememberTokensFor)}`),
    await forgetKeys(tx),
    await dateBack(tx, 'changes', ['at', 'seq'], (ms) => ms),
    await dateBack(tx, 'idempotency', ['created_at', 'scope', 'key'], timestamp),
    await dateBack(tx, 'former_slugs', ['deleted_at', 'agent_id', 'slug'], timestamp),
    await dateBack(tx, 'tokens', ['expires_at', 'hash'], (ms) => timestamp(ms + tokenLifetime)),
    await dateBack(tx, 'agents', ['registered_at', 'id'], timestamp, sql`verified_at is null`),
    await dateBackErasures(tx),
    await dateBack(tx, 'posts', ['trashed_at', 'id'], timestamp),
    await dateBack(tx, 'post_revisions', ['replaced_at', 'post_id', 'revision'], timestamp),
    await dateBack(tx, 'media_blobs', ['orphaned_at', 'sha256'], timestamp),
    await dateBack(tx, 'inbox', ['at', 'id'], timestamp),
    await dateBack(tx, 'audit', ['at', 'id'], timestamp),
    // Not as now: the caps of mailboxes count a day, and nothing of those ahead.
    await dateBack(tx, 'outbox', ['created_at', 'id'], timestamp, sql`true`, day),
    await dateBack(tx, 'source_blocks', ['ended_at', 'id'], timestamp),
    await dateBack(tx, 'reports', ['created_at', 'id'], timestamp, sql`snapshot is not null`),
    await dateBack(tx, 'reports', ['decided_at', 'id'], timestamp),
    await dateBack(tx, 'appeals', ['at', 'id'], timestamp, sql`state = 'possible'`),
    await dateBack(tx, 'appeals', ['decided_at', 'id'], timestamp),
  ];
  await hastenMail(tx, mostSwept);
  const mail = await expireMail(tx, mostSwept);
  const moreUnverified = await eraseUnverified(tx);
  const more = moreUnverified || mail.more || swept.some((rows) => rows >= mostSwept);
  return { mailGivenUp: mail.givenUp, ...(more ? { more } : {}) };
});

/** A column with a time, which has an index, and those of the primary key, with it or not. */
type TimedColumns<Table extends keyof Tables> = readonly [
  time: keyof Tables[Table] & string,
  ...key: (keyof Tables[Table] & string)[],
];

/** Deletes rows by their time. */
async function sweepOldest<Table extends keyof Tables>(
  { db }: WriteContext,
  table: Table,
  columns: TimedColumns<Table>,
  isDue: RawBuilder<unknown>,
): Promise<number> {
  const due = oldest(table, columns, isDue);
  const { numAffectedRows } = await sql`delete from ${sql.table(table)} where ${due}`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Forgets the keys that tokens gave which give them no more: that they were never used keeps them no longer. */
async function forgetKeys(tx: WriteContext): Promise<number> {
  const isDue = sql`<= ${timestamp(tx.now())} and sealed_key is not null`;
  const ended = oldest('tokens', ['expires_at', 'hash'], isDue);
  const { numAffectedRows } = await sql`update tokens set sealed_key = null where ${ended}`.execute(tx.db);
  return Number(numAffectedRows ?? 0);
}

/**
 * Dates rows that were written while the clock was ahead as written now, or `age` ms ago, since they would stay until it
 * has caught up.
 */
async function dateBack<Table extends keyof Tables>(
  tx: WriteContext,
  table: Table,
  columns: TimedColumns<Table>,
  written: (ms: number) => number | string,
  which: RawBuilder<unknown> = sql`true`,
  age = 0,
): Promise<number> {
  const ahead = oldest(table, columns, sql`> ${written(tx.now() + clocksMayDiffer)} and ${which}`);
  const set = sql`${sql.ref(columns[0])} = ${written(tx.now() - age)}`;
  const { numAffectedRows } = await sql`update ${sql.table(table)} set ${set} where ${ahead}`.execute(tx.db);
  return Number(numAffectedRows ?? 0);
}

/**
 * Dates deletions of agents that began while the clock was ahead as begun now, with the time that each had then: when the
 * others end was promised, whatever the setting is now.
 */
async function dateBackErasures(tx: WriteContext): Promise<number> {
  const ahead = timestamp(tx.now() + clocksMayDiffer);
  const rows = await tx.db
    .selectFrom('agents')
    .select(['id', 'suspended_at', 'erase_at'])
    .where('erase_at', '>', ahead)
    .where('suspended_at', '>', ahead)
    .orderBy('erase_at')
    .limit(mostSwept)
    .execute();
  for (const { id, suspended_at, erase_at } of rows) {
    const left = Date.parse(erase_at ?? '') - Date.parse(suspended_at ?? '');
    await tx.db
      .updateTable('agents')
      .set({ suspended_at: timestamp(tx.now()), erase_at: timestamp(tx.now() + left) })
      .where('id', '=', id)
      .where('erase_at', '=', erase_at)
      .execute();
  }
  return rows.length;
}

/** That a row is one of so many of those whose time is due, the oldest first. */
function oldest(table: string, columns: readonly string[], isDue: RawBuilder<unknown>): RawBuilder<unknown> {
  const [time = ''] = columns;
  const row = sql.join(columns.map((column) => sql.ref(column)));
  return sql`(${row}) in (
    select ${row} from ${sql.table(table)} where ${sql.ref(time)} ${isDue} order by ${sql.ref(time)} limit ${sql.lit(mostSwept)}
  )`;
}

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
