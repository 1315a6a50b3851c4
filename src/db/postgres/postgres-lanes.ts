import { batchSize, type Unit } from './postgres-batch.ts';

/** How long a write waits for its turn, ms: as long as for a lock. */
const patience = 15_000;

/** Runs writes and those that `another` gives, and resolves when all of them are settled. */
type RunBatch = (batch: Unit[], another: () => Unit | undefined) => Promise<void>;

/**
 * Gives writes their turns, on at most `most` connections at a time. Of those about the same agent one batch runs at
 * once: the others would only wait for its lock, and share the next one, or join it. What waits for a connection shares
 * the next that is free. `late` is what one that has waited too long is refused with.
 */
export function createLanes(runBatch: RunBatch, most: number, late: () => Error) {
  const waiting: { readonly unit: Unit; readonly since: number }[] = [];
  const busy = new Set<string>();
  let running = 0;
  let timer: NodeJS.Timeout | undefined;

  function take(isMeant: (unit: Unit) => boolean): Unit | undefined {
    const at = waiting.findIndex(({ unit }) => isMeant(unit));
    return at === -1 ? undefined : waiting.splice(at, 1)[0]?.unit;
  }

  function isFree({ about }: Unit): boolean {
    return about === null || !busy.has(about);
  }

  function startAll(): void {
    while (running < most) {
      const first = take(isFree);
      if (!first) return;
      void run(first.locks === null ? [first] : withOthers(first));
    }
  }

  /** A free connection's part of what may share one, in the order in which every process takes locks. */
  function withOthers(first: Unit): Unit[] {
    const mayShare = (unit: Unit) => unit.locks !== null && isFree(unit);
    const sharing = 1 + waiting.filter(({ unit }) => mayShare(unit)).length;
    const part = Math.min(batchSize, Math.ceil(sharing / (most - running)));
    const batch = [first];
    while (batch.length < part) {
      const other = take(mayShare);
      if (!other) break;
      batch.push(other);
    }
    return batch.toSorted(byAbout);
  }

  async function run(batch: Unit[]): Promise<void> {
    const abouts = new Set(batch.map(({ about }) => about).filter((about) => about !== null));
    running += 1;
    for (const about of abouts) busy.add(about);
    await runBatch(batch, () => take(({ about }) => about !== null && abouts.has(about)));
    for (const about of abouts) busy.delete(about);
    running -= 1;
    startAll();
  }

  function refuseLate(): void {
    const oldest = performance.now() - patience;
    while (waiting[0] && waiting[0].since <= oldest) waiting.shift()?.unit.done.reject(late());
    timer = waiting[0] && setTimeout(refuseLate, waiting[0].since - oldest).unref();
  }

  return {
    waiting: () => waiting.length,
    run(unit: Unit): void {
      waiting.push({ unit, since: performance.now() });
      timer ??= setTimeout(refuseLate, patience).unref();
      startAll();
    },
  };
}

function byAbout({ about: a }: Unit, { about: b }: Unit): number {
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1;
}
