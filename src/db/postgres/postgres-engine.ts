import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Config } from '../../config/config.ts';
import type { WriteContext } from '../../context.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Commit, Engine } from '../database.ts';
import {
  perform,
  revive,
  type CountCall,
  type Write,
  type Outcome,
  type Request,
  type Savepoint,
  type Ticket,
} from '../write.ts';
import { findNewestOnPostgres, postgresSearchIndex } from './postgres-full-text.ts';
import { sqlState, Unreachable, type Session } from './postgres.ts';
import type { Servers } from './postgres-servers.ts';

/** Writes that may wait for a connection before callers are asked to come back. */
const mostWaiting = 1_000;
/** How often a write is tried that others stood in the way of, and one whose connection broke before its commit. */
const mostTries = 6;
const mostConnections = 3;
/** What took longer to fail was not a connection that broke but a server that does not answer, ms. */
const repeatWithin = 1_000;
/** How long a caller waits for its commit, ms. A synchronous standby that is gone holds commits up for good. */
const commitPatience = 10_000;

/**
 * A process that freezes in a transaction must not keep its locks until its machine is missed, nor one that waits for
 * them its connection. For this transaction only, as poolers hand connections on.
 */
const begin = `begin; set local idle_in_transaction_session_timeout = '15s'; set local lock_timeout = '15s'`;

/**
 * SQLSTATEs that go when the transaction is run again: serialization failure, deadlock, and a row that another
 * transaction made or took meanwhile, which the second run will find.
 */
const passing = new Set(['40001', '40P01', '23505', '23503', '26000', '42P05', '0A000']);

export type PostgresEngineOptions = {
  readonly servers: Servers;
  readonly description: string;
  readonly config: Config;
  readonly secretKey: Buffer;
  readonly log: Log;
  readonly now: () => number;
  readonly countCall: CountCall;
};

