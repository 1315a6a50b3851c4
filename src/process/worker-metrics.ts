import { readMetrics } from '../platform/measured.ts';
import { merged, metricsText, totalsOf, type Family } from '../platform/metrics.ts';
import { snapshotPath } from './inside.ts';
import type { Ask } from './questions.ts';

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** Merges the metrics of workers, also of those that have ended. */
export function createWorkerMetrics() {
  /** What each worker said last. */
  const known = new Map<Ask, Family[]>();
  let left: Family[] = [];

  async function read(ask: Ask): Promise<void> {
    const answer = await ask({ path: snapshotPath, query: '' });
    if (answer?.status === 200) known.set(ask, JSON.parse(answer.text) as Family[]);
  }

  return {
    /** All that these workers and their predecessors have counted. */
    async text(asks: readonly Ask[]): Promise<string> {
      await Promise.all(asks.map(read));
      const own = readMetrics().filter(({ name }) => name.startsWith('masthead_worker'));
      return metricsText(merged([left, ...known.values(), own]));
    },
    /** What a worker that is about to end has counted until now. */
    note: read,
    /** A worker has ended: what it held is gone, what it counted is not. */
    gone(ask: Ask): void {
      left = merged([left, totalsOf(known.get(ask) ?? [])]);
      known.delete(ask);
    },
  };
}
