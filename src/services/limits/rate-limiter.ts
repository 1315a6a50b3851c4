import type { Context } from '../../context.ts';
import { Unconfirmed } from '../../db/database.ts';
import type { Rate } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { afterCall, rateStatus, rateWindow, readWindow, settleCalls, type Window } from './rate-window.ts';

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
    // They may be stored: counted once more, they would refuse calls within the limit.
    if (error instanceof Unconfirmed)
      for (const [i, entry] of counted.entries()) entry.pending -= batch[i]?.units ?? 0;
    ctx.log.debug({ err: error }, 'calls stay uncounted in the database until it can be written');
  }
}
