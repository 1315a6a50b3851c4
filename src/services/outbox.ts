import { timestamp, type ReadContext, type WriteContext } from '../context.ts';
import { defineWrite } from '../db/write.ts';
import type { AgentRow } from '../db/tables.ts';
import type { MailText } from '../mail/letter.ts';
import type { OutgoingMail } from '../mail/mailer.ts';
import type { MailedAgent } from '../mail/messages.ts';
import { keyedHash, seal, uuidv7 } from '../rules/secrets.ts';

/** Kinds of messages; `key-issued` and `key-replaced` carry an API key. */
export type MailKind =
  | 'verification'
  | 'recovery'
  | 'already-registered'
  | 'key-issued'
  | 'key-replaced'
  | 'key-leaked'
  | 'token-leaked';

/** Messages to one mailbox that register and recover may cause. */
const mostPerHour = 5;
const mostPerDay = 10;

const hour = 3_600_000;

/** How long undelivered text is kept, ms; then the message is given up. */
export const textKeptFor = 7 * 24 * hour;
/** How long a delivered row is kept, ms: it is what the caps count. */
const rowKeptFor = 30 * 24 * hour;

/** The recipient of a message: where it goes, and what the caps count (the address without its `+tag`). */
export type Mailbox = { readonly address: string; readonly mailboxKey: string };

/**
 * Writes a message into the outbox, in the transaction that causes it: either both are durable or neither.
 * Its text is sealed, since it may hold a key or a token.
 */
export async function enqueueMail(
  tx: WriteContext,
  kind: MailKind,
  agentId: string | null,
  to: Mailbox,
  text: MailText,
): Promise<void> {
  const id = uuidv7(tx.now());
  const createdAt = timestamp(tx.now());
  const mail: OutgoingMail = { id, to: to.address, ...text, createdAt };
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      agent_id: agentId,
      mailbox: mailboxHash(tx, to),
      kind,
      sealed: seal(tx.secretKey, JSON.stringify(mail), `outbox:${id}`),
      created_at: createdAt,
      due_at: createdAt,
      route: tx.config.mail.smtpUrl === null ? 'folder' : 'smtp',
    })
    .execute();
  tx.mailQueued();
}

/** What the caps count a recipient by: an address must not be readable, or guessable, from a row that outlives its mail. */
function mailboxHash({ secretKey }: WriteContext, { mailboxKey }: Mailbox): string {
  return keyedHash(secretKey, 'mailbox', mailboxKey);
}

/** An agent as messages describe it. */
export function mailedAgent(ctx: ReadContext, agent: Pick<AgentRow, 'name'>, slug: string): MailedAgent {
  return { name: agent.name, slug, blogUrl: ctx.config.variant.blogUrl(ctx.config.site, slug) };
}

/** What anybody can have sent to an address; the others follow from what only a holder of a key or token can do. */
const kindsByAnybody: readonly MailKind[] = [
  'verification',
  'recovery',
  'already-registered',
  'key-leaked',
  'token-leaked',
];

/** Whether the mailbox has received as many messages that anybody can cause as are allowed in an hour or a day. */
export async function mailboxIsFull(tx: WriteContext, to: Mailbox): Promise<boolean> {
  await tx.lock(`mailbox:${to.mailboxKey}`);
  const recent = await tx.db
    .selectFrom('outbox')
    .select('created_at')
    .where('mailbox', '=', mailboxHash(tx, to))
    .where('kind', 'in', kindsByAnybody)
    .where('created_at', '>', timestamp(tx.now() - 24 * hour))
    .orderBy('created_at', 'desc')
    .limit(mostPerDay)
    .execute();
  const hourAgo = timestamp(tx.now() - hour);
  return (
    recent.length >= mostPerDay || recent.filter((row) => row.created_at > hourAgo).length >= mostPerHour
  );
}

/** Whether the mailbox has received a message of this kind within the last hour. */
export async function wasMailedWithinHour(tx: WriteContext, to: Mailbox, kind: MailKind): Promise<boolean> {
  const recent = await tx.db
    .selectFrom('outbox')
    .select('id')
    .where('mailbox', '=', mailboxHash(tx, to))
    .where('created_at', '>', timestamp(tx.now() - hour))
    .where('kind', '=', kind)
    .executeTakeFirst();
  return recent !== undefined;
}

