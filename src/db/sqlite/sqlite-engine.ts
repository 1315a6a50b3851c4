import { fork, type ChildProcess } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';
import { createWrites, type Engine } from '../database.ts';
import type { Outcome, Request } from '../write.ts';
import { openSqlite } from './sqlite.ts';
import { createSqliteSearcher } from './sqlite-searcher.ts';
import type { Answers, Envelope, WriterData } from './sqlite-writer.ts';

/** Writes that may wait for the writer before callers are asked to come back. */
const mostWaiting = 10_000;
/** Milliseconds until a writer that ended by itself is replaced. */
const restartAfter = 1_000;
/** Milliseconds until the background check, so that the first answers do not compete with it for the disk. */
const checkAfter = 1_000;
/** Least milliseconds between two log lines about failing reads. */
const reportEvery = 60_000;

/**
 * The embedded engine: reads on a read-only connection of this thread, writes in a thread of their own.
 * The file must have been prepared (`prepareSqliteFile`). Rejects if the writer cannot open it.
 */
export async function createSqliteEngine(
  file: string,
  { config, secretKey, log, now }: { config: Config; secretKey: Buffer; log: Log; now: () => number },
): Promise<Engine> {
  let isDamaged = false;
  let unreadableAt = -Infinity;
  const writer = await startWriter(
    { file, config: { ...config, variant: config.variant.name }, secretKey },
    log,
  );
  const reader = openSqlite(file, { readOnly: true, onUnreadable: noteUnreadable });
  const dataVersion = reader.raw.prepare('pragma data_version');
  // SQLite's own counter for `autoincrement`: deleting old changes does not lower it.
  const lastChange = reader.raw.prepare("select seq from sqlite_sequence where name = 'changes'");
  const check = checkInBackground(file, log, noteDamage);
  const searcher = createSqliteSearcher(file, log, (error) => noteUnreadable(error, 'in the search index'));

  /** Refuses writes from now on, whoever met the damage first. */
  function noteDamage(fault: string): void {
    if (isDamaged) return;
    isDamaged = true;
    log.error({ file, fault }, 'the database is damaged: writes are refused; restore it from a backup');
  }

  /** Throttled, since a failing disk fails every call. */
  function noteUnreadable(error: AppError, fault: string): void {
    if (error.extra.damaged) return noteDamage(fault);
    if (now() - unreadableAt < reportEvery) return;
    unreadableAt = now();
    log.error({ file, fault }, 'the database could not be read');
  }

  return {
    ...createWrites({
      config,
      now,
      fault: () => (isDamaged ? 'The database file is damaged.' : null),
      async run(_write, request) {
        const outcome = await writer.run(request);
        if (outcome.error?.extra.damaged) noteDamage('met by a write');
        return outcome;
      },
    }),
    description: `SQLite ${file}`,
    reads: reader.db,
    publicReads: reader.db,
    catchUp: () => undefined,
    primaryChanged: () => false,
    findNewest: (_db, query, most, upTo) => searcher.newest(query, most, upTo),
    version: () => Number(reader.attempt(() => dataVersion.get())?.['data_version']),
    contentVersion: () => Number(reader.attempt(() => lastChange.get())?.['seq'] ?? 0),
    async probe() {
      await reader.db.selectFrom('meta').select('value').limit(1).execute();
    },
    async close() {
      await Promise.all([check.stop(), searcher.close(), writer.finish()]);
      // Before the writer: the last connection to close checkpoints and removes the log, which a reader cannot.
      reader.raw.close();
      await writer.close();
    },
  };
}

/** Starts the writer's thread, and another whenever it ends by itself. */
async function startWriter(workerData: WriterData, log: Log) {
  const waiting = new Map<number, PromiseWithResolvers<Outcome>>();
  let lastId = 0;
  let closing = false;
  /** Null between the end of one and the start of the next. */
  let thread: Worker | null = null;
  thread = await start();

  function start(): Promise<Worker> {
    const worker = new Worker(threadEntry('writer'), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: youngMemory.writer },
    });
    return new Promise((resolve, reject) => {
      worker.once('message', () => {
        worker.on('message', settle);
        resolve(worker);
      });
      worker.once('error', (error) => {
        reject(error);
        log.error({ err: error }, 'the database writer stopped');
      });
      worker.once('exit', () => {
        reject(stopped());
        for (const call of waiting.values()) call.reject(stopped());
        waiting.clear();
        if (worker === thread) replace();
      });
    });
  }

  function replace(): void {
    thread = null;
    setTimeout(() => {
      if (!closing) start().then((worker) => (thread = worker), replace);
    }, restartAfter).unref();
  }

  function settle(answers: Answers): void {
    for (const [id, outcome] of answers) {
      waiting.get(id)?.resolve(outcome);
      waiting.delete(id);
    }
  }

  return {
    /** Resolves when the outcome is durable. */
    async run(request: Request): Promise<Outcome> {
      if (waiting.size >= mostWaiting)
        throw new AppError('unavailable', 'Too many writes are waiting. Repeat the call in a moment.', {
          retryAfter: 2,
        });
      if (thread === null || closing) throw stopped();
      const id = ++lastId;
      const call = Promise.withResolvers<Outcome>();
      waiting.set(id, call);
      thread.postMessage({ id, request } satisfies Envelope);
      return call.promise;
    },
    /** Refuses further requests; resolves when all others are answered. */
    async finish(): Promise<void> {
      closing = true;
      await Promise.allSettled(Array.from(waiting.values(), ({ promise }) => promise));
    },
    async close(): Promise<void> {
      if (thread === null) return;
      const exited = new Promise((resolve) => thread?.once('exit', resolve));
      thread.postMessage('close');
      await exited;
    },
  };
}

function stopped(): AppError {
  return new AppError('unavailable', 'The database writer stopped before it answered. Repeat the call.', {
    retryAfter: 2,
  });
}

/**
 * Reads the whole file once. In a process of its own: while SQLite works in a thread, neither that thread nor its
 * process can be ended.
 */
function checkInBackground(file: string, log: Log, onFault: (fault: string) => void) {
  let child: ChildProcess | null = null;
  let stopping = false;
  const exited = Promise.withResolvers<void>();
  const report = (fields: Record<string, unknown>) =>
    log.warn(fields, 'the background check of the database could not run');

  const timer = setTimeout(() => {
    child = fork(threadEntry('check'), [file], { execArgv: [], env: {}, stdio: 'ignore' })
      .once('message', ({ fault }: { readonly fault: string | null }) => {
        if (fault !== null) onFault(fault);
      })
      .once('error', (error) => report({ err: error }))
      .once('exit', (code, signal) => {
        exited.resolve();
        if (code !== 0 && !stopping) report({ code, signal });
      });
    child.unref();
    child.channel?.unref();
  }, checkAfter).unref();

  return {
    /** Resolves when the process has ended, and with it its connection. */
    async stop(): Promise<void> {
      stopping = true;
      clearTimeout(timer);
      if (child?.pid === undefined) return;
      child.ref();
      child.kill('SIGKILL');
      await exited.promise;
    },
  };
}
