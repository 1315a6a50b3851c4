import type { Config } from '../../config/config.ts';
import type { WriteContext } from '../../context.ts';
import {
  perform,
  plainError,
  type CountCall,
  type Write,
  type Outcome,
  type Request,
  type Savepoint,
} from '../write.ts';
import type { SearchFields, SearchIndex } from '../full-text.ts';
import { openSqlite, sqliteFailure } from './sqlite.ts';
import { sqliteSearchIndex } from './sqlite-full-text.ts';
import { createMarks } from './instance-marker.ts';
import { createTurns } from './sqlite-turns.ts';

/** How many operations, and for how long (ms), may share one commit before its first caller is answered. */
const batchOperations = 256;
const batchTime = 25;

/** One operation and the number by which its outcome is returned. */
export type Envelope = { readonly id: number; readonly request: Request };
/** Outcomes of one commit. */
export type Answers = readonly (readonly [id: number, outcome: Outcome])[];

/** What crosses to the thread at its start. The variant is looked up again there: functions do not cross. */
export type WriterData = {
  readonly file: string;
  readonly config: Omit<Config, 'variant'> & { readonly variant: Config['variant']['name'] };
  readonly secretKey: Uint8Array;
};

/** What a document is found by. */
type Terms = { readonly doc: number; readonly fields: SearchFields };

/** Why a batch is begun again: an operation failed that had changed something, and no savepoint was set before it. */
class HalfDone extends Error {}

/**
 * The one writer of a process. Operations that wait together share a commit (group commit), and all are answered
 * once that is on disk. They run without savepoints, at each of which FTS5 would write out its part. One that fails
 * before it has changed anything, as most failing ones do, leaves nothing to undo; when one fails later, the batch
 * is rolled back and run again with a savepoint for each, so that the failed one is undone alone.
 */
export function createSqliteWriter(
  file: string,
  context: Pick<WriteContext, 'config' | 'secretKey'>,
  operations: ReadonlyMap<string, Write<never, unknown>>,
  countCall: CountCall,
  next: () => Envelope | undefined,
) {
  const { config } = context;
  const { raw, db } = openSqlite(file, { readOnly: false });
  const turns = createTurns(raw);
  const totalChanges = raw.prepare('select total_changes() as rows');
  const changedRows = () => totalChanges.get()?.['rows'];
  // Where nothing is written, nothing is to be marked.
  const marks = config.readOnly ? null : createMarks(raw, { dataDir: config.dataDir, ...turns });
  let logged = false;
  let changesBefore: unknown;

  const explain = (error: unknown) => {
    // SQLite itself rolls everything back on some failures (disk full, I/O): then nothing of the batch holds.
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
    begin: async () => raw.exec('savepoint operation'),
    release: async () => raw.exec('release operation'),
    undo: async () => raw.exec('rollback to operation; release operation'),
    explain,
  };

  async function runBatch(first: Envelope, now: () => number): Promise<Answers> {
    const batch: Envelope[] = [first];
    try {
      turns.begin();
    } catch (error) {
      // Those that waited as long would each wait as long again, one after another.
      for (let other = next(); other; other = next()) batch.push(other);
      return refused(batch, error);
    }
    const rowsBefore = changedRows();
    try {
      const start = now();
      const isFull = () => batch.length >= batchOperations || now() - start >= batchTime;
      const answers = await runAll(batch, unguarded, () => (isFull() ? undefined : next())).catch(
        (error: unknown) => {
          if (!(error instanceof HalfDone)) throw error;
          raw.exec('rollback');
          turns.begin();
          return runAll(batch, guarded, () => undefined);
        },
      );
      raw.exec('commit');
      if (changedRows() !== rowsBefore) noteCommit(batch);
      return answers;
    } catch (error) {
      if (raw.isTransaction) raw.exec('rollback');
      return refused(batch, error);
    } finally {
      turns.ended();
    }
  }

  function noteCommit(batch: readonly Envelope[]): void {
    logged = true;
    const newest = batch.findLast(({ request }) => !isUpkeep(request));
    if (newest) marks?.committed(newest.request.now);
  }

  function refused(batch: readonly Envelope[], error: unknown): Answers {
    const outcome: Outcome = {
      error: plainError(sqliteFailure(error)),
      rate: null,
      changed: [],
      mailQueued: false,
    };
    return batch.map(({ id }) => [id, outcome]);
  }

  /**
   * Runs the operations of a batch, and adds those that come meanwhile. Their terms are stored last: FTS5 writes out
   * what it holds before every later statement that SQLite may have to undo.
   */
  async function runAll(
    batch: Envelope[],
    savepoint: Savepoint,
    another: () => Envelope | undefined,
  ): Promise<Answers> {
    const answers: [number, Outcome][] = [];
    const terms: Terms[] = [];
    for (const { id, request } of batch) {
      const own: Terms[] = [];
      const outcome = await runOne(request, savepoint, own);
      answers.push([id, outcome]);
      if (!outcome.error) terms.push(...own);
      const joining = another();
      if (joining) batch.push(joining);
    }
    for (const { doc, fields } of terms) await sqliteSearchIndex.store(db, doc, fields);
    return answers;
  }

  async function runOne(request: Request, savepoint: Savepoint, terms: Terms[]): Promise<Outcome> {
    const operation = operations.get(request.name);
    if (!operation) throw new Error(`Operation ${request.name} is missing from the list of operations`);
    const searchIndex: SearchIndex = {
      ...sqliteSearchIndex,
      store: async (_db, doc, fields) => void terms.push({ doc, fields }),
    };
    return perform(
      operation,
      request,
      { ...context, db, searchIndex, lock, confirmDurable },
      savepoint,
      countCall,
    );
  }

  /** Empties the log into the file, unless a reader is at work on it: what was overwritten still stands in the log. */
  function emptyLog(): void {
    if (!logged || raw.isTransaction) return;
    try {
      logged = raw.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'] !== 0;
    } catch {
      // A full disk, for one: the log stays, and the next time takes it along.
    }
  }

  async function close(): Promise<void> {
    await marks?.close();
    emptyLog();
    raw.close();
  }

  return { runBatch, emptyLog, close };
}

/** Heartbeats and sweeps: nobody would miss them in a copy. */
function isUpkeep({ name }: Request): boolean {
  return name.startsWith('maintenance.');
}

/** SQLite has one writer at a time: an immediate transaction already holds every lock. */
async function lock(): Promise<void> {}

/** What a writer can see is on disk, or will be with the commit that the answer waits for. */
async function confirmDurable(): Promise<void> {}
