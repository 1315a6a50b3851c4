import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../platform/log.ts';
import { databaseFailures } from '../../platform/measured.ts';
import type { Engine } from '../database.ts';
import { createWrites, type CountCall, type Outcome, type Request, type Write } from '../write.ts';
import { Crowded, isHeldUp, runBatch } from './postgres-batch.ts';
import { findNewestOnPostgres } from './postgres-full-text.ts';
import { createLanes, patience } from './postgres-lanes.ts';
import { sqlState, Unreachable } from './postgres.ts';
import { cancelBackend, mostWriting, readInSession, type Server } from './postgres-server.ts';
import type { Servers } from './postgres-servers.ts';

/** Writes of a process after which it looks for tables whose statistics are of few rows, or of none. */
const writesBefore = new Set([64, 256, 1024, 4096]);
const fewRows = 4_000;

/** Attempts at a write that conflicts with others, and at one whose connection broke before its commit. */
const mostTries = 6;
const mostConnections = 3;
/** How old the changes of other processes may be that an answer does not show yet, ms. */
const mostBehind = 1_000;
/** A failure that took longer, ms, was not a broken connection but a server that does not answer. */
const repeatWithin = 1_000;
/** SQLSTATEs for which the transaction is run again: serialization failure, deadlock, and stale prepared statements. */
const conflicts = ['40001', '40P01', '26000', '42P05', '0A000'];
/** And a row that another transaction inserted or deleted in the meantime, which the second run will find. */
const passing = new Set([...conflicts, '23505', '23503']);

export type PostgresEngineOptions = {
  readonly servers: Servers;
  readonly description: string;
  readonly config: Config;
  readonly secretKey: Buffer;
  readonly log: Log;
  readonly now: () => number;
  readonly countCall: CountCall;
};

/** The engine for any number of processes: writes run in this one, on a connection to the primary. */
export function createPostgresEngine(options: PostgresEngineOptions): Engine {
  const { servers, config, log, now } = options;
  const underWay = new Set<Promise<unknown>>();
  const lanes = createLanes((...batch) => runBatch(options, ...batch), mostWriting, busy);
  const statistics = createEarlyStatistics(() => servers.primary(), log);
  let version = 0;
  /** Counts what this process learnt of visible changes, and until when (of `performance.now()`) it knows of all. */
  let learnt = 0;
  let seenUntil = -Infinity;

  async function run(write: Write<unknown, unknown>, request: Request): Promise<Outcome> {
    // Nothing waits for a server that is known to be away.
    servers.primary();
    const running = runUntilDone(lanes, servers, write, request);
    underWay.add(running);
    try {
      const outcome = await running;
      servers.catchUp();
      if (outcome.changed.length > 0) learnt++;
      statistics.written();
      return outcome;
    } catch (error) {
      throw await explain(error);
    } finally {
      underWay.delete(running);
    }
  }

  /** What a failure that ended the transaction means to the caller. */
  async function explain(error: unknown): Promise<unknown> {
    const state = sqlState(error);
    if (state === null) return error;
    if (state === '25006') return whyReadOnly();
    if (state === '53100') return diskFull();
    if (conflicts.includes(state)) return busy();
    // Resources, intervention (a server's timeout, a cancelled statement), I/O: not the call's fault.
    if (/^(53|55|57|58)/.test(state)) {
      databaseFailures.write.value++;
      log.error({ err: error }, 'the database could not store a change');
      return busy();
    }
    return error;
  }

  /** A server that refuses writes was demoted, or made read-only by its operator. */
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
    ...createWrites({ config, now, run }),
    description: options.description,
    reads: servers.reads,
    publicReads: servers.publicReads,
    catchUp() {
      servers.catchUp();
      learnt++;
    },
    primaryChanged() {
      const changed = servers.primaryChanged();
      if (changed) learnt++;
      return changed;
    },
    searchesAtOnce: 3,
    findNewest: (...search) =>
      servers.onPublic((server) =>
        readInSession(server, (session) =>
          findNewestOnPostgres(session, search, (backend) => cancelBackend(server, backend)),
        ),
      ),
    // Other processes commit without notice, so no number may stand for what was read.
    version: () => ++version,
    contentVersion: () => (performance.now() - seenUntil <= mostBehind ? learnt : null),
    publicVersion: () => learnt,
    followed(since) {
      seenUntil = since;
    },
    // The transaction that wrote the row.
    rowVersion: sql<string>`cast(agents.xmin as text)`,
    async probe() {
      await sql`select 1`.execute(servers.publicReads);
    },
    async close() {
      await Promise.allSettled([...underWay, statistics.end()]);
      await servers.close();
    },
  };
}

/** Runs a write, again where it conflicts with another or its connection breaks before the commit. */
async function runUntilDone(
  lanes: ReturnType<typeof createLanes>,
  servers: Servers,
  write: Write<unknown, unknown>,
  request: Request,
): Promise<Outcome> {
  const begun = performance.now();
  let broken = 0;
  let about = write.about?.(request.input) ?? null;
  let locks = write.locks?.(request.input, request.ticket) ?? null;
  let waitsFor: string | null = null;
  for (let tries = 1; ; tries++) {
    try {
      const done = Promise.withResolvers<Outcome>();
      lanes.run({ write, request, about, locks, waitsFor, done });
      return await done.promise;
    } catch (error) {
      if (error instanceof Crowded) {
        if (performance.now() - begun > patience) throw busy();
        waitsFor = error.lock;
        tries--;
        continue;
      }
      const wasHeldUp = isHeldUp({ locks }, error);
      locks = null;
      if (wasHeldUp) continue;
      // Alone from now on: its failure would have the others of its batch run again too.
      about = null;
      if (error instanceof Unreachable) {
        servers.suspect();
        broken += 1;
        if (broken === mostConnections || performance.now() - begun > repeatWithin) throw error;
      } else if (!passing.has(sqlState(error) ?? '') || tries === mostTries) throw error;
      // Full jitter: conflicting writes must not meet again.
      await delay(Math.random() * 10 * 2 ** tries);
    }
  }
}

function busy(): AppError {
  return new AppError('unavailable', 'The database is busy. Repeat the call in a moment.', { retryAfter: 2 });
}

function diskFull(): AppError {
  databaseFailures.full.value++;
  const message = 'The disk of the database is full: nothing was stored.';
  return new AppError('storage_full', message, { retryAfter: 5 });
}

/**
 * Has the server make statistics of tables that were small when it last did, since its own process for that comes once a
 * minute. Until then it plans for empty tables, where any index will do, and reads all posts of an agent to find one by
 * its slug.
 */
function createEarlyStatistics(primary: () => Server, log: Log) {
  let writes = 0;
  let making = Promise.resolve();
  return {
    /** Counts a write of this process. */
    written(): void {
      if (!writesBefore.has(++writes)) return;
      making = makeAnew(primary).catch((error: unknown) => {
        log.debug({ err: error }, 'the database made no statistics of its new tables');
      });
    },
    /** Waits for what is under way. */
    end: () => making,
  };
}

async function makeAnew(primary: () => Server): Promise<void> {
  await readInSession(primary(), async (session) => {
    const { rows } = await sql<{ tables: string | null }>`
      select string_agg(format('%I', relname), ', ') as tables from pg_class
      where relnamespace = cast(current_schema() as regnamespace) and relkind = 'r'
        and reltuples < ${fewRows} and pg_relation_size(oid) > 0`.execute(session.db);
    const tables = rows[0]?.tables ?? null;
    if (tables !== null) await session.run(`analyze ${tables}`);
  });
}
