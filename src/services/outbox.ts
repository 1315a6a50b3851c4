import type { Context, ReadContext, WriteContext } from '../context.ts';
import { timestamp } from '../db/write.ts';
import type { AgentRow } from '../db/tables.ts';
import type { MailText } from '../mail/letter.ts';
import type { OutgoingMail } from '../mail/mailer.ts';
import { messages, type MailDetails, type MailFacts, type MailKind } from '../mail/messages.ts';
import { seal, unseal, uuidv7 } from '../rules/secrets.ts';
import { mailboxHash, mailboxOf, type Mailbox } from './limits/mail-limits.ts';
import { countRows } from './lists/paging.ts';

type Destination = {
  readonly to?: Mailbox;
  /** Null: no budget bounds it. */
  readonly network?: string | null;
  /** The agent was erased in this transaction, so the message belongs to nobody. */
  readonly isOfErased?: boolean;
  /** Id of the agent with which the message is erased, where it is not written to that. */
  readonly erasedWith?: string | null;
};

/**
 * Puts a sealed message to an agent, or with `to` to somebody else, into the outbox, in the transaction that causes it.
 * `network` is that of the client that asked for it, as a keyed hash.
 */
export async function enqueueMail<Kind extends MailKind>(
  tx: WriteContext,
  kind: Kind,
  agent: AgentRow | null,
  details: MailDetails<Kind>,
  {
    to = mailboxOf(agent ?? { email: '' }),
    network = '',
    isOfErased = false,
    erasedWith = null,
  }: Destination = {},
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
  if (agent && agent.mail_refused_at !== null)
    return isOfErased ? undefined : noteUnsent(tx, { id, kind, agent, to });
  const mail: OutgoingMail = { id, to: to.address, ...write({ ...facts, ...details }), createdAt };
  await tx.db
    .insertInto('outbox')
    .values({
      id,
      agent_id: isOfErased ? null : (agent?.id ?? erasedWith),
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

/**
 * Cancels undelivered messages of these kinds to an agent: what they say is no longer true. Those that the caps count keep
 * their rows; nobody needs the others, of which an agent can make any number.
 */
export async function cancelMail(
  tx: WriteContext,
  agentId: string,
  kinds: readonly MailKind[],
): Promise<void> {
  const { counted = [], others = [] } = Object.groupBy(kinds, (kind) =>
    messages[kind].capped ? 'counted' : 'others',
  );
  if (counted.length > 0)
    await tx.db
      .updateTable('outbox')
      .set({ cancelled_at: timestamp(tx.now()), due_at: null, sealed: null, lease_owner: null })
      .where('agent_id', '=', agentId)
      .where('due_at', 'is not', null)
      .where('kind', 'in', counted)
      .execute();
  if (others.length > 0)
    await tx.db
      .deleteFrom('outbox')
      .where('agent_id', '=', agentId)
      .where('due_at', 'is not', null)
      .where('kind', 'in', others)
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

/** A waiting message, as it is stored. */
export type SealedMail = { readonly id: string; readonly kind: string; readonly sealed: string };

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
