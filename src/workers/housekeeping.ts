import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { watchClock } from '../platform/clock-watch.ts';
import { createLoop } from '../platform/loop.ts';
import { StartError, errorMessage } from '../rules/failure.ts';
import { settleCommunity } from '../services/community/settle.ts';
import { sweepFiles } from '../services/media/picture-sweep.ts';
import { hashStored } from '../services/posts/duplicates.ts';
import { indexRenamed } from '../services/posts/renamed.ts';
import { publishDue } from '../services/publication/due.ts';
import { expire } from '../services/upkeep/expiry.ts';
import type { Between } from '../services/upkeep/one-by-one.ts';
import { areTermsLeft, eraseTerms, farewell, heartbeat, sweep } from '../services/upkeep/maintenance.ts';
import { day, hour } from '../platform/durations.ts';

/** Milliseconds between heartbeats, and while they fail. */
const beatEvery = 5_000;
const retryEvery = 1_000;
/** Milliseconds until the first sweep, at most, and between two, on average. */
const firstSweepWithin = 60_000;
const sweepEvery = 600_000;
/** Milliseconds between checks for deleted texts that are to be erased, and between two parts of that work. */
const eraseEvery = 10_000;
const erasePause = 20;
/** Milliseconds until votes, comments and new names that are not settled yet are first looked for, and between two looks. */
const firstSettleAfter = 1_000;
const settleEvery = 10_000;
/** Milliseconds between two looks for what has been kept long enough, and for posts without a hash. */
const expireEvery = 60_000;
/** Milliseconds within which files that no picture is stored in are first looked for, and between two looks, on average. */
const firstLookWithin = hour;
const lookEvery = day;
/** Milliseconds between two looks for posts that are due. */
const publishEvery = 1_000;
/** An erasure may read the whole search index, so the next waits this many times as long as it took. */
const eraseRarely = 20;

/**
 * Writes this process's heartbeat, which also probes whether the database can be written, and deletes expired
 * data. Throws StartError when the first heartbeat fails, unless the disk is full or writes are refused anyway.
 */
export async function startHousekeeping(ctx: Context) {
  const self = { id: randomUUID() };
  let processes = 1;
  let closing = false;
  let isFull = false;
  let fault = await beat();
  if (isFull) ctx.log.warn({}, 'the disk is full: only reading and deleting work until there is room');
  else if (fault !== null && ctx.engine.readOnly() === null)
    throw new StartError(`The database cannot be written: ${fault} Mend that, or start with READ_ONLY=on.`);

  const beats = createLoop(async () => {
    const before = fault;
    fault = await beat();
    if (fault !== null && before === null) {
      ctx.log.warn({ reason: fault }, 'the database cannot be written: changes are refused until it can');
    }
    if (fault === null && before !== null) ctx.log.info({}, 'the database can be written again');
    return beatDelay();
  }, beatDelay());

  const isTrusted = watchClock(
    () => ctx.now(),
    (by) => {
      const hours = Math.round(by / hour);
      ctx.log.warn({ hours }, 'the clock jumped ahead: nothing is deleted by its age for an hour');
    },
  );

  const chores = startChores(ctx, isTrusted, () => closing);

  /** The reason why it failed, or null. */
  async function beat(): Promise<string | null> {
    try {
      processes = await ctx.engine.write(heartbeat, self);
      isFull = false;
      return null;
    } catch (error) {
      isFull = error instanceof AppError && error.code === 'storage_full';
      return errorMessage(error);
    }
  }

  function beatDelay(): number {
    return fault === null ? beatEvery : retryEvery;
  }

  return {
    /** Processes that serve this database, this one included. */
    processes: () => processes,
    /** Whether the last heartbeat could be written. */
    writable: () => fault === null,
    /** Stops, and tells the other processes so. */
    async close(): Promise<void> {
      closing = true;
      await Promise.all([beats, ...chores].map((loop) => loop.stop()));
      // Without this, the process is forgotten after 15 s without a heartbeat.
      await ctx.engine.write(farewell, self).catch(() => undefined);
    },
  };
}

