import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { sql } from 'kysely';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import type { Log } from '../../platform/log.ts';
import { commits, databaseFailures } from '../../platform/measured.ts';
import { threadEntry, threadEnv, youngMemory } from '../../platform/thread-entry.ts';
import type { Engine } from '../database.ts';
import { createWrites, type Outcome } from '../write.ts';
import { mostOfOwner, mostWaiting, ownerOf, tooManyWrites } from '../write-owners.ts';
import type { Checked } from './check-process.ts';
import { createSearchProcesses } from './sqlite-search.ts';
import { createDiskReserve } from './disk-reserve.ts';
import { openSqlite, plannedOnce, sqliteFailure, storageFull } from './sqlite.ts';
import { newestMatches } from './sqlite-full-text.ts';
import type { WriterData } from './sqlite-writer.ts';

/** Results of calls, by the number of each. */
export type Answers<Result> = readonly (readonly [id: number, result: Result])[];

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
  const data: WriterData = { file, config: { ...config, variant: config.variant.name }, secretKey };
  const writer = createWriterThread(data, log);
  await writer.start();
  const reader = openSqlite(file, { readOnly: true, onUnreadable: noteUnreadable });
  // Both are read for nearly each request: as arrays in two thirds of the time.
  const dataVersion = reader.raw.prepare('pragma data_version');
  // SQLite's own counter for `autoincrement`: deleting old changes does not lower it.
  const lastChange = reader.raw.prepare("select seq from sqlite_sequence where name = 'changes'");
  for (const statement of [dataVersion, lastChange]) statement.setReturnArrays(true);
  const check = checkInBackground(file, log, noteDamage);
  const searcher = createSearchProcesses(file, log);
  const reserve = config.readOnly ? null : createDiskReserve(file);

  /** Refuses writes from now on, whoever met the damage first. */
  function noteDamage(fault: string): void {
    if (isDamaged) return;
    isDamaged = true;
    databaseFailures.damaged.value++;
    log.error({ file, fault }, 'the database is damaged: writes are refused; restore it from a backup');
  }

  /** Throttled, since a failing disk fails every call. */
  function noteUnreadable(error: AppError, fault: string): void {
    databaseFailures.read.value++;
    if (error.extra.damaged) return noteDamage(fault);
    if (now() - unreadableAt < reportEvery) return;
    unreadableAt = now();
    log.error({ file, fault }, 'the database could not be read');
  }

  function contentVersion(): number {
    return Number(reader.attempt(() => lastChange.get())?.[0] ?? 0);
  }

  return {
    ...createWrites({
      config,
      now,
      fault: () => (isDamaged ? 'The database file is damaged.' : null),
      async run(write, request) {
        const isDeletion = write.deletes?.(request.input) === true;
        if (!isDeletion && reserve?.isFull()) throw storageFull(reserve.needed);
        let outcome = await writer.call(request, ownerOf(request));
        if (outcome.error?.code === 'storage_full') databaseFailures.full.value++;
        if (reserve && outcome.error?.code === 'storage_full') {
          if (!reserve.isFull()) log.warn({ file }, 'the disk is full: only deletions are accepted');
          while (reserve.release() && outcome.error?.code === 'storage_full') {
            if (!isDeletion) break;
            outcome = await writer.call(request, ownerOf(request));
          }
        }
        if (write.name === 'maintenance.heartbeat' && !outcome.error) reserve?.restore();
        if (outcome.error?.extra.damaged) noteDamage('met by a write');
        return outcome;
      },
    }),
    description: `SQLite ${file}`,
    reads: reader.db,
    publicReads: reader.db,
    catchUp: () => undefined,
    primaryChanged: () => false,
    searchesAtOnce: 2,
    async findNewest(queries, most, upTo, signal) {
      const search = queries.map((query) => {
        const { sql: text, parameters } = newestMatches(query, most, upTo).compile(reader.db);
        return { text: plannedOnce(text), parameters, query };
      });
      const result = await searcher.search(search, signal);
      if ('matches' in result) return result;
      const { message, errcode } = result.fault;
      const failure = sqliteFailure(Object.assign(new Error(message), { errcode }), 'read');
      if (failure instanceof AppError) noteUnreadable(failure, 'in the search index');
      throw failure;
    },
    version: () => Number(reader.attempt(() => dataVersion.get())?.[0]),
    contentVersion,
    publicVersion: contentVersion,
    followed: () => undefined,
    rowVersion: sql<string>`''`,
    async probe() {
      await reader.db.selectFrom('meta').select('value').limit(1).execute();
    },
    async close() {
      await Promise.all([check.stop(), searcher.close(), writer.finish(), reserve?.close()]);
      // Before the writer: the last connection to close checkpoints and removes the log, which a reader cannot.
      reader.raw.close();
      await writer.close();
    },
  };
}

