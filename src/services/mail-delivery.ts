import { sql, type Selectable } from 'kysely';
import type { WriteContext } from '../context.ts';
import { defineWrite, timestamp } from '../db/write.ts';
import type { Tables } from '../db/tables.ts';
import { admitMail, isAdmitted } from './limits/mail-limits.ts';
import { clocksMayDiffer } from './limits/rate-window.ts';
import type { SealedMail } from './outbox.ts';
import { day, hour } from '../platform/durations.ts';

/** Longer than any retry or lease is put off, ms: what is due later was written by a clock that was ahead. */
const longestDelay = 2 * hour;

/** Undelivered messages are given up, and their text erased, after this long, ms. */
export const textKeptFor = 7 * day;
/** Rows are deleted after this long, ms: the caps count them. */
const rowKeptFor = 30 * day;

export type Lease = {
  readonly owner: string;
  readonly limit: number;
  /** ms */
  readonly duration: number;
  /** Leave what was queued for a mail server, or by a release that did not note for what. */
  readonly folderOnly?: boolean;
};

/** A message that the caller may send until its lease ends. */
export type Claimed = SealedMail & Pick<Selectable<Tables['outbox']>, 'agent_id' | 'attempts'>;

/** Claims messages that are due. When a lease expires they are due again: a crash delays mail but never loses it. */
export const claimMail = defineWrite(
  'outbox.claim',
  async (tx, { owner, limit, duration, folderOnly = false }: Lease) => {
    await tx.lock('outbox');
    const now = timestamp(tx.now());
    const due = await tx.db
      .selectFrom('outbox')
      .select('id')
      .where('due_at', '<=', now)
      .where(isAdmitted)
      .$if(folderOnly, (query) => query.where('route', '=', 'folder'))
      .orderBy('due_at')
      .orderBy('id')
      .limit(limit)
      .execute();
    const free = folderOnly ? 0 : limit - due.length;
    const ids = [...due.map((row) => row.id), ...(await admitMail(tx, free))];
    if (ids.length === 0) return [];
    // The condition is repeated: a message that is cancelled at this moment must not come back.
    const claimed = await tx.db
      .updateTable('outbox')
      .set({ due_at: timestamp(tx.now() + duration), lease_owner: owner })
      .where('id', 'in', ids)
      .where('due_at', '<=', now)
      .returning(['id', 'agent_id', 'kind', 'attempts', 'sealed'])
      .execute();
    return claimed.flatMap(({ sealed, ...row }) => (sealed === null ? [] : [{ ...row, sealed }]));
  },
);

/** What became of one attempt. */
export type Attempt = {
  readonly id: string;
  readonly owner: string;
  /** When to try again, epoch ms; null: delivered, or given up with `error`. */
  readonly retryAt: number | null;
  readonly error: string | null;
  /** The agent whose address takes no mail. */
  readonly refusedBy?: string | null;
};

/** What an agent has while mail is sent to its address. */
export const takesMail = { mail_refused_at: null, mail_refused: null } as const;

/**
 * Records an attempt. The text is erased once the message is delivered or given up, and nothing more is sent to an
 * address that refuses it.
 */
export const recordAttempt = defineWrite(
  'outbox.attempt',
  async (tx, { id, owner, retryAt, error, refusedBy = null }: Attempt) => {
    const now = timestamp(tx.now());
    const end = error === null ? { delivered_at: now } : { dead_at: now };
    // Agents are locked before their mail.
    if (refusedBy !== null)
      await tx.db
        .updateTable('agents')
        .set({ mail_refused_at: now, mail_refused: error })
        .where('id', '=', refusedBy)
        .where('mail_refused_at', 'is', null)
        .execute();
    await tx.db
      .updateTable('outbox')
      .set((row) => ({
        attempts: row('attempts', '+', 1),
        lease_owner: null,
        last_error: error,
        ...(retryAt === null ? { due_at: null, sealed: null, ...end } : { due_at: timestamp(retryAt) }),
      }))
      .where('id', '=', id)
      .where('lease_owner', '=', owner)
      .execute();
  },
);

/** Sends mail again to the addresses of agents whose refusals were not about them. */
export const takeMailAgain = defineWrite(
  'outbox.take-again',
  async (tx, { agentIds }: { agentIds: readonly string[] }) => {
    await tx.db
      .updateTable('agents')
      .set(takesMail)
      .where('id', 'in', [...agentIds].toSorted())
      .where('mail_refused_at', 'is not', null)
      .execute();
  },
);

/** Releases leases at shutdown, so that another process need not wait for them to expire. */
export const releaseMail = defineWrite('outbox.release', async (tx, { owner }: { owner: string }) => {
  await tx.db
    .updateTable('outbox')
    .set({ due_at: timestamp(tx.now()), lease_owner: null })
    .where('lease_owner', '=', owner)
    .where('due_at', 'is not', null)
    .execute();
});

/** Due now: so many messages whose turn or lease was set while the clock was ahead. */
export async function hastenMail(tx: WriteContext, most: number): Promise<void> {
  const ahead = tx.db
    .selectFrom('outbox')
    .select('id')
    .where('due_at', '>', timestamp(tx.now() + longestDelay + clocksMayDiffer))
    .orderBy('due_at')
    .limit(sql.lit(most));
  await tx.db
    .updateTable('outbox')
    .set({ due_at: timestamp(tx.now()), lease_owner: null })
    .where('id', 'in', ahead)
    .execute();
}

/** How a mail server's refusal of a recipient is noted, for `like`: anybody can cause one, and no operator can mend it. */
export const ofRecipient = 'the mail server answered % at RCPT TO%';

function isOfRecipient(error: string | null): boolean {
  return /^the mail server answered .* at RCPT TO/.test(error ?? '');
}

/**
 * Erases texts that were never delivered, and deletes rows that no cap counts, so many of each at most. Returns how many
 * texts were given up, but for those whose recipients were refused, and whether there may be more of either.
 */
export async function expireMail(
  tx: WriteContext,
  most: number,
): Promise<{ givenUp: number; more: boolean }> {
  const oldest = (keptFor: number) =>
    tx.db
      .selectFrom('outbox')
      .select('id')
      .where('created_at', '<', timestamp(tx.now() - keptFor))
      .orderBy('created_at')
      .limit(sql.lit(most));
  const given = await tx.db
    .selectFrom('outbox')
    .select(['id', 'last_error'])
    .where('id', 'in', oldest(textKeptFor).where('due_at', 'is not', null))
    .execute();
  for (const { id, last_error } of given)
    await tx.db
      .updateTable('outbox')
      .set({
        dead_at: timestamp(tx.now()),
        due_at: null,
        sealed: null,
        lease_owner: null,
        last_error: isOfRecipient(last_error) ? last_error : 'not delivered within 7 days',
      })
      .where('id', '=', id)
      .execute();
  const deleted = await tx.db.deleteFrom('outbox').where('id', 'in', oldest(rowKeptFor)).executeTakeFirst();
  const givenUp = given.filter(({ last_error }) => !isOfRecipient(last_error)).length;
  return { givenUp, more: given.length >= most || Number(deleted.numDeletedRows) >= most };
}
