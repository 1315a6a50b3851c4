import { publicly, type Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { newestChange, readChanges } from '../../services/changes.ts';
import type { PageCache } from './page-cache.ts';

/** Ms between two looks for other processes' changes: less than half of how far behind pages may be. */
const lookEvery = 400;

/**
 * How long a change may stay uncommitted after its number was assigned, ms. As long as changes are sure to be
 * stored, since a commit can wait for a synchronous standby that is down until somebody brings it back.
 */
const commitsWithin = 300_000;

/** Changes are kept for ten minutes; a process that has not looked for half of that may have missed some. */
const forgottenAfter = 300_000;

/** A larger gap is not commits in progress but the start of a new or restored database. */
const largestGap = 1_000;

export type ChangeFeed = {
  /** Looks for changes now; resolves when the cache reflects all that were committed before the call. */
  look(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Keeps a cache true to the database: what this process changes is dropped before the caller is answered, what
 * others change within a second. Numbers may become visible out of order (PostgreSQL), so a gap is checked again
 * until it is filled or too old to be a commit in progress.
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
    if (ctx.engine.primaryChanged()) startAnew();
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
      // First, so that a page is not made again from a replica that lacks the change it was dropped for.
      ctx.engine.catchUp();
      cache.drop(changes.map((change) => change.tag));
    }
    for (const { seq } of changes) note(seq);
    last ??= after;
    for (const [seq, since] of missing) if (ctx.now() - since > commitsWithin) missing.delete(seq);
    version = before;
    lookedAt = ctx.now();
  }

  /** What was made meanwhile may be old for good, and the numbers of another server's changes may begin lower. */
  function startAnew(): void {
    cache.clear();
    missing.clear();
    last = null;
    version = -1;
  }

  async function readOn(source: Context) {
    const after = last ?? Math.max(0, (await newestChange(source)) - largestGap);
    return { after, changes: await readChanges(source, { after, missed: [...missing.keys()] }) };
  }

  function note(seq: number): void {
    missing.delete(seq);
    if (last !== null && seq <= last) return;
    if (last !== null && seq - last > largestGap) cache.clear();
    else if (last !== null) for (let gap = last + 1; gap < seq; gap++) missing.set(gap, ctx.now());
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