/** Calls that the thread is given at once, more than a commit takes; behind them owners take turns. */
const mostAtOnce = 100;

/** Calls to the thread that writes. The first call starts it, as does the first after its end. */
export function createWriterThread(workerData: unknown, log: Log) {
  const waiting = new Map<number, PromiseWithResolvers<Outcome>>();
  const queue = new FairQueue<{ readonly id: number; readonly request: unknown }>();
  let lastId = 0;
  let closing = false;
  let thread: Worker | null = null;

  function start(): Worker {
    const worker = new Worker(threadEntry('writer'), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: youngMemory.writer },
    });
    worker.on('message', (answers: Answers<Outcome>) => {
      if (answers.length > 0) commits.value++;
      for (const [id, result] of answers) {
        waiting.get(id)?.resolve(result);
        waiting.delete(id);
      }
      send(worker);
      if (waiting.size === 0) worker.unref();
    });
    worker.on('error', (error) => {
      databaseFailures.write.value++;
      log.error({ err: error }, 'the database writer stopped');
    });
    worker.on('exit', () => {
      thread = null;
      for (const call of waiting.values()) call.reject(stopped());
      waiting.clear();
      while (queue.take());
    });
    return worker;
  }

  function send(to: Worker): void {
    while (waiting.size - queue.size < mostAtOnce && queue.size > 0) to.postMessage(queue.take());
  }

  /** Refuses further calls; resolves when all others are answered. */
  async function finish(): Promise<void> {
    closing = true;
    await Promise.allSettled(Array.from(waiting.values(), ({ promise }) => promise));
  }

  return {
    /** Starts the thread at once; resolves with its first message. Rejects with the error that ended it before. */
    async start(): Promise<void> {
      thread = start();
      await once(thread, 'message');
    },
    async call(request: unknown, owner = ''): Promise<Outcome> {
      if (waiting.size >= mostWaiting || (owner !== '' && queue.sizeOf(owner) >= mostOfOwner))
        throw tooManyWrites();
      if (closing) throw stopped();
      thread ??= start();
      if (waiting.size === 0) thread.ref();
      const id = ++lastId;
      const call = Promise.withResolvers<Outcome>();
      waiting.set(id, call);
      queue.add(owner, { id, request });
      send(thread);
      return call.promise;
    },
    finish,
    /** Lets the thread close its connection, after its last call; resolves when it has ended. */
    async close(): Promise<void> {
      await finish();
      if (thread === null) return;
      const exited = new Promise((resolve) => thread?.once('exit', resolve));
      thread.ref();
      thread.postMessage('close');
      await exited;
    },
  };
}

function stopped(): AppError {
  return unavailable('The database writer stopped before it answered. Repeat the call.');
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message, { retryAfter: 2 });
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
    child = fork(threadEntry('check'), [file], { execArgv: [], env: threadEnv(), stdio: 'ignore' })
      .once('message', ({ fault, failure }: Checked) => {
        if (fault !== null) onFault(fault);
        if (failure !== null) report({ failure });
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