/** Cancels undelivered messages to an agent, of these kinds or all: what they say is no longer true. */
export async function cancelMail(
  tx: WriteContext,
  agentId: string,
  kinds?: readonly MailKind[],
): Promise<void> {
  const cancelled = tx.db
    .updateTable('outbox')
    .set({ cancelled_at: timestamp(tx.now()), due_at: null, sealed: null, lease_owner: null })
    .where('agent_id', '=', agentId)
    .where('due_at', 'is not', null);
  await (kinds ? cancelled.where('kind', 'in', kinds) : cancelled).execute();
}

/** Removes every trace of messages to an agent; one that is being sent at this moment still arrives. */
export async function eraseMail(tx: WriteContext, agentId: string): Promise<void> {
  await tx.db.deleteFrom('outbox').where('agent_id', '=', agentId).execute();
}

/** How many messages are still to be delivered, including those being sent. */
export async function countWaitingMail(ctx: ReadContext): Promise<number> {
  const { count } = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('due_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return count;
}

/** The agent that a message is for; null if it has none or does not exist. */
export async function agentOfMail(ctx: ReadContext, id: string): Promise<string | null> {
  const row = await ctx.db.selectFrom('outbox').select('agent_id').where('id', '=', id).executeTakeFirst();
  return row?.agent_id ?? null;
}

export type Lease = {
  readonly owner: string;
  readonly limit: number;
  /** ms */
  readonly duration: number;
  /** Leave what was queued for a mail server, or by a release that did not note for what. */
  readonly folderOnly?: boolean;
};

/** A message that the caller may send until its lease ends. */
export type Claimed = {
  readonly id: string;
  readonly kind: string;
  readonly attempts: number;
  readonly sealed: string;
};

/** Claims messages that are due. When a lease expires they are due again: a crash delays mail but never loses it. */
export const claimMail = defineWrite(
  'outbox.claim',
  async (tx, { owner, limit, duration, folderOnly = false }: Lease): Promise<Claimed[]> => {
    await tx.lock('outbox');
    const now = timestamp(tx.now());
    const due = await tx.db
      .selectFrom('outbox')
      .select('id')
      .where('due_at', '<=', now)
      .$if(folderOnly, (query) => query.where('route', '=', 'folder'))
      .orderBy('due_at')
      .orderBy('id')
      .limit(limit)
      .execute();
    if (due.length === 0) return [];
    const ids = due.map((row) => row.id);
    // The condition is repeated: a message that is cancelled at this moment must not come back.
    const claimed = await tx.db
      .updateTable('outbox')
      .set({ due_at: timestamp(tx.now() + duration), lease_owner: owner })
      .where('id', 'in', ids)
      .where('due_at', '<=', now)
      .returning(['id', 'kind', 'attempts', 'sealed'])
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
};

/** Records an attempt. The text is erased once the message is delivered or given up. */
export const recordAttempt = defineWrite('outbox.attempt', async (tx, attempt: Attempt): Promise<null> => {
  const now = timestamp(tx.now());
  const done = attempt.retryAt === null;
  await tx.db
    .updateTable('outbox')
    .set((row) => ({
      attempts: row('attempts', '+', 1),
      lease_owner: null,
      last_error: attempt.error,
      due_at: attempt.retryAt === null ? null : timestamp(attempt.retryAt),
      ...(done ? { sealed: null } : {}),
      ...(done && attempt.error === null ? { delivered_at: now } : {}),
      ...(done && attempt.error !== null ? { dead_at: now } : {}),
    }))
    .where('id', '=', attempt.id)
    .where('lease_owner', '=', attempt.owner)
    .execute();
  return null;
});

/** Releases leases at shutdown, so that another process need not wait for them to expire. */
export const releaseMail = defineWrite(
  'outbox.release',
  async (tx, { owner }: { owner: string }): Promise<null> => {
    await tx.db
      .updateTable('outbox')
      .set({ due_at: timestamp(tx.now()), lease_owner: null })
      .where('lease_owner', '=', owner)
      .where('due_at', 'is not', null)
      .execute();
    return null;
  },
);

/** Erases texts that were never delivered, and deletes rows that no cap counts. Returns how many texts were given up. */
export async function expireMail(tx: WriteContext): Promise<number> {
  const given = await tx.db
    .updateTable('outbox')
    .set({
      dead_at: timestamp(tx.now()),
      due_at: null,
      sealed: null,
      lease_owner: null,
      last_error: 'not delivered within 7 days',
    })
    .where('due_at', 'is not', null)
    .where('created_at', '<', timestamp(tx.now() - textKeptFor))
    .executeTakeFirst();
  await tx.db
    .deleteFrom('outbox')
    .where('created_at', '<', timestamp(tx.now() - rowKeptFor))
    .execute();
  return Number(given.numUpdatedRows);
}
