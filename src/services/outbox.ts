import type { Selectable } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../context.ts';
import { defineWrite, timestamp } from '../db/write.ts';
import type { AgentRow, Tables } from '../db/tables.ts';
import type { MailText } from '../mail/letter.ts';
import type { OutgoingMail } from '../mail/mailer.ts';
import { messages, type MailDetails, type MailFacts, type MailKind } from '../mail/messages.ts';
import { mailboxKeyOf } from '../rules/email.ts';
import { keyedHash, seal, unseal, uuidv7 } from '../rules/secrets.ts';
import { countRows } from './lists/paging.ts';

/** Messages to one mailbox that register and recover may cause. */
const mostPerHour = 5;
const mostPerDay = 10;

const hour = 3_600_000;

/** Undelivered messages are given up, and their text erased, after this long, ms. */
export const textKeptFor = 7 * 24 * hour;
/** Rows are deleted after this long, ms: the caps count them. */
const rowKeptFor = 30 * 24 * hour;

/** The recipient of a message: where it goes, and what the caps count. */
export type Mailbox = { readonly address: string; readonly mailboxKey: string };

/** Puts a sealed message to an agent into the outbox, in the transaction that causes it. */
export async function enqueueMail<Kind extends MailKind>(
  tx: WriteContext,
  kind: Kind,
  agent: AgentRow,
  details: MailDetails<Kind>,
  to: Mailbox = mailboxOf(agent),
): Promise<void> {
  const { site, variant } = tx.config;
  const { name } = agent;
  const slug = agent.slug ?? '';
  const facts = {
    baseUrl: site.baseUrl,
    agent: { name, slug, blogUrl: variant.blogUrl(site, slug) },
    address: to.address,
  };
  const write = messages[kind].write as (facts: MailFacts & MailDetails<Kind>) => MailText;
  const id = uuidv7(tx.now());
  const createdAt = timestamp(tx.now());
  const mail: OutgoingMail = { id, to: to.address, ...write({ ...facts, ...details }), createdAt };
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      agent_id: agent.id,
      mailbox: mailboxHash(tx, to.mailboxKey),
      kind,
      sealed: seal(tx.secretKey, JSON.stringify(mail), `outbox:${id}`),
      created_at: createdAt,
      due_at: createdAt,
      route: tx.config.mail.smtpUrl === null ? 'folder' : 'smtp',
    })
    .execute();
  tx.mailQueued();
}

/** The address that an agent registered. */
export function mailboxOf({ email }: Pick<AgentRow, 'email'>): Mailbox {
  return { address: email, mailboxKey: mailboxKeyOf(email) };
}

/** Identifies a mailbox for the caps: no address may be readable, or guessable, from a row that outlives its mail. */
export function mailboxHash({ secretKey }: WriteContext, mailboxKey: string): string {
  return keyedHash(secretKey, 'mailbox', mailboxKey);
}

const cappedKinds = Object.entries(messages).flatMap(([kind, { capped }]) => (capped ? kind : []));

/** Whether the mailbox has received as many messages that anybody can cause as are allowed in an hour or a day. */
export async function mailboxIsFull(tx: WriteContext, to: Mailbox): Promise<boolean> {
  await tx.lock(`mailbox:${to.mailboxKey}`);
  const recent = await recentMail(tx, to, 24 * hour)
    .where('kind', 'in', cappedKinds)
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
  const recent = await recentMail(tx, to, hour).where('kind', '=', kind).executeTakeFirst();
  return recent !== undefined;
}

function recentMail(tx: WriteContext, { mailboxKey }: Mailbox, age: number) {
  return tx.db
    .selectFrom('outbox')
    .select('created_at')
    .where('mailbox', '=', mailboxHash(tx, mailboxKey))
    .where('created_at', '>', timestamp(tx.now() - age));
}

/** Cancels undelivered messages of these kinds to an agent: what they say is no longer true. */
export async function cancelMail(
  tx: WriteContext,
  agentId: string,
  kinds: readonly MailKind[],
): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ cancelled_at: timestamp(tx.now()), due_at: null, sealed: null, lease_owner: null })
    .where('agent_id', '=', agentId)
    .where('due_at', 'is not', null)
    .where('kind', 'in', kinds)
    .execute();
}

/** How many messages are still to be delivered, including those being sent. */
export async function countWaitingMail({ db }: ReadContext): Promise<number> {
  return countRows(waitingMail(db));
}

/** How many of them wait for a mail server. Those without a route count too, since writing to a folder does not wait. */
export async function countMailForSmtp({ db }: ReadContext): Promise<number> {
  return countRows(
    waitingMail(db).where((row) => row.or([row('route', 'is', null), row('route', '<>', 'folder')])),
  );
}

/** How many of them another secret has sealed. */
export async function countUnreadableMail({ db, secretKey }: Context): Promise<number> {
  const waiting = await sealedMail(db).execute();
  return waiting.filter((mail) => openMail(secretKey, mail) === null).length;
}

type SealedMail = { readonly id: string; readonly sealed: string };

/** The waiting message that was queued last, or null. */
export async function newestSealedMail(db: ReadContext['db']): Promise<SealedMail | null> {
  const newest = await sealedMail(db).orderBy('created_at', 'desc').limit(1).executeTakeFirst();
  return newest ?? null;
}

function sealedMail(db: ReadContext['db']) {
  return waitingMail(db)
    .select(['id', 'sealed'])
    .where('sealed', 'is not', null)
    .$narrowType<{ sealed: string }>();
}

function waitingMail(db: ReadContext['db']) {
  return db.selectFrom('outbox').where('due_at', 'is not', null);
}

/** The text of a message, or null where another secret sealed it. */
export function openMail(secretKey: Buffer, { id, sealed }: SealedMail): OutgoingMail | null {
  const text = unseal(secretKey, sealed, `outbox:${id}`);
  return text === null ? null : (JSON.parse(text) as OutgoingMail);
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
export type Claimed = SealedMail & Pick<Selectable<Tables['outbox']>, 'agent_id' | 'kind' | 'attempts'>;

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
};

/** Records an attempt. The text is erased once the message is delivered or given up. */
export const recordAttempt = defineWrite(
  'outbox.attempt',
  async (tx, { id, owner, retryAt, error }: Attempt) => {
    const now = timestamp(tx.now());
    const end = error === null ? { delivered_at: now } : { dead_at: now };
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

/** Releases leases at shutdown, so that another process need not wait for them to expire. */
export const releaseMail = defineWrite('outbox.release', async (tx, { owner }: { owner: string }) => {
  await tx.db
    .updateTable('outbox')
    .set({ due_at: timestamp(tx.now()), lease_owner: null })
    .where('lease_owner', '=', owner)
    .where('due_at', 'is not', null)
    .execute();
});

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
