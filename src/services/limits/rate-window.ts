import { sql } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import { prepared, preparedInsert } from '../../db/prepared.ts';
import { defineWrite, type CountCall, type Rate, type Ticket } from '../../db/write.ts';
import { hour } from '../../platform/durations.ts';

/** The window of every limit, ms: a call counts from the moment it was made until an hour later. */
export const rateWindow = hour;
/**
 * A time that lies further ahead than this, ms, was stored while the clock was wrong. Those of two machines differ a
 * little, and of two waiting writes the later may be stored first.
 */
export const clocksMayDiffer = 60_000;

/** Calls of one subject that are inside the window. */
export type Window = {
  readonly used: number;
  /** Epoch ms of the oldest counted call; null when there is none. */
  readonly oldest: number | null;
  /** Epoch ms and running number of the newest row, also when it has left the window. */
  readonly newest: { readonly at: number; readonly n: number } | null;
  /** Whether there are calls of a clock that was ahead: they do not count. */
  readonly ahead?: true;
};

/**
 * Counts one call in a true sliding window, in the transaction that it is part of: exact across processes
 * and restarts. Rows are numbered per subject, so two index look-ups count any number of calls.
 */
export const countCall: CountCall = async (tx, ticket) => {
  if (ticket.quota === 0) return { allowed: true, remaining: 0, reset: 0 };
  const window = await lockWindow(tx, ticket);
  const rate = rateStatus(tx.now(), window, ticket.quota);
  if (!rate.allowed) return rate;
  const { policy, subject } = ticket;
  append(tx, { policy, subject, units: 1, at: tx.now() }, window);
  return afterCall(rate);
};

/** The rate status after a call that was allowed: the first one of a window leaves it an hour later. */
export function afterCall({ remaining, reset }: Rate): Rate {
  return { allowed: true, remaining: remaining - 1, reset: reset || rateWindow / 1000 };
}

/** Counts a ticket by itself: for calls that failed before they reached an operation of their own. */
export const countOnly = defineWrite('limits.count', async () => undefined);

/** Calls of one process to be added to a stored count, e.g. those of the last second. */
type Calls = Pick<Ticket, 'policy' | 'subject'> & { readonly units: number; readonly at: number };

/** Adds calls that have already passed, and returns the window of each subject, in the same order. */
export const settleCalls = defineWrite('limits.settle', async (tx, batch: readonly Calls[]) => {
  const windows: Window[] = [];
  // The same order in all processes, so that two batches cannot deadlock.
  const inOrder = [...batch.entries()].toSorted(([, a], [, b]) => (a.subject < b.subject ? -1 : 1));
  for (const [index, entry] of inOrder) {
    const calls = { ...entry, at: Math.min(entry.at, tx.now()) };
    windows[index] = append(tx, calls, await lockWindow(tx, entry));
  }
  return windows;
});

async function lockWindow(
  tx: WriteContext,
  { policy, subject }: Pick<Ticket, 'policy' | 'subject'>,
): Promise<Window> {
  const name = ticketLock({ policy, subject });
  await tx.lock(name);
  const known = tx.batchCache.get(name) as Window | undefined;
  if (known && stillHolds(tx, known)) return known;
  const window = await readWindow(tx, policy, subject);
  if (window.ahead) {
    // Counted while the clock was ahead.
    await tx.db
      .deleteFrom('rate_calls')
      .where('at', '>', tx.now() + clocksMayDiffer)
      .where('policy', '=', policy)
      .where('subject', '=', subject)
      .execute();
  }
  return window;
}

/** Whether a window that was read before is as it was, where nobody has counted since: time alone may have changed it. */
export function stillHolds(ctx: Pick<ReadContext, 'now'>, { oldest, newest }: Window): boolean {
  const isAhead = newest !== null && newest.at > ctx.now() + clocksMayDiffer;
  return !isAhead && (oldest ?? 0) > ctx.now() - rateWindow;
}

/** The name of what is locked to count a call. */
export function ticketLock({ policy, subject }: Pick<Ticket, 'policy' | 'subject'>): string {
  return `rate:${policy}:${subject}`;
}

/** The rate status before a call: `remaining` still includes that call. */
export function rateStatus(now: number, window: Window, quota: number): Rate {
  const remaining = Math.max(0, quota - window.used);
  return {
    allowed: remaining > 0,
    remaining,
    reset:
      window.oldest === null
        ? 0
        : Math.max(1, Math.ceil((Math.min(window.oldest, now) + rateWindow - now) / 1000)),
  };
}

/** The newest row of a subject, and what was before its first one inside the window: null without one. */
type Ends = { at: number; n: number; oldest: number | null; before: number | null };

/** Counted calls of a subject within the hour that ends now. */
export async function readWindow(ctx: ReadContext, policy: string, subject: string): Promise<Window> {
  const cutoff = ctx.now() - rateWindow;
  const latest = ctx.now() + clocksMayDiffer;
  let [ends] = await findEnds(ctx.db, { policy, subject, cutoff, latest: Number.MAX_SAFE_INTEGER });
  const ahead = ends && ends.at > latest ? ({ ahead: true } as const) : {};
  if (ahead.ahead) [ends] = await findEnds(ctx.db, { policy, subject, cutoff, latest });
  if (!ends) return { used: 0, oldest: null, newest: null, ...ahead };
  const { at, n, oldest, before } = ends;
  return { used: before === null ? 0 : n - before, oldest, newest: { at, n }, ...ahead };
}

const findEnds = prepared(
  (
    db,
    { policy, subject, cutoff, latest }: { policy: string; subject: string; cutoff: number; latest: number },
  ) =>
    sql<Ends>`select newest.at, newest.n, first.at as oldest, first.n - first.units as before
    from (select at, n from rate_calls where policy = ${policy} and subject = ${subject} and at <= ${latest}
      order by at desc, n desc limit 1) as newest
    left join (select at, n, units from rate_calls where policy = ${policy} and subject = ${subject}
      and at > ${cutoff} and at <= ${latest} order by at, n limit 1) as first on true`.compile(db),
);

function append(tx: WriteContext, calls: Calls, { used, oldest, newest }: Window): Window {
  const { units } = calls;
  const at = Math.max(calls.at, newest?.at ?? 0);
  const n = (newest?.n ?? 0) + units;
  insertCalls(tx.db, [{ policy: calls.policy, subject: calls.subject, units, at, n }]);
  const window = { used: used + units, oldest: oldest ?? at, newest: { at, n } };
  tx.batchCache.set(ticketLock(calls), window);
  return window;
}

const insertCalls = preparedInsert('rate_calls');
