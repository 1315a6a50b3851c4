import type { Config } from '../config.ts';
import type { WriteContext } from '../context.ts';
import {
  perform,
  plainError,
  type CountCall,
  type Operation,
  type Outcome,
  type Request,
  type Savepoint,
} from './operation.ts';
import { openSqlite, sqliteFailure } from './sqlite.ts';
import { sqliteFullText } from './sqlite-full-text.ts';
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

/**
 * The one writer of a process. Operations that wait together share a commit (group commit): each runs
 * under a savepoint, so that one which fails is undone alone, and all are answered once the commit is on disk.
 */
export function createSqliteWriter(
  file: string,
  context: Pick<WriteContext, 'config' | 'secretKey'>,
  operations: ReadonlyMap<string, Operation<never, unknown>>,
  countCall: CountCall,
  next: () => Envelope | undefined,
) {
  const { raw, db } = openSqlite(file, { readOnly: false });
  const turns = createTurns(raw);
  const savepoint: Savepoint = {
    begin: async () => raw.exec('savepoint operation'),
    release: async () => raw.exec('release operation'),
    undo: async () => raw.exec('rollback to operation; release operation'),
    explain: (error) => {
      // SQLite itself rolls everything back on some failures (disk full, I/O): then nothing of the batch holds.
      if (!raw.isTransaction) throw error;
      return sqliteFailure(error);
    },
  };

  async function runBatch(first: Envelope, now: () => number): Promise<Answers> {
    const batch: Envelope[] = [];
    const answers: [number, Outcome][] = [];
    try {
      turns.begin();
      const start = now();
      for (let envelope: Envelope | undefined = first; envelope;) {
        batch.push(envelope);
        answers.push([envelope.id, await runOne(envelope.request)]);
        envelope = batch.length < batchOperations && now() - start < batchTime ? next() : undefined;
      }
      raw.exec('commit');
      return answers;
    } catch (error) {
      if (raw.isTransaction) raw.exec('rollback');
      if (batch.length === 0) batch.push(first);
      const outcome: Outcome = {
        error: plainError(sqliteFailure(error)),
        rate: null,
        changed: [],
        mailQueued: false,
      };
      return batch.map(({ id }) => [id, outcome]);
    } finally {
      turns.ended();
    }
  }

  async function runOne(request: Request): Promise<Outcome> {
    const operation = operations.get(request.name);
    if (!operation) throw new Error(`Operation ${request.name} is missing from the list of operations`);
    return perform(
      operation,
      request,
      { ...context, db, fullText: sqliteFullText, lock, confirm },
      savepoint,
      countCall,
    );
  }

  return { runBatch, close: () => raw.close() };
}

/** SQLite has one writer at a time: an immediate transaction already holds every lock. */
async function lock(): Promise<void> {}

/** What a writer can see is on disk, or will be with the commit that the answer waits for. */
async function confirm(): Promise<void> {}