/** The engine for any number of processes: operations run in this one, on a connection to the primary. */
export function createPostgresEngine(options: PostgresEngineOptions): Engine {
  const { servers, config, secretKey, log, now, countCall } = options;
  const listeners: ((commit: Commit) => void)[] = [];
  const underWay = new Set<Promise<unknown>>();
  const readOnlyReason = config.readOnly ? 'The operator has made the service read-only.' : null;
  let version = 0;

  async function run(operation: Write<unknown, unknown>, request: Request): Promise<Outcome> {
    const begun = performance.now();
    let broken = 0;
    for (let tries = 1; ; tries++) {
      try {
        return await runOnce(operation, request);
      } catch (error) {
        if (error instanceof Unreachable) {
          servers.suspect();
          broken += 1;
          if (broken === mostConnections || performance.now() - begun > repeatWithin) throw error;
        } else if (!passing.has(sqlState(error) ?? '') || tries === mostTries) throw error;
        // Full jitter: those who stood in each other's way must not meet again.
        await delay(Math.random() * 10 * 2 ** tries);
      }
    }
  }

  async function runOnce(operation: Write<unknown, unknown>, request: Request): Promise<Outcome> {
    const session = await servers.primary().writing().take();
    let ended: Promise<unknown> = Promise.resolve();
    try {
      await session.run(begin);
      const base = {
        config,
        secretKey,
        db: session.db,
        searchIndex: postgresSearchIndex,
        ...promises(session),
      };
      const outcome = await perform(operation, request, base, savepoint(session), countCall);
      const commit = session.commit();
      ended = commit.catch(() => undefined);
      if (!(await confirmed(commit))) {
        // It may be counted: to count it again would wait for the same commit.
        if (request.ticket) request.ticket.rate = outcome.rate;
        throw unconfirmed();
      }
      return outcome;
    } catch (error) {
      if (!(error instanceof Unconfirmed)) await session.run('rollback').catch(() => undefined);
      throw error;
    } finally {
      // A commit that nobody waits for any more keeps its connection, so that they cannot use up the server's.
      void ended.then(() => session.release());
    }
  }

  async function confirmed(commit: Promise<boolean>): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(late.resolve, commitPatience, false);
    try {
      return await Promise.race([commit, late.promise]);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      servers.suspect();
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What a failure that ended the transaction means to the caller. */
  async function explain(error: unknown): Promise<unknown> {
    const state = sqlState(error);
    if (state === null) return error;
    if (state === '25006') return whyReadOnly();
    if (state === '53100')
      return new AppError('storage_full', 'The disk of the database is full: nothing was stored.', {
        retryAfter: 5,
      });
    if (passing.has(state) && state !== '23505' && state !== '23503') return busy();
    // Resources, intervention (a timeout of the server's, a cancelled statement), I/O: not of the call's making.
    if (/^(53|55|57|58)/.test(state)) {
      log.error({ err: error }, 'the database could not store a change');
      return busy();
    }
    return error;
  }

  /** A server that refuses writes was demoted, or its operator has made it so. */
  async function whyReadOnly(): Promise<AppError> {
    servers.suspect();
    const { rows } = await sql<{ standby: boolean }>`select pg_is_in_recovery() as standby`
      .execute(servers.reads)
      .catch(() => ({ rows: [] }));
    return rows[0]?.standby === false
      ? new AppError('read_only', 'The database is read-only at present. Reading still works.', {
          retryAfter: 60,
        })
      : new Unreachable(null);
  }

  return {
    description: options.description,
    reads: servers.reads,
    publicReads: servers.publicReads,
    catchUp: () => servers.catchUp(),
    primaryChanged: () => servers.primaryChanged(),
    findNewest: findNewestOnPostgres,
    async write<I, O>(operation: Write<I, O>, input: I, ticket?: Ticket): Promise<O> {
      if (readOnlyReason !== null)
        throw new AppError('read_only', `${readOnlyReason} Reading still works.`, { retryAfter: 60 });
      if (servers.primary().writing().waiting() >= mostWaiting) throw busy();
      const uncounted = ticket && ticket.rate === null ? ticket : undefined;
      const request: Request = { name: operation.name, input, now: now(), ticket: uncounted };
      const running = run(operation as Write<unknown, unknown>, request).catch(async (error: unknown) => {
        throw await explain(error);
      });
      underWay.add(running);
      const outcome = await running.finally(() => underWay.delete(running));
      servers.catchUp();
      if (uncounted && outcome.rate) uncounted.rate = outcome.rate;
      if (outcome.changed.length > 0 || outcome.mailQueued)
        for (const listener of listeners) listener(outcome);
      if (outcome.error) throw revive(outcome.error);
      return outcome.value as O;
    },
    // Others commit without this process being told, so that nothing read before stands.
    version: () => ++version,
    contentVersion: () => null,
    readOnly: () => readOnlyReason,
    onCommit: (listener) => listeners.push(listener),
    async probe() {
      await sql`select 1`.execute(servers.publicReads);
    },
    async close() {
      await Promise.allSettled(underWay);
      await servers.close();
    },
  };
}

function promises({ db }: Session): Pick<WriteContext, 'lock' | 'confirmDurable'> {
  return {
    async lock(name) {
      await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(db);
    },
    /** A commit waits for the standby only if it has something to send: an empty message is. */
    async confirmDurable() {
      await sql`select pg_logical_emit_message(true, 'masthead', '')`.execute(db);
    },
  };
}

function savepoint(session: Session): Savepoint {
  return {
    begin: () => session.run('savepoint operation'),
    release: () => session.run('release savepoint operation'),
    undo: () => session.run('rollback to savepoint operation'),
    explain: (error) => {
      // Nothing of the transaction holds: whether to run it again is decided for the whole.
      if (sqlState(error) !== null) throw error;
      return error;
    },
  };
}

/** The transaction may be stored, or not, or not everywhere it must be: a repeat of the call finds out. */
class Unconfirmed extends AppError {}

function unconfirmed(): Unconfirmed {
  return new Unconfirmed(
    'unavailable',
    'The database did not confirm that the change is stored safely: it may be or not.',
    {
      retryAfter: 2,
      hint: 'Publishing, votes and calls with an Idempotency-Key can be repeated and are not done twice; before others, look whether they were done.',
    },
  );
}

function busy(): AppError {
  return new AppError('unavailable', 'The database is busy. Repeat the call in a moment.', { retryAfter: 2 });
}
