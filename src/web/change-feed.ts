import { publicly, type Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { newestChange, readChanges } from '../services/changes.ts';
import type { PageCache } from './page-cache.ts';

/** Ms between two looks for the changes of other processes: half of what they may be behind. */
const lookEvery = 400;

/**
 * Numbers are given when a change is written and seen when it is committed, ms. As long as changes are sure to
 * be kept, since a commit can wait for a synchronous standby that is gone until somebody brings it back.
 */
const commitsWithin = 300_000;

/** Changes are kept for ten minutes; a process that has not looked for half of that may have missed some. */
const forgottenAfter = 300_000;

/** A gap larger than this is not commits under way but the start of a new database or a restored one. */
const largestGap = 1_000;

export type ChangeFeed = {
  /** Looks for changes now; resolves when the cache knows of all that were committed before the call. */
  look(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Keeps a cache true to the database: what this process commits is dropped before the caller is answered, what
 * others commit within a second. Numbers may become visible out of order (PostgreSQL), so a gap is looked at
 * again until it is filled or too old to be a commit under way.
 */
export function followChanges(ctx: Context, cache: PageCache): ChangeFeed {
  const missing = new Map<number, number>();
  let last: number | null = null;
  let version = -1;
  let lookedAt = ctx.now();
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let looking = Promise.resolve();

  ctx.engine.onCommit(({ changed }) => cache.drop(changed));

  async function catchUp(): Promise<void> {
    const before = ctx.engine.version();
    if (before === version && missing.size === 0) {
      lookedAt = ctx.now();
      return;
    }
    if (ctx.now() - lookedAt > forgottenAfter) cache.clear();
    const { after, changes } = await readOn(ctx).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      // Where no primary is, what is left of the database shows its changes late, but shows them.
      return readOn(publicly(ctx));
    });
    if (changes.length > 0) {
      // First, so that a page is not filled again from a replica that lacks what it was dropped for.
      ctx.engine.catchUp();
      cache.drop(changes.map((change) => change.tag));
    }
    for (const { seq } of changes) note(seq);
    last ??= after;
    for (const [seq, since] of missing) if (ctx.now() - since > commitsWithin) missing.delete(seq);
    version = before;
    lookedAt = ctx.now();
  }

  async function readOn(source: Context) {
    const after = last ?? Math.max(0, (await newestChange(source)) - largestGap);
    return { after, changes: await readChanges(source, { after, missed: [...missing.keys()] }) };
  }

  function note(seq: number): void {
    missing.delete(seq);
    if (last !== null && seq <= last) return;
    if (last !== null && seq - last <= largestGap)
      for (let gap = last + 1; gap < seq; gap++) missing.set(gap, ctx.now());
    last = seq;
  }

  async function look(): Promise<void> {
    await looking;
    looking = tryToCatchUp();
    await looking;
  }

  async function tryToCatchUp(): Promise<void> {
    try {
      await catchUp();
      failing = false;
    } catch (error) {
      if (!failing)
        ctx.log.warn({ err: error }, 'changes of other processes cannot be read: pages may be old');
      failing = true;
    }
  }

  async function round(): Promise<void> {
    await look();
    if (!stopped) timer = setTimeout(() => void round(), lookEvery).unref();
  }
  void round();

  return {
    look,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await looking;
    },
  };
}
