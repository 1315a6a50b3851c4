import { Worker } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import type { SearchQuery } from '../../rules/search-terms.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';
import type { Match } from '../full-text.ts';
import { revive } from '../write.ts';
import type { SearchAnswer, SearchRequest } from './search-thread.ts';

/** Searches that may wait for the thread before callers are asked to come back. */
const mostWaiting = 100;

/**
 * Searches an SQLite file in a thread, started by the first search, one search at a time: a hard one delays
 * other searches and nothing else. `onUnreadable` is called when the index cannot be read.
 */
export function createSqliteSearcher(file: string, log: Log, onUnreadable: (error: AppError) => void) {
  const waiting = new Map<number, PromiseWithResolvers<readonly Match[]>>();
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
    worker.on('error', (error) => log.error({ err: error }, 'the search thread stopped'));
    worker.on('exit', () => {
      thread = null;
      for (const call of waiting.values()) call.reject(unavailable('The search stopped before it answered.'));
      waiting.clear();
    });
    return worker;
  }

  return {
    async newest(query: SearchQuery, most: number, upTo: number): Promise<readonly Match[]> {
      if (waiting.size >= mostWaiting) throw unavailable('Too many searches are waiting.');
      thread ??= start();
      const id = ++lastId;
      const call = Promise.withResolvers<readonly Match[]>();
      waiting.set(id, call);
      thread.ref();
      thread.postMessage({ id, query, most, upTo } satisfies SearchRequest);
      return call.promise;
    },
    async close(): Promise<void> {
      await thread?.terminate();
    },
  };
}

function unavailable(why: string): AppError {
  return new AppError('unavailable', `${why} Repeat the call in a moment.`, { retryAfter: 2 });
}