/** Starts what is done again and again, each at its own pace. */
function startChores(ctx: Context, isTrusted: () => boolean, mustStop: () => boolean) {
  const attempt = createAttempts(ctx);
  const sweeps = createLoop(async () => {
    if (isTrusted() && (await attempt('nothing was swept', async () => sweepOnce(ctx)))) return erasePause;
    // Jitter, so that processes that started together do not sweep together.
    return sweepEvery * (0.75 + Math.random() / 2);
  }, Math.random() * firstSweepWithin);

  const erasures = createLoop(async () => {
    const began = performance.now();
    await attempt('terms of deleted posts were not erased', async () => eraseDeletedTerms(ctx, mustStop));
    return Math.max(eraseEvery, eraseRarely * (performance.now() - began));
  }, eraseEvery);

  const settling = createLoop(async () => {
    await inParts('votes and comments were not counted', (between) => settleCommunity(ctx, between));
    return settleEvery;
  }, firstSettleAfter);

  // By itself: while agents are renamed again and again, it does not end.
  const renames = createLoop(async () => {
    await inParts('posts were not indexed by a new name', (between) => indexRenamed(ctx, between));
    return settleEvery;
  }, firstSettleAfter);

  const expiries = createLoop(async () => {
    await byAge('what was kept long enough was not erased', (between) => expire(ctx, between));
    await inParts('posts were not hashed', (between) => hashStored(ctx, between));
    return expireEvery;
  }, Math.random() * firstSweepWithin);

  const publications = createLoop(async () => {
    await inParts('posts that are due were not published', (between) => publishDue(ctx, between));
    return publishEvery;
  }, publishEvery);

  const looks = createLoop(async () => {
    await byAge('the folder of pictures was not examined', (between) => sweepFiles(ctx, between));
    return lookEvery * (0.75 + Math.random() / 2);
  }, Math.random() * firstLookWithin);

  /** Does work in many writes that deletes what is old by the clock, until that jumps. */
  async function byAge(failed: string, work: (between: Between) => Promise<void>) {
    if (isTrusted()) await inParts(failed, (between) => work(async () => (await between()) && isTrusted()));
  }

  /** Does work in many writes that any later check can go on with. */
  async function inParts(failed: string, work: (between: Between) => Promise<void>) {
    let began = performance.now();
    const giveWay = async () => {
      // As long as the last write took, so that others have at least half of the time.
      await setTimeout(performance.now() - began);
      began = performance.now();
      return !mustStop();
    };
    await attempt(failed, async () => work(giveWay));
  }

  return [sweeps, erasures, settling, renames, expiries, publications, looks];
}

/**
 * The function that does work while writes are accepted: null where it fails, which a later check makes good. `failed` says
 * what that is, and is a warning once, until the work succeeds again.
 */
function createAttempts({ engine, log }: Context) {
  const failing = new Set<string>();
  return async <T>(failed: string, work: () => Promise<T>): Promise<T | null> => {
    if (engine.readOnly() !== null) return null;
    try {
      const result = await work();
      if (failing.delete(failed)) log.info({ failed }, 'upkeep that had failed is done again');
      return result;
    } catch (error) {
      const isNew = !isToldElsewhere(error) && !failing.has(failed);
      if (isNew) failing.add(failed);
      log[isNew ? 'warn' : 'debug']({ err: error }, `${failed}; the next check tries again`);
      return null;
    }
  };
}

/** Failures of a database that takes nothing at present, which has lines of its own. */
const ofDatabase: readonly string[] = ['unavailable', 'read_only', 'storage_full'];

function isToldElsewhere(error: unknown): boolean {
  if (error instanceof AppError) return ofDatabase.includes(error.code);
  return error instanceof Error && isToldElsewhere(error.cause);
}

async function eraseDeletedTerms(ctx: Context, mustStop: () => boolean): Promise<void> {
  if (!(await areTermsLeft(ctx))) return;
  let done = await ctx.engine.write(eraseTerms, { part: 'first' });
  while (!done && !mustStop()) {
    await setTimeout(erasePause);
    done = await ctx.engine.write(eraseTerms, { part: 'next' });
  }
}

/** Whether there may be more to sweep at once. */
async function sweepOnce(ctx: Context): Promise<boolean> {
  const { mailGivenUp, more = false } = await ctx.engine.write(sweep, null);
  if (mailGivenUp > 0) {
    ctx.log.error({ messages: mailGivenUp }, 'mail was given up: it could not be delivered within 7 days');
  }
  return more;
}
