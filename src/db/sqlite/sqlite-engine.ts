import { fork, type ChildProcess } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Commit, Engine } from '../database.ts';
import { revive, type Write, type Outcome, type Request, type Ticket } from '../write.ts';
import { openSqlite } from './sqlite.ts';
import { createSqliteSearcher } from './sqlite-searcher.ts';
import type { Answers, Envelope, WriterData } from './sqlite-writer.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';

/** Writes that may wait for the writer before callers are asked to come back. */
const mostWaiting = 10_000;
/** Milliseconds from the end of a writer that was at work to the start of the next. */
const restartAfter = 1_000;

/** Milliseconds until the file is read through, so that the first answers do not wait for it. */
const checkAfter = 1_000;

/** Milliseconds from one line about reads that fail to the next. */
const reportEvery = 60_000;

type Waiting = {
  ticket: Ticket | undefined;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

/**
 * The embedded engine: reads on a read-only connection of this thread, writes in a thread of their own.
 * The file must have been prepared (`prepareSqliteFile`). Rejects if the writer cannot open it.
 */
export async function createSqliteEngine(
  file: string,
  { config, secretKey, log, now }: { config: Config; secretKey: Buffer; log: Log; now: () => number },
): Promise<Engine> {
  const listeners: ((commit: Commit) => void)[] = [];
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let closing = false;
  let isDamaged = false;
  let unreadableAt = -Infinity;
  let readOnlyReason: string | null = config.readOnly ? 'The operator has made the service read-only.' : null;

  const writerData: WriterData = { file, config: { ...config, variant: config.variant.name }, secretKey };
  /** Null while there is none: it stopped, and another is to be started. */
  let writer: Worker | null = null;
  writer = await startWriter();
  const reader = openSqlite(file, { readOnly: true, onUnreadable: noteUnreadable });
  const dataVersion = reader.raw.prepare('pragma data_version');
  // Kept by SQLite for `autoincrement`: it also grows when old changes are swept away.
  const lastChange = reader.raw.prepare("select seq from sqlite_sequence where name = 'changes'");
  let checker: ChildProcess | null = null;
  const checking = setTimeout(() => (checker = startCheck()), checkAfter).unref();
  const searcher = createSqliteSearcher(
    file,
    (error) => log.error({ err: error }, 'the search thread stopped'),
    (error) => noteUnreadable(error, 'in the search index'),
  );

  function startWriter(): Promise<Worker> {
    const thread = new Worker(threadEntry('writer'), {
      workerData: writerData,
      resourceLimits: { maxYoungGenerationSizeMb: youngMemory.writer },
    });
    return new Promise((resolve, reject) => {
      thread.once('message', () => {
        thread.on('message', settle);
        resolve(thread);
      });
      thread.once('error', (error) => {
        reject(error);
        failAll();
        log.error({ err: error }, 'the database writer stopped');
      });
      thread.once('exit', () => {
        reject(stopped());
        failAll();
        if (writer === thread) replaceWriter();
      });
    });
  }

  function replaceWriter(): void {
    writer = null;
    setTimeout(() => {
      if (closing) return;
      startWriter().then((thread) => (writer = thread), replaceWriter);
    }, restartAfter).unref();
  }

  function settle(answers: Answers): void {
    for (const [id, outcome] of answers) {
      const call = waiting.get(id);
      waiting.delete(id);
      if (call) settleOne(call, outcome);
    }
  }

  function settleOne(call: Waiting, outcome: Outcome): void {
    if (call.ticket && outcome.rate) call.ticket.rate = outcome.rate;
    if (outcome.changed.length > 0 || outcome.mailQueued) for (const listener of listeners) listener(outcome);
    if (outcome.error) {
      if (outcome.error.extra.damaged) noteDamage('met by a write');
      call.reject(revive(outcome.error));
    } else call.resolve(outcome.value);
  }

  function failAll(): void {
    for (const call of waiting.values()) call.reject(stopped());
    waiting.clear();
  }

  /** Damage must not go on being written to, whoever meets it first. */
  function noteDamage(fault: string): void {
    if (isDamaged) return;
    isDamaged = true;
    readOnlyReason = 'The database file is damaged.';
    log.error({ file, fault }, 'the database is damaged: writes are refused; restore it from a backup');
  }

  /** A line now and then: a disk that fails does so at every call. */
  function noteUnreadable(error: AppError, fault: string): void {
    if (error.extra.damaged) return noteDamage(fault);
    if (now() - unreadableAt < reportEvery) return;
    unreadableAt = now();
    log.error({ file, fault }, 'the database could not be read');
  }

  /** Reads the whole file once, in the background. */
  function startCheck(): ChildProcess {
    // Not a thread: while SQLite is at work in one, neither it nor its process can be ended.
    const child = fork(threadEntry('check'), [file], { execArgv: [], env: {}, stdio: 'ignore' });
    child.once('message', ({ fault }: { readonly fault: string | null }) => {
      if (fault !== null) noteDamage(fault);
    });
    const report = (fields: Record<string, unknown>) =>
      log.warn(fields, 'the background check of the database could not run');
    child.once('error', (error) => report({ err: error }));
    child.once('exit', (code, signal) => {
      if (code !== 0 && !closing) report({ code, signal });
    });
    child.unref();
    child.channel?.unref();
    return child;
  }

  return {
    description: `SQLite ${file}`,
    reads: reader.db,
    publicReads: reader.db,
    catchUp: () => undefined,
    primaryChanged: () => false,
    findNewest: (_db, query, most, upTo) => searcher.newest(query, most, upTo),
    write<I, O>(operation: Write<I, O>, input: I, ticket?: Ticket): Promise<O> {
      if (readOnlyReason !== null)
        return Promise.reject(
          new AppError('read_only', `${readOnlyReason} Reading still works.`, { retryAfter: 60 }),
        );
      if (waiting.size >= mostWaiting)
        return Promise.reject(
          new AppError('unavailable', 'Too many writes are waiting. Repeat the call in a moment.', {
            retryAfter: 2,
          }),
        );
      const thread = writer;
      if (thread === null || closing) return Promise.reject(stopped());
      const uncounted = ticket && ticket.rate === null ? ticket : undefined;
      const request: Request = { name: operation.name, input, now: now(), ticket: uncounted };
      const id = ++lastId;
      return new Promise<O>((resolve, reject) => {
        waiting.set(id, { ticket: uncounted, resolve: resolve as (value: unknown) => void, reject });
        thread.postMessage({ id, request } satisfies Envelope);
      });
    },
    version: () => Number(reader.attempt(() => dataVersion.get())?.['data_version']),
    contentVersion: () => Number(reader.attempt(() => lastChange.get())?.['seq'] ?? 0),
    readOnly: () => readOnlyReason,
    onCommit: (listener) => listeners.push(listener),
    async probe() {
      await reader.db.selectFrom('meta').select('value').limit(1).execute();
    },
    async close() {
      closing = true;
      clearTimeout(checking);
      await Promise.all([endCheck(checker), searcher.close()]);
      while (waiting.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      // Before the writer: whoever closes last empties the log into the file and removes it, which a reader cannot.
      reader.raw.close();
      const thread = writer;
      if (thread !== null) {
        const exited = new Promise((resolve) => thread.once('exit', resolve));
        thread.postMessage('close');
        await exited;
      }
    },
  };
}

/** Resolves when the process has ended, and with it its connection. */
async function endCheck(checker: ChildProcess | null): Promise<void> {
  const isRunning = checker?.pid !== undefined && checker.exitCode === null && checker.signalCode === null;
  if (!isRunning) return;
  const exited = new Promise((resolve) => checker.once('exit', resolve));
  checker.ref();
  checker.kill('SIGKILL');
  await exited;
}

function stopped(): AppError {
  return new AppError('unavailable', 'The database writer stopped before it answered. Repeat the call.', {
    retryAfter: 2,
  });
}
