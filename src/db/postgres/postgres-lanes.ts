import type { Unit } from './postgres-batch.ts';

/** How long a write waits for its turn, ms: as long as for a lock. */
const patience = 15_000;

/** Runs a write and those that `another` gives, and resolves when all of them are settled. */
type RunBatch = (first: Unit, another: () => Unit | undefined) => Promise<void>;

/**
 * Gives writes their turns, on at most `most` connections at a time. Of those about the same agent one batch runs at
 * once: the others would only wait for its lock, and share the next one, or join it. `late` is what one that has waited
 * too long is refused with.
 */
export function createLanes(runBatch: RunBatch, most: number, late: () => Error) {
  const waiting: { readonly unit: Unit; readonly since: number }[] = [];
  const busy = new Set<string>();
  let running = 0;
  let timer: NodeJS.Timeout | undefined;

  function take(isMeant: (about: string | null) => boolean): Unit | undefined {
    const at = waiting.findIndex(({ unit }) => isMeant(unit.about));
    return at === -1 ? undefined : waiting.splice(at, 1)[0]?.unit;
  }

  function startAll(): void {
    while (running < most) {
      const first = take((about) => about === null || !busy.has(about));
      if (!first) return;
      void run(first);
    }
  }

  async function run(first: Unit): Promise<void> {
    const { about } = first;
    running += 1;
    if (about !== null) busy.add(about);
    await runBatch(first, () => (about === null ? undefined : take((other) => other === about)));
    if (about !== null) busy.delete(about);
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
