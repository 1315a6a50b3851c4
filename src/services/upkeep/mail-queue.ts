import { sql } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { isAdmitted } from '../limits/mail-limits.ts';
import { countWaitingMail, openMail, recoveryRequest } from '../outbox.ts';

/** What becomes of a message next. */
type MailState = 'waits' | 'sending' | 'held by MAIL_BUDGET' | 'delivered' | 'given up' | 'cancelled';

/** A message as the operator sees it in a list: nothing of its text. */
export type QueuedMail = {
  readonly id: string;
  readonly kind: string;
  /** Slug of the agent that it is for; null for none, or one that was erased. */
  readonly agent: string | null;
  readonly state: MailState;
  readonly createdAt: string;
  /** When it is tried next; null if never. */
  readonly nextAt: string | null;
  readonly attempts: number;
  readonly lastError: string | null;
  /** What it was queued for. */
  readonly route: 'smtp' | 'folder' | null;
};

function rows({ db }: ReadContext) {
  return db
    .selectFrom('outbox')
    .leftJoin('agents', 'agents.id', 'outbox.agent_id')
    .select(['outbox.id', 'kind', 'agents.slug', 'outbox.created_at', 'due_at', 'attempts', 'lease_owner'])
    .select(['delivered_at', 'cancelled_at', 'dead_at', 'last_error', 'route', 'sealed'])
    .select(sql<boolean>`case when ${isAdmitted} then 1 else 0 end`.as('admitted'));
}

type Row = Awaited<ReturnType<ReturnType<typeof rows>['executeTakeFirstOrThrow']>>;

/** How many messages wait, and the first `most` of them in the order in which they are tried. */
export async function listQueue(ctx: ReadContext, most: number) {
  const [waiting, first] = await Promise.all([
    countWaitingMail(ctx),
    rows(ctx).where('due_at', 'is not', null).orderBy('due_at').orderBy('outbox.id').limit(most).execute(),
  ]);
  return { waiting, messages: first.map(toQueued) };
}

function toQueued(row: Row): QueuedMail {
  const state = stateOf(row);
  return {
    id: row.id,
    kind: row.kind,
    agent: row.slug,
    state,
    createdAt: row.created_at,
    nextAt: state === 'waits' ? row.due_at : null,
    attempts: row.attempts,
    lastError: row.last_error,
    route: row.route,
  };
}

function stateOf(row: Row): MailState {
  if (row.delivered_at !== null) return 'delivered';
  if (row.dead_at !== null) return 'given up';
  if (row.cancelled_at !== null) return 'cancelled';
  if (row.lease_owner !== null) return 'sending';
  return Number(row.admitted) === 1 ? 'waits' : 'held by MAIL_BUDGET';
}

/**
 * One message, with its recipient, subject and text while they are stored and this secret opens them; without what
 * gives access. Throws not_found.
 */
export async function findMail(ctx: Context, id: string) {
  const row = await rows(ctx).where('outbox.id', '=', id).executeTakeFirst();
  if (row === undefined) throw noMail(id);
  const { sealed, kind } = row;
  // What somebody wants to recover is no message yet.
  const mail =
    sealed === null || kind === recoveryRequest ? null : openMail(ctx.secretKey, { id, kind, sealed });
  const contents = mail && {
    to: mail.to,
    subject: withoutAccess(mail.subject),
    text: withoutAccess(mail.text),
  };
  return { ...toQueued(row), isStored: sealed !== null, contents };
}

function noMail(id: string): AppError {
  return new AppError('not_found', `There is no message '${id}': masthead mail queue lists those that wait.`);
}

/** A text without queries of links, keys and tokens: what is long, and no word. */
export function withoutAccess(text: string): string {
  return text
    .replaceAll(/\?[^\s"'<>()?]+/g, (query) => (query.includes('=') ? '?[hidden]' : query))
    .replaceAll(/(?<![\w-])(?=[\w-]*\d)[\w-]{16,}|(?<![\w-])[\w-]{32,}/g, '[hidden]');
}

/**
 * Makes messages due now: one, or all that wait. What is being sent stays with its sender, and what MAIL_BUDGET holds
 * waits on. Returns how many are due. Throws not_found for one that does not wait.
 */
export const retryMail = defineWrite('outbox.retry', async (tx, { id }: { id: string | null }) => {
  await tx.lock('outbox');
  let waiting = tx.db
    .updateTable('outbox')
    .set({ due_at: timestamp(tx.now()) })
    .where('due_at', 'is not', null)
    .where('lease_owner', 'is', null);
  if (id !== null) waiting = waiting.where('id', '=', id);
  const due = Number((await waiting.executeTakeFirst()).numUpdatedRows);
  if (id !== null && due === 0) {
    const row = await rows(tx).where('outbox.id', '=', id).executeTakeFirst();
    if (row === undefined) throw noMail(id);
    const why = row.due_at === null ? 'its text is erased' : 'wait for that, or stop the service first';
    throw new AppError('not_found', `The message cannot be sent again: it is ${stateOf(row)}, and ${why}.`);
  }
  if (due > 0) tx.mailQueued();
  return due;
});
