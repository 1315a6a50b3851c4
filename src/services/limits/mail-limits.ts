import { sql, type RawBuilder } from 'kysely';
import type { WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { messages, type MailKind } from '../../mail/messages.ts';
import { mailboxKeyOf } from '../../rules/email.ts';
import { keyedHash } from '../../rules/secrets.ts';
import { clocksMayDiffer } from './rate-window.ts';
import { day, hour } from '../../platform/durations.ts';

/** Messages to one mailbox that anybody can cause. */
const mostPerHour = 5;
const mostPerDay = 10;

/** The recipient of a message: where it goes, and what the caps count. */
export type Mailbox = { readonly address: string; readonly mailboxKey: string };

/** The address that an agent registered. */
export function mailboxOf({ email }: Pick<AgentRow, 'email'>): Mailbox {
  return { address: email, mailboxKey: mailboxKeyOf(email) };
}

/** Identifies a mailbox for the caps: no address may be readable, or guessable, from a row that outlives its mail. */
export function mailboxHash({ secretKey }: WriteContext, mailboxKey: string): string {
  return keyedHash(secretKey, 'mailbox', mailboxKey);
}

const cappedKinds = Object.entries(messages).flatMap(([kind, { capped }]) => (capped ? kind : []));

/**
 * Whether the mailbox has received as many messages that anybody can cause as are allowed in an hour or a day. One an
 * hour is kept for the recovery of a verified agent, `recovering`, so that strangers cannot use up the owner's.
 */
export async function mailboxIsFull(
  tx: WriteContext,
  to: Mailbox,
  recovering: string | null = null,
): Promise<boolean> {
  await tx.lock(`mailbox:${to.mailboxKey}`);
  const today = await recentMail(tx, to, day).where('kind', 'in', cappedKinds).execute();
  const hourAgo = timestamp(tx.now() - hour);
  const recent = today.filter((row) => row.created_at > hourAgo);
  const isOwn = (row: (typeof today)[number]) => row.kind === 'recovery' && row.agent_id === recovering;
  if (recovering !== null && !recent.some(isOwn) && today.filter(isOwn).length < mostPerDay) return false;
  const isUsed = recovering !== null || recent.some((row) => row.kind === 'recovery');
  const kept = isUsed ? 0 : 1;
  return recent.length >= mostPerHour - kept || today.length >= mostPerDay - kept;
}

/** Whether the mailbox has received a message of this kind within the last hour. */
export async function wasMailedWithinHour(tx: WriteContext, to: Mailbox, kind: MailKind): Promise<boolean> {
  const recent = await recentMail(tx, to, hour).where('kind', '=', kind).executeTakeFirst();
  return recent !== undefined;
}

function recentMail(tx: WriteContext, { mailboxKey }: Mailbox, age: number) {
  return (
    tx.db
      .selectFrom('outbox')
      .select(['created_at', 'kind', 'agent_id'])
      .where('mailbox', '=', mailboxHash(tx, mailboxKey))
      .where('created_at', '>', timestamp(tx.now() - age))
      // What was queued while the clock was ahead does not count.
      .where('created_at', '<=', timestamp(tx.now() + clocksMayDiffer))
  );
}

/** Messages an hour to addresses that no agent has verified; null: any number. */
function budgetOf({ config: { mail } }: WriteContext): number | null {
  return mail.smtpUrl === null || mail.budget === 0 ? null : mail.budget;
}

/** The refusal of a registration whose mail the budget has no room for. */
export function tooMuchWaits(): AppError {
  return new AppError(
    'unavailable',
    'More registrations wait for their mail than this service sends in a day. Nothing was stored: register later.',
    { retryAfter: hour / 1000 },
  );
}

/**
 * Whether a message to an address that nobody has verified goes out now, or waits because the hour's budget is spent.
 * Full: it is not to be queued, since more waits than a day's budget, and of this network a tenth of an hour's; or
 * more than twice a day's, whoever asked for it.
 */
export async function mailBudget(tx: WriteContext, network = ''): Promise<'left' | 'spent' | 'full'> {
  const budget = budgetOf(tx);
  if (budget === null) return 'left';
  const most = 24 * budget;
  const waiting = await countWaiting(tx, 2 * most);
  if (waiting >= 2 * most) return 'full';
  const share = Math.ceil(budget / 10);
  if (waiting >= most && (await countWaiting(tx, share, network)) >= share) return 'full';
  return waiting + (await countAdmitted(tx, budget)) >= budget ? 'spent' : 'left';
}

/** How many messages wait for the budget, up to `most`: of a network, or of all. */
async function countWaiting(tx: WriteContext, most: number, network?: string): Promise<number> {
  const whose = network === undefined ? sql`network is not null` : sql`network = ${network}`;
  return countUpTo(tx, sql`${whose} and admitted_at is null and due_at is not null`, most);
}

/** How many messages the budget has let through within an hour, up to `most`. */
async function countAdmitted(tx: WriteContext, most: number): Promise<number> {
  const [from, to] = [timestamp(tx.now() - hour), timestamp(tx.now() + clocksMayDiffer)];
  return countUpTo(tx, sql`admitted_at > ${from} and admitted_at <= ${to}`, most);
}

async function countUpTo({ db }: WriteContext, which: RawBuilder<unknown>, most: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from (
    select 1 as one from outbox where ${which} limit ${most}
  ) as messages
  `.execute(db);
  return rows[0]?.count ?? 0;
}

/** What every message that may be sent fulfils: as the index `outbox_ready` has it. */
export const isAdmitted = sql<boolean>`(network is null or admitted_at is not null)`;

/**
 * Lets messages through the hourly budget, up to `most`, and returns their ids: first those asked for from the network
 * that has had the fewest in the hour.
 */
export async function admitMail(tx: WriteContext, most: number): Promise<string[]> {
  const budget = budgetOf(tx);
  const left = budget === null ? most : Math.min(most, budget - (await countAdmitted(tx, budget)));
  if (left <= 0) return [];
  const now = timestamp(tx.now());
  const { rows } = await sql<{ id: string }>`
    select waiting.id from (
      select id, network, due_at, row_number() over (partition by network order by due_at, id) as place
      from outbox where network is not null and admitted_at is null and due_at <= ${now}
    ) as waiting left join (
      select network, count(*) as had from outbox
      where admitted_at > ${timestamp(tx.now() - hour)} and admitted_at <= ${timestamp(tx.now() + clocksMayDiffer)}
      group by network
    ) as admitted on admitted.network = waiting.network
    order by coalesce(admitted.had, 0) + waiting.place, waiting.due_at, waiting.id
    limit ${left}`.execute(tx.db);
  const ids = rows.map((row) => row.id);
  if (ids.length > 0)
    await tx.db.updateTable('outbox').set({ admitted_at: now }).where('id', 'in', ids).execute();
  return ids;
}
