import type { DatabaseSync } from 'node:sqlite';
import type { Config } from '../../config/config.ts';
import type { WriteContext } from '../../context.ts';
import type { NumberedFields, SearchIndex } from '../database.ts';
import { createLastChanges } from '../last-changes.ts';
import {
  HalfDone,
  perform,
  plainError,
  type CountCall,
  type Outcome,
  type Request,
  type Savepoint,
  type Write,
} from '../write.ts';
import { createMarks } from './instance-marker.ts';
import { openSqlite, sqliteCode, sqliteFailure } from './sqlite.ts';
import { numberEntry, sqliteSearchIndex } from './sqlite-full-text.ts';
import type { Answers } from './sqlite-engine.ts';

/** Most writes in one commit, and the most time (ms) for which a batch accepts more. */
const batchSize = 256;
const batchTime = 60;
/** How often a batch looks for one more of the writes that it expects, and the most time (ms) between two looks. */
const mostLooks = 6;
const longestPause = 4;

/** How long a writer waits for the lock, ms. */
const lockPatience = 5_000;
/** Mean interval between attempts, ms. */
const tryEvery = 0.5;
/** Least time for which a writer leaves the lock free, ms, so that another attempt can succeed. */
const leastGap = 1;
/** How long after its last wait a writer expects others, ms. */
const contendedFor = 1_000;

/** A request and the number by which its outcome is returned. */
export type Envelope = { readonly id: number; readonly request: Request };

/** The writes that have arrived and were not begun: takes the next one, and counts them. */
export type Waiting = { readonly next: () => Envelope | undefined; readonly count: () => number };

/** What crosses to the thread at its start. The variant is looked up again there: functions do not cross. */
export type WriterData = {
  readonly file: string;
  readonly config: Omit<Config, 'variant'> & { readonly variant: Config['variant']['name'] };
  readonly secretKey: Uint8Array;
};

/**
 * The one writer of a process. Writes that are waiting share a commit (group commit), and are answered once it is on
 * disk. They run without savepoints, since FTS5 would flush its pending terms at each. A write that fails before it
 * has changed anything, as most failing ones do, leaves nothing to undo; when one fails later, the batch is rolled
 * back and run again with a savepoint for each, so that only the failed write is undone.
 */
export function createSqliteWriter(
  file: string,
  context: Pick<WriteContext, 'config' | 'secretKey'>,
  writes: ReadonlyMap<string, Write<never, unknown>>,
  countCall: CountCall,
  waiting: Waiting,
) {
  const { raw, db } = openSqlite(file, { readOnly: false });
  const turns = createTurns(raw);
  const { changedRows, unguarded, guarded } = createSavepoints(raw);
  // A read-only service must not change the marker either.
  const { dataDir, readOnly } = context.config;
  const marks = readOnly ? null : createMarks(raw, { dataDir, ...turns });
  const writeAheadLog = createWriteAheadLog(raw);
  const gathering = createGathering(waiting);

  async function runBatch(first: Envelope, now: () => number): Promise<Answers<Outcome>> {
    const batch: Envelope[] = [first];
    try {
      turns.begin();
    } catch (error) {
      // Those that wait behind it would each wait as long again, one after another.
      for (let other = waiting.next(); other; other = waiting.next()) batch.push(other);
      return refused(batch, error);
    }
    const rowsBefore = changedRows();
    try {
      const start = now();
      const isFull = () => batch.length >= batchSize || now() - start >= batchTime;
      const gathered = gathering.begin(batch);
      const answers = await runAll(batch, unguarded, () => (isFull() ? undefined : gathered())).catch(
        (error: unknown) => {
          if (!(error instanceof HalfDone)) throw error;
          raw.exec('rollback');
          turns.begin();
          return runAll(batch, guarded, () => undefined);
        },
      );
      raw.exec('commit');
      if (changedRows() !== rowsBefore) {
        writeAheadLog.written();
        const newest = batch.findLast(({ request }) => !isUpkeep(request));
        if (newest && marks) marks.unmarked = newest.request.now;
      }
      return answers;
    } catch (error) {
      if (raw.isTransaction) raw.exec('rollback');
      return refused(batch, error);
    } finally {
      turns.ended();
      gathering.ended(batch);
    }
  }

  /**
   * Runs a batch, which grows by what arrives meanwhile. Search terms are stored last and together: FTS5 flushes its
   * pending terms before every later statement that SQLite may have to undo.
   */
  async function runAll(
    batch: Envelope[],
    savepoint: Savepoint,
    another: () => Envelope | undefined,
  ): Promise<Answers<Outcome>> {
    const answers: [number, Outcome][] = [];
    const batchCache = new Map<string, unknown>();
    const shared = { ...context, db, batchCache, lock, confirmDurable, last: createLastChanges() };
    const terms: NumberedFields[] = [];
    let replaces = false;
    for (const { id, request } of batch) {
      const write = listed(writes, request.name);
      const own: Noted = { terms: [], replaces: false };
      const searchIndex = noting(own);
      // Others read agents by other ways than `lockAgent`.
      if (!write.onlyAddsPostCounts) shared.last.storePostCounts(db);
      const outcome = await perform(write, request, { ...shared, searchIndex }, savepoint, countCall);
      answers.push([id, outcome]);
      if (!outcome.error) terms.push(...own.terms);
      if (!outcome.error) replaces ||= own.replaces;
      const joining = another();
      if (joining) batch.push(joining);
    }
    shared.last.store(db);
    sqliteSearchIndex.storeNumbered(db, terms);
    // Behind it: an erasure that began in this batch has yet to erase what is replaced only here.
    if (replaces) await sqliteSearchIndex.noteReplaced(db);
    return answers;
  }

  async function close(): Promise<void> {
    await marks?.close();
    writeAheadLog.empty();
    raw.close();
  }

  return { runBatch, emptyLog: writeAheadLog.empty, close };
}

