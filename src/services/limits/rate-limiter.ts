import { sql, type Insertable } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import {
  defineWrite,
  prepared,
  preparedChange,
  type CountCall,
  type Rate,
  type Ticket,
} from '../../db/write.ts';
import { AppError } from '../../errors.ts';

/** How old a cached count may be, ms, before it is read or settled again. */
const freshFor = 1000;
/** Subjects without calls are forgotten after this long, ms. */
const idleFor = 120_000;
/** Subjects that one write settles at most: each takes a lock, and PostgreSQL has a few thousand in all. */
const mostInBatch = 250;

type Subject = {
  readonly policy: string;
  readonly subject: string;
  window: Window;
  /** When the window was read, epoch ms. */
  readAt: number;
  /**
   * Calls not in the database yet; below zero where one that is there was taken back. The time of the first of them.
   */
  pending: number;
  pendingSince: number;
  settling: Promise<void> | null;
};

/**
 * Limits calls without a database write each: a process lets them pass from memory and adds them to the stored count
 * every second, or when it holds its share of the error. Never refuses within the limit; `processes` of them admit at
 * most 2 % more: 1 % unsettled in all, and as much for batches that leave the window early.
 */
export function createRateLimiter(ctx: Context, processes: () => number) {
  const subjects = new Map<string, Subject>();

  async function count(policy: string, subject: string, quota: number): Promise<Rate> {
    if (quota === 0) return { allowed: true, remaining: 0, reset: 0 };
    const entry = await find(policy, subject);
    // Where nothing can be written, calls still leave the window an hour after they were made.
    if (entry.pending > 0 && ctx.now() - entry.pendingSince >= rateWindow) entry.pending = 0;
    entry.pendingSince = Math.min(entry.pendingSince, ctx.now());
    // The cached count may be stale: only a fresh one refuses.
    if (!rateOf(ctx, entry, quota).allowed && !isFresh(ctx, entry)) await settle([entry]);
    const rate = rateOf(ctx, entry, quota);
    if (!rate.allowed) return rate;
    if (entry.pending <= 0) entry.pendingSince = ctx.now();
    entry.pending += 1;
    if (entry.pending >= Math.max(1, Math.floor((quota * 0.01) / processes()))) await settle([entry]);
    return afterCall(rate);
  }

  /** Takes back a call that was counted a moment ago. */
  function takeBack(policy: string, subject: string): void {
    const entry = subjects.get(`${policy} ${subject}`);
    if (entry) entry.pending -= 1;
  }

  /** The rate status of a subject, without counting a call. */
  async function peek(policy: string, subject: string, quota: number): Promise<Rate> {
    return rateOf(ctx, await find(policy, subject), quota);
  }

  async function find(policy: string, subject: string): Promise<Subject> {
    const key = `${policy} ${subject}`;
    const known = subjects.get(key);
    if (known && (isRecent(ctx, known) || known.pending > 0)) return known;
    const unread = { policy, subject, window: { used: 0, oldest: null, newest: null } };
    const window = await readOrKeep(ctx, known ?? unread);
    const entry = subjects.get(key) ?? { ...unread, readAt: 0, pending: 0, pendingSince: 0, settling: null };
    if (entry.pending <= 0) Object.assign(entry, { window, readAt: ctx.now() });
    subjects.set(key, entry);
    return entry;
  }

  /** Adds the entries' pending calls to the stored count, in one write. If that fails they are settled later. */
  async function settle(entries: readonly Subject[]): Promise<void> {
    for (const { settling } of entries) await settling?.catch(() => undefined);
    const due = entries.filter((entry) => entry.settling === null);
    if (due.length === 0) return;
    const settling = settleNow(ctx, due).finally(() => {
      for (const entry of due) entry.settling = null;
    });
    for (const entry of due) entry.settling = settling;
    await settling;
  }

  const timer = setInterval(() => {
    const now = ctx.now();
    for (const [key, entry] of subjects)
      if (entry.pending <= 0 && Math.abs(now - entry.readAt) > idleFor) subjects.delete(key);
    settle([...subjects.values()].filter((entry) => entry.pending > 0)).catch((error: unknown) => {
      ctx.log.warn(
        { err: error },
        'calls could not be counted in the database; they are kept for the next time',
      );
    });
  }, freshFor);
  timer.unref();

  return {
    count,
    takeBack,
    peek,
    /** Settles everything and stops. */
    async close(): Promise<void> {
      clearInterval(timer);
      await settle([...subjects.values()]);
    },
  };
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

function rateOf(ctx: Context, { window, pending, pendingSince }: Subject, quota: number): Rate {
  const oldest = window.oldest ?? (pending > 0 ? pendingSince : null);
  return rateStatus(ctx.now(), { ...window, used: window.used + pending, oldest }, quota);
}

function isFresh(ctx: Context, entry: Subject): boolean {
  const leaves = (entry.window.oldest ?? 0) + rateWindow;
  return entry.pending <= 0 && isRecent(ctx, entry) && ctx.now() < leaves;
}

/** Whether the window was read a moment ago. A clock that was put back makes it look read in the future. */
function isRecent(ctx: Context, { readAt }: Subject): boolean {
  const age = ctx.now() - readAt;
  return age >= 0 && age < freshFor;
}

async function settleNow(ctx: Context, entries: readonly Subject[]): Promise<void> {
  const counted = entries.filter((entry) => entry.pending > 0);
  for (const entry of entries) {
    if (entry.pending > 0) continue;
    const window = await readOrKeep(ctx, entry);
    Object.assign(entry, { window, readAt: ctx.now() });
  }
  for (let i = 0; i < counted.length; i += mostInBatch)
    await settleBatch(ctx, counted.slice(i, i + mostInBatch));
}

/** The window as it is now. Where nothing can be read, the last known one: replicas and caches still answer. */
async function readOrKeep(
  ctx: Context,
  { policy, subject, window }: Pick<Subject, 'policy' | 'subject' | 'window'>,
): Promise<Window> {
  try {
    return await readWindow(ctx, policy, subject);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return window;
  }
}

async function settleBatch(ctx: Context, counted: readonly Subject[]): Promise<void> {
  const batch = counted.map(({ policy, subject, pending, pendingSince }) => ({
    policy,
    subject,
    units: pending,
    at: pendingSince,
  }));
  try {
    const windows = await ctx.engine.write(settleCalls, batch);
    for (const [i, entry] of counted.entries()) {
      const [pending, now] = [entry.pending - (batch[i]?.units ?? 0), ctx.now()];
      Object.assign(entry, { pending, pendingSince: now, window: windows[i], readAt: now });
    }
  } catch (error) {
    ctx.log.debug({ err: error }, 'calls stay uncounted in the database until it can be written');
  }
}

/** The window of every limit, ms: a call counts from the moment it was made until an hour later. */
export const rateWindow = 3_600_000;
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
function afterCall({ remaining, reset }: Rate): Rate {
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
  const known = tx.known.get(name) as Window | undefined;
  // Nobody else counts meanwhile; only time changes it.
  if (known && (known.oldest ?? 0) > tx.now() - rateWindow) return known;
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
  insertCalls(tx.db, { ...calls, at, n });
  const window = { used: used + units, oldest: oldest ?? at, newest: { at, n } };
  tx.known.set(ticketLock(calls), window);
  return window;
}

const insertCalls = preparedChange((db, row: Insertable<Tables['rate_calls']>) =>
  db.insertInto('rate_calls').values(row).compile(),
);
