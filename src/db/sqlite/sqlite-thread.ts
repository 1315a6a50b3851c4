import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';

/** Results of calls, by the number of each. */
export type Answers<Result> = readonly (readonly [id: number, result: Result])[];

const kinds = {
  writer: {
    /** Calls that may wait before callers are asked to come back. */
    mostWaiting: 10_000,
    tooMany: 'Too many writes are waiting. Repeat the call in a moment.',
    stopped: 'The database writer stopped before it answered. Repeat the call.',
    log: 'the database writer stopped',
  },
  search: {
    mostWaiting: 100,
    tooMany: 'Too many searches are waiting. Repeat the call in a moment.',
    stopped: 'The search stopped before it answered. Repeat the call in a moment.',
    log: 'the search thread stopped',
  },
};

/** Calls to a thread with an SQLite connection of its own. The first call starts it, as does the first after its end. */
export function createThread<Request, Result>(kind: keyof typeof kinds, workerData: unknown, log: Log) {
  const texts = kinds[kind];
  const waiting = new Map<number, PromiseWithResolvers<Result>>();
  let lastId = 0;
  let closing = false;
  let thread: Worker | null = null;

  function start(): Worker {
    const worker = new Worker(threadEntry(kind), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: youngMemory[kind] },
    });
    worker.on('message', (answers: Answers<Result>) => {
      for (const [id, result] of answers) {
        waiting.get(id)?.resolve(result);
        waiting.delete(id);
      }
      if (waiting.size === 0) worker.unref();
    });
    worker.on('error', (error) => log.error({ err: error }, texts.log));
    worker.on('exit', () => {
      thread = null;
      for (const call of waiting.values()) call.reject(unavailable(texts.stopped));
      waiting.clear();
    });
    return worker;
  }

  return {
    /** Starts the thread at once; resolves with its first message. Rejects with the error that ended it before. */
    async start(): Promise<void> {
      thread = start();
      await once(thread, 'message');
    },
    async call(request: Request): Promise<Result> {
      if (waiting.size >= texts.mostWaiting) throw unavailable(texts.tooMany);
      if (closing) throw unavailable(texts.stopped);
      thread ??= start();
      if (waiting.size === 0) thread.ref();
      const id = ++lastId;
      const call = Promise.withResolvers<Result>();
      waiting.set(id, call);
      thread.postMessage({ id, request });
      return call.promise;
    },
    /** Refuses further calls; resolves when all others are answered. */
    async finish(): Promise<void> {
      closing = true;
      await Promise.allSettled(Array.from(waiting.values(), ({ promise }) => promise));
    },
    /** Lets the thread close its connection; resolves when it has ended. */
    async close(): Promise<void> {
      if (thread === null) return;
      const exited = new Promise((resolve) => thread?.once('exit', resolve));
      thread.ref();
      thread.postMessage('close');
      await exited;
    },
    /** Ends the thread without waiting for its calls. */
    terminate: async () => void (await thread?.terminate()),
  };
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message, { retryAfter: 2 });
}
