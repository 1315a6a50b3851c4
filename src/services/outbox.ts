import type { Selectable } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../context.ts';
import { defineWrite, timestamp } from '../db/write.ts';
import type { AgentRow, Tables } from '../db/tables.ts';
import type { MailText } from '../mail/letter.ts';
import type { OutgoingMail } from '../mail/mailer.ts';
import { messages, type MailDetails, type MailFacts, type MailKind } from '../mail/messages.ts';
import { seal, unseal, uuidv7 } from '../rules/secrets.ts';
import { admitMail, isAdmitted, mailboxHash, mailboxOf, type Mailbox } from './limits/mail-limits.ts';
import { clocksMayDiffer } from './limits/rate-limiter.ts';
import { countRows } from './lists/paging.ts';

const hour = 3_600_000;

/** Longer than any retry or lease is put off, ms: what is due later was written by a clock that was ahead. */
const longestDelay = 2 * hour;

/** Undelivered messages are given up, and their text erased, after this long, ms. */
export const textKeptFor = 7 * 24 * hour;
/** Rows are deleted after this long, ms: the caps count them. */
const rowKeptFor = 30 * 24 * hour;

type Destination = {
  readonly to?: Mailbox;
  /** Null: no budget bounds it. */
  readonly network?: string | null;
};

/**
 * Puts a sealed message to an agent, or with `to` to somebody else, into the outbox, in the transaction that causes it. `network` is that of the client
 * that asked for it, as a keyed hash.
 */
export async function enqueueMail<Kind extends MailKind>(
  tx: WriteContext,
  kind: Kind,
  agent: AgentRow | null,
  details: MailDetails<Kind>,
  { to = mailboxOf(agent ?? { email: '' }), network = '' }: Destination = {},
): Promise<void> {
  const { site, variant, contact } = tx.config;
  const name = agent?.name ?? '';
  const slug = agent?.slug ?? '';
  const facts = {
    baseUrl: site.baseUrl,
    contact,
    agent: { name, slug, blogUrl: variant.blogUrl(site, slug) },
    address: to.address,
  };
  const write = messages[kind].write as (facts: MailFacts & MailDetails<Kind>) => MailText;
  const id = uuidv7(tx.now());
  const createdAt = timestamp(tx.now());
  // The caps count it as if it were sent, so that no caller learns of it.
  if (agent && agent.mail_refused_at !== null) return noteUnsent(tx, { id, kind, agent, to });
  const mail: OutgoingMail = { id, to: to.address, ...write({ ...facts, ...details }), createdAt };
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      agent_id: agent?.id ?? null,
      mailbox: mailboxHash(tx, to.mailboxKey),
      kind,
      sealed: seal(tx.secretKey, JSON.stringify(mail), contextOf(kind, id)),
      created_at: createdAt,
      due_at: createdAt,
      route: routeOf(tx),
      // Mail to a verified address needs no budget.
      network: !agent?.verified_at && routeOf(tx) === 'smtp' ? network : null,
    })
    .execute();
  tx.mailQueued();
}

/** Stores a message to an address that takes none as given up, without its text. */
async function noteUnsent(
  tx: WriteContext,
  { id, kind, agent, to }: { id: string; kind: MailKind; agent: AgentRow; to: Mailbox },
): Promise<void> {
  const now = timestamp(tx.now());
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      agent_id: agent.id,
      mailbox: mailboxHash(tx, to.mailboxKey),
      kind,
      created_at: now,
      dead_at: now,
      last_error: agent.mail_refused,
      route: routeOf(tx),
    })
    .execute();
}

/** The kind of the row of a request for recovery, which the worker looks up: the caller must not see how long that takes. */
export const recoveryRequest = 'recovery-request';

/** An address that somebody wants to recover, and the network that they asked from. */
export type RecoveryRequest = { readonly email: string; readonly network?: string };

/** Queues a request for recovery, sealed, whether or not an agent has the address. */
export async function enqueueRecovery(tx: WriteContext, request: RecoveryRequest): Promise<void> {
  const id = uuidv7(tx.now());
  const now = timestamp(tx.now());
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      mailbox: '',
      kind: recoveryRequest,
      sealed: seal(tx.secretKey, JSON.stringify(request), contextOf(recoveryRequest, id)),
      created_at: now,
      due_at: now,
      route: routeOf(tx),
    })
    .execute();
  tx.mailQueued();
}

/** Takes a request that this owner has claimed out of the outbox. Null if another has. */
export async function takeRecovery(
  tx: WriteContext,
  { id, owner, sealed }: { readonly id: string; readonly owner: string; readonly sealed: string },
): Promise<RecoveryRequest | null> {
  const text = unseal(tx.secretKey, sealed, contextOf(recoveryRequest, id));
  const { numDeletedRows } = await tx.db
    .deleteFrom('outbox')
    .where('id', '=', id)
    .where('lease_owner', '=', owner)
    .executeTakeFirstOrThrow();
  return text === null || numDeletedRows === 0n ? null : (JSON.parse(text) as RecoveryRequest);
}

/** A release that knows no requests must not take one for a message. */
function contextOf(kind: string, id: string): string {
  return `${kind === recoveryRequest ? 'recovery' : 'outbox'}:${id}`;
}

function routeOf({ config: { mail } }: WriteContext): 'smtp' | 'folder' {
  return mail.smtpUrl === null ? 'folder' : 'smtp';
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

/** Cancels what waits for an agent that is erased, and no longer tells whom the rest was sent to. */
export async function forgetMailOf(tx: WriteContext, agentId: string): Promise<void> {
  const erased = { cancelled_at: timestamp(tx.now()), due_at: null, sealed: null, lease_owner: null };
  const mail = tx.db.updateTable('outbox').where('agent_id', '=', agentId);
  await mail.set(erased).where('due_at', 'is not', null).execute();
  await mail.set({ agent_id: null }).execute();
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
  return waiting.filter((mail) => !isReadable(secretKey, mail)).length;
}

type SealedMail = { readonly id: string; readonly kind: string; readonly sealed: string };

/** The waiting message that was queued last, or null. */
export async function newestSealedMail(db: ReadContext['db']): Promise<SealedMail | null> {
  const newest = await sealedMail(db).orderBy('created_at', 'desc').limit(1).executeTakeFirst();
  return newest ?? null;
}

function sealedMail(db: ReadContext['db']) {
  return waitingMail(db)
    .select(['id', 'kind', 'sealed'])
    .where('sealed', 'is not', null)
    .$narrowType<{ sealed: string }>();
}

function waitingMail(db: ReadContext['db']) {
  return db.selectFrom('outbox').where('due_at', 'is not', null);
}

/** The text of a message, or null where another secret sealed it. */
export function openMail(secretKey: Buffer, mail: SealedMail): OutgoingMail | null {
  const text = unsealed(secretKey, mail);
  return text === null ? null : (JSON.parse(text) as OutgoingMail);
}

/** Whether this secret has sealed what waits. */
export function isReadable(secretKey: Buffer, mail: SealedMail): boolean {
  return unsealed(secretKey, mail) !== null;
}

function unsealed(secretKey: Buffer, { id, kind, sealed }: SealedMail): string | null {
  return unseal(secretKey, sealed, contextOf(kind, id));
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
    .limit(most);
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
      .limit(most);
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