function createWriteAheadLog(raw: DatabaseSync) {
  /** Whether it may hold something. */
  let isUsed = false;
  return {
    written: () => void (isUsed = true),
    /** Checkpoints and truncates it, which still holds what was overwritten, unless a reader uses it. */
    empty: () => {
      if (!isUsed || raw.isTransaction) return;
      try {
        isUsed = raw.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'] !== 0;
      } catch {
        // A full disk, for example: the next checkpoint covers it.
      }
    },
  };
}

/**
 * Those who write at the same time come one by one, since their documents are rendered one by one, and a commit costs as
 * much as several writes. As many as shared the last one, and as many as came while it was stored, are waited for as
 * long as one follows another: they are those who write at present. One who writes alone never waits.
 */
function createGathering({ next, count }: Waiting) {
  let expected = 1;
  return {
    /** What gives the next write of a batch that begins. */
    begin(batch: readonly Envelope[]): () => Envelope | undefined {
      let looks = 0;
      return () => {
        let found = next();
        for (; !found && batch.length < expected && looks < mostLooks; looks++) {
          // Where many are to come, those who make them need not be interrupted for each.
          sleep(Math.min(expected - batch.length, longestPause));
          found = next();
        }
        if (found) looks = 0;
        return found;
      };
    },
    /** A batch is stored, and those in it are not answered yet. */
    ended(batch: readonly Envelope[]): void {
      expected = batch.length + count();
    },
  };
}

/** What a write stores in the search index, and whether that replaces anything. */
type Noted = { readonly terms: NumberedFields[]; replaces: boolean };

/** An index that only notes what is to be stored in it. */
function noting(noted: Noted): SearchIndex {
  return {
    ...sqliteSearchIndex,
    store: async (to, entry, fields) => void noted.terms.push({ doc: await numberEntry(to, entry), fields }),
    noteReplaced: async () => void (noted.replaces = true),
  };
}

function listed(writes: ReadonlyMap<string, Write<never, unknown>>, name: string): Write<never, unknown> {
  const write = writes.get(name);
  if (!write) throw new Error(`The write ${name} is missing from the list of writes`);
  return write;
}

/**
 * Begins write transactions, fairly between processes. SQLite's busy handler sleeps for up to 100 ms at a time, so a
 * writer that is never idle takes the lock again before any sleeper wakes. Here a writer that expects others leaves
 * the lock free for as long as it held it; requests that arrive meanwhile share its next commit.
 */
function createTurns(raw: DatabaseSync) {
  raw.exec('pragma busy_timeout = 0');
  let waitedAt = -Infinity;
  let beganAt = -Infinity;
  let endedAt = -Infinity;

  function tryToBegin(since: number): boolean {
    try {
      raw.exec('begin immediate');
      return true;
    } catch (error) {
      const isBusy = sqliteCode(error) === 5;
      if (isBusy && performance.now() - since < lockPatience) return false;
      throw error;
    }
  }

  return {
    /** Waits for the lock, blocking this thread. Throws SQLite's own error after 5 s. */
    begin() {
      const asked = performance.now();
      if (asked - waitedAt < contendedFor) sleep(endedAt + Math.max(leastGap, endedAt - beganAt) - asked);
      let hasWaited = false;
      for (; !tryToBegin(asked); hasWaited = true) sleep(tryEvery * (0.5 + Math.random()));
      beganAt = performance.now();
      if (hasWaited) waitedAt = beganAt;
    },
    ended() {
      endedAt = performance.now();
    },
  };
}

const cell = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  if (ms > 0) Atomics.wait(cell, 0, 0, ms);
}

/** Savepoints that exist, and such that only notice that something would have to be undone. */
function createSavepoints(raw: DatabaseSync) {
  const totalChanges = raw.prepare('select total_changes() as rows');
  const changedRows = () => totalChanges.get()?.['rows'];
  let changesBefore: unknown;

  const explain = (error: unknown) => {
    // On some failures (disk full, I/O) SQLite rolls back the whole transaction: nothing of the batch is left.
    if (!raw.isTransaction) throw error;
    return sqliteFailure(error);
  };
  const unguarded: Savepoint = {
    begin: async () => {
      changesBefore = changedRows();
    },
    release: async () => undefined,
    undo: async () => {
      if (changedRows() !== changesBefore) throw new HalfDone();
    },
    explain,
  };
  const guarded: Savepoint = {
    begin: async () => raw.exec('savepoint write'),
    release: async () => raw.exec('release write'),
    undo: async () => raw.exec('rollback to write; release write'),
    explain,
  };
  return { changedRows, unguarded, guarded };
}

/** Heartbeats and sweeps: nobody would miss them in a copy. */
function isUpkeep({ name }: Request): boolean {
  return name.startsWith('maintenance.');
}

function refused(batch: readonly Envelope[], error: unknown): Answers<Outcome> {
  const failure = plainError(sqliteFailure(error));
  return batch.map(({ id }) => [id, { error: failure, rate: null, changed: [], mailQueued: false }]);
}

/** SQLite has one writer at a time: an immediate transaction already holds every lock. */
async function lock(): Promise<void> {}

/** What a writer can see is on disk, or will be with the commit that the answer waits for. */
async function confirmDurable(): Promise<void> {}
