import { sql, type Insertable } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, type CountCall, type Rate, type Ticket } from '../../db/write.ts';
import { prepared } from '../../db/prepared.ts';
import type { Tables } from '../../db/tables.ts';

/** The window of every limit, ms: a call counts from the moment it was made until an hour later. */
export const rateWindow = 3_600_000;

/** Calls of one subject that are inside the window. */
export type Window = {
  readonly used: number;
  /** Epoch ms of the oldest counted call; null when there is none. */
  readonly oldest: number | null;
  /** Epoch ms and running number of the newest row, also when it has left the window. */
  readonly newest: { readonly at: number; readonly n: number } | null;
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
  await append(tx, { policy, subject, units: 1, at: tx.now() }, window);
  return afterCall(rate);
};

/** The rate status after a call that was allowed: the first one of a window leaves it an hour later. */
export function afterCall({ remaining, reset }: Rate): Rate {
  return { allowed: true, remaining: remaining - 1, reset: reset || rateWindow / 1000 };
}

/** Counts a ticket by itself: for calls that failed before they reached an operation of their own. */
export const countOnly = defineWrite('limits.count', async () => undefined);

type Subject = Pick<Ticket, 'policy' | 'subject'>;

/** Calls of one process to be added to a stored count, e.g. those of the last second. */
type Calls = Subject & { readonly units: number; readonly at: number };

/** Adds calls that have already passed, and returns the window of each subject, in the same order. */
export const settleCalls = defineWrite('limits.settle', async (tx, batch: readonly Calls[]) => {
  const windows: Window[] = [];
  // The same order in all processes, so that two batches cannot deadlock.
  const inOrder = [...batch.entries()].toSorted(([, a], [, b]) => (a.subject < b.subject ? -1 : 1));
  for (const [index, entry] of inOrder) {
    const window = await lockWindow(tx, entry);
    await append(tx, entry, window);
    const { used, oldest } = window;
    windows[index] = { ...window, used: used + entry.units, oldest: oldest ?? entry.at };
  }
  return windows;
});

async function lockWindow(tx: WriteContext, { policy, subject }: Subject): Promise<Window> {
  await tx.lock(`rate:${policy}:${subject}`);
  return readWindow(tx, policy, subject);
}

/** The rate status before a call: `remaining` still includes that call. */
export function rateStatus(now: number, window: Window, quota: number): Rate {
  const remaining = Math.max(0, quota - window.used);
  return {
    allowed: remaining > 0,
    remaining,
    reset: window.oldest === null ? 0 : Math.max(1, Math.ceil((window.oldest + rateWindow - now) / 1000)),
  };
}

/** The newest row of a subject, and what was before its first one inside the window: null without one. */
type Ends = { at: number; n: number; oldest: number | null; before: number | null };

/** Counted calls of a subject within the hour that ends now. */
export async function readWindow(ctx: ReadContext, policy: string, subject: string): Promise<Window> {
  const [ends] = await findEnds(ctx.db, { policy, subject, cutoff: ctx.now() - rateWindow });
  if (!ends) return { used: 0, oldest: null, newest: null };
  const { at, n, oldest, before } = ends;
  return { used: before === null ? 0 : n - before, oldest, newest: { at, n } };
}

const findEnds = prepared(
  (db, { policy, subject, cutoff }: { policy: string; subject: string; cutoff: number }) =>
    sql<Ends>`select newest.at, newest.n, first.at as oldest, first.n - first.units as before
    from (select at, n from rate_calls where policy = ${policy} and subject = ${subject}
      order by at desc, n desc limit 1) as newest
    left join (select at, n, units from rate_calls where policy = ${policy} and subject = ${subject}
      and at > ${cutoff} order by at, n limit 1) as first on true`.compile(db),
);

async function append(tx: WriteContext, calls: Calls, { newest }: Window): Promise<void> {
  const { at, n } = newest ?? { at: 0, n: 0 };
  await insertCalls(tx.db, { ...calls, at: Math.max(calls.at, at), n: n + calls.units });
}

const insertCalls = prepared((db, row: Insertable<Tables['rate_calls']>) =>
  db.insertInto('rate_calls').values(row).compile(),
);
