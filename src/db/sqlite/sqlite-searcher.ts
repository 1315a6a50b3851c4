import { Worker } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import type { SearchQuery } from '../../rules/search-terms.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';
import type { Match } from '../full-text.ts';
import { revive } from '../write.ts';
import type { SearchAnswer, SearchRequest } from './search-thread.ts';

/** Searches that may wait for the thread before callers are asked to come back. */
const mostWaiting = 100;

type Waiting = {
  readonly resolve: (matches: readonly Match[]) => void;
  readonly reject: (error: Error) => void;
};

/**
 * Searches an SQLite file in a thread, started by the first search, one search at a time: a hard one delays
 * other searches and nothing else. `onCrash` is told when the thread ends by itself, `onUnreadable` of what could not
 * be read.
 */
export function createSqliteSearcher(
  file: string,
  onCrash: (error: unknown) => void,
  onUnreadable: (error: AppError) => void,
) {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let thread: Worker | null = null;

  function start(): Worker {
    const worker = new Worker(threadEntry('search'), {
      workerData: file,
      resourceLimits: { maxYoungGenerationSizeMb: youngMemory.search },
    });
    worker.on('message', ({ id, matches, error }: SearchAnswer) => {
      const failure = error && revive(error);
      if (failure instanceof AppError) onUnreadable(failure);
      if (failure) waiting.get(id)?.reject(failure);
      else waiting.get(id)?.resolve(matches);
      waiting.delete(id);
      if (waiting.size === 0) worker.unref();
    });
    worker.on('error', onCrash);
    worker.on('exit', () => {
      thread = null;
      for (const { reject } of waiting.values())
        reject(unavailable('The search stopped before it answered.'));
      waiting.clear();
    });
    return worker;
  }

  return {
    newest(query: SearchQuery, most: number, upTo: number): Promise<readonly Match[]> {
      if (waiting.size >= mostWaiting) return Promise.reject(unavailable('Too many searches are waiting.'));
      const worker = (thread ??= start());
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker.ref();
        worker.postMessage({ id, query, most, upTo } satisfies SearchRequest);
      });
    },
    async close(): Promise<void> {
      await thread?.terminate();
    },
  };
}

function unavailable(why: string): AppError {
  return new AppError('unavailable', `${why} Repeat the call in a moment.`, { retryAfter: 2 });
}
