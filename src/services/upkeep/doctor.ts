import { sql } from 'kysely';
import { timestamp, type ReadContext } from '../../context.ts';
import { findWrongCounts } from './stored-counts.ts';
import { countWaitingMail } from '../outbox.ts';
import { countMailForSmtp } from '../outbox.ts';

/** One thing that was examined: in order, worth a look, or wrong. */
export type Finding = {
  readonly what: string;
  readonly state: 'ok' | 'look' | 'wrong';
  readonly detail: string;
};

const minute = 60_000;
/** How late a message may be before somebody should look, ms. */
const mailMayWait = 15 * minute;
/** How far stored times may be ahead of the clock, ms: other machines' clocks differ a little. */
const clocksMayDiffer = minute;

/** Examines what is stored. Reads all posts. */
export async function examine(ctx: ReadContext): Promise<Finding[]> {
  return [await examineCounts(ctx), await examineClock(ctx), await examineMail(ctx)];
}

async function examineCounts(ctx: ReadContext): Promise<Finding> {
  const wrong = await findWrongCounts(ctx);
  if (wrong.length === 0) return { what: 'counts', state: 'ok', detail: 'are what there is' };
  const detail = wrong.map(({ what, rows, example }) => `${what} (${rows}, e.g. ${example})`).join('; ');
  return { what: 'counts', state: 'wrong', detail: `differ from what there is: ${detail}` };
}

async function examineClock(ctx: ReadContext): Promise<Finding> {
  const { rows } = await sql<{ newest: string | null }>`select max(newest) as newest from (
    select max(created_at) as newest from agents union all select max(updated_at) from posts
  ) as times`.execute(ctx.db);
  const newest = rows[0]?.newest ?? null;
  const ahead = newest !== null && newest > timestamp(ctx.now() + clocksMayDiffer);
  return ahead
    ? { what: 'clock', state: 'wrong', detail: `something was stored at ${newest}, which is yet to come` }
    : { what: 'clock', state: 'ok', detail: `is at ${timestamp(ctx.now())}, after all that is stored` };
}

async function examineMail(ctx: ReadContext): Promise<Finding> {
  const waiting = await countWaitingMail(ctx);
  const late = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.min('created_at').as('oldest'))
    .where('due_at', 'is not', null)
    .where('created_at', '<', timestamp(ctx.now() - mailMayWait))
    .executeTakeFirst();
  const given = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('dead_at', 'is not', null)
    .executeTakeFirstOrThrow();
  const oldest = late?.oldest ?? null;
  const since = oldest === null ? '' : `, the oldest since ${oldest}: see the log`;
  const forSmtp = ctx.config.mail.smtpUrl === null ? await countMailForSmtp(ctx) : 0;
  const queued = forSmtp === 0 ? '' : `, ${forSmtp} queued for SMTP: set SMTP_URL to send them`;
  const detail = `${waiting} messages wait${since}${queued}; ${given.count} of the last 30 days were given up`;
  return { what: 'mail', state: oldest === null && forSmtp === 0 ? 'ok' : 'look', detail };
}
