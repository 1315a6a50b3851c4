import type { CompiledQuery, QueryResult } from 'kysely';
import { Client, Pool, type ClientConfig, type PoolClient } from 'pg';
import { trustSystemAuthorities } from '../../config/authorities.ts';
import { Unreachable } from './postgres.ts';
import { createGathering } from './postgres-gather.ts';
import { Session, type Preparing, type SessionOptions } from './postgres-session.ts';
import { hour } from '../../platform/durations.ts';

/** Most connections of one process to a server, besides one for health checks. */
export const mostWriting = 5;
const mostReading = 5;
/** Of those for reads of whole texts, apart from all others: the rows of each may be 4 MiB. */
const mostLarge = 2;
/** How long a caller waits for a connection, ms. */
const connectPatience = 5_000;
/** How long a health check may take, ms. */
const askPatience = 2_000;
/** A connection that broke while idle fails within this, ms, and the check is repeated; a slower failure is a hang. */
const breaksWithin = 500;

/** How long a statement on whole tables may take, as in migrations, ms. */
const wholeTablePatience = hour;
/** How long closing a pool waits for connections in use, ms. */
const endPatience = 1_000;

/** A server, by one of its addresses. */
export type Server = ReturnType<typeof createServer>;

/** A server whose connections are made when they are needed. */
export function createServer(url: string, preparing: Preparing) {
  const open = () => ({
    watching: createPool(url, { max: 1, patience: askPatience, preparing }),
    readingLarge: createPool(url, { max: mostLarge, patience: connectPatience, preparing }),
    reading: createPool(url, { max: mostReading, patience: connectPatience, preparing }),
    writing: createPool(url, { max: mostWriting, patience: connectPatience, preparing }),
  });
  let pools = open();
  const rowsOn = async (pool: SessionPool, query: CompiledQuery): Promise<readonly unknown[]> =>
    (await using(pool, (session) => session.executeQuery(query))).rows;
  const gathered = createGathering(
    () => pools.reading.take(),
    (query) => rowsOn(pools.reading, query),
  );
  const { host, pathname } = new URL(url);
  return {
    /** Host, port and database: no credentials. */
    address: host + pathname,
    url,
    /** Connections by their use. */
    pools: () => pools,
    /** Runs a short query together with others: see {@link createGathering}. Throws as {@link readOn}. */
    gathered,
    /** Runs a query whose rows may be megabytes, few of them at once. Throws as {@link readOn}. */
    large: (query: CompiledQuery) => rowsOn(pools.readingLarge, query),
    /** Breaks all connections; the next callers get new ones. */
    cut(): void {
      for (const pool of Object.values(pools)) pool.cut();
      pools = open();
    },
    end: () => Promise.all(Object.values(pools).map((pool) => pool.end())),
  };
}

/** Runs a query. Throws {@link Unreachable}, or the database's own error. */
export function readOn<R>(server: Server, query: CompiledQuery): Promise<QueryResult<R>> {
  return using(server.pools().reading, (session) => session.executeQuery<R>(query));
}

/** Runs several queries on one connection. Throws {@link Unreachable}, or what `body` throws. */
export function readInSession<T>(server: Server, body: (session: Session) => Promise<T>): Promise<T> {
  return using(server.pools().reading, body);
}

/** Ends what a backend of a server is doing, if it still does anything. */
export async function cancelBackend(server: Server, backend: number): Promise<void> {
  await ask(server, (session) => session.run(`select pg_cancel_backend(${backend})`)).catch(() => undefined);
}

/** Whether a server is in recovery, and so takes no writes. Throws where it does not answer in time. */
export function isStandby(server: Server): Promise<boolean> {
  return ask(server, (session) => session.isStandby(askPatience));
}

/** How far a server is in the log: written, or on a standby replayed. */
export type Position = {
  readonly lsn: bigint;
  /** Grows with each promotion; null on a standby, which follows whatever its primary is on. */
  readonly timeline: number | null;
};

/** Throws where the server does not answer in time. */
export async function positionOf(server: Server): Promise<Position> {
  // A log file's name begins with the timeline, as 8 hex digits.
  const text = `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn()::text
    else pg_current_wal_lsn()::text || '/' || pg_walfile_name(pg_current_wal_lsn()) end as answer`;
  const [high = '', low = '', file] = String(
    await ask(server, (session) => session.ask(text, askPatience)),
  ).split('/');
  return {
    lsn: (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`),
    timeline: file === undefined ? null : Number.parseInt(file.slice(0, 8), 16),
  };
}

/** Opens one connection for statements on whole tables, without prepared statements. Throws {@link Unreachable}. */
export async function connect(url: string): Promise<{ session: Session; close: () => Promise<void> }> {
  const pool = createPool(url, {
    max: 1,
    patience: connectPatience,
    statementPatience: wholeTablePatience,
    preparing: { on: false, onEnd: () => undefined },
  });
  const session = await pool.take();
  return {
    session,
    async close() {
      session.release();
      await pool.end();
    },
  };
}

async function ask<T>(server: Server, question: (session: Session) => Promise<T>): Promise<T> {
  const begun = performance.now();
  return using(server.pools().watching, question).catch((error: unknown) => {
    if (performance.now() - begun > breaksWithin) throw error;
    return using(server.pools().watching, question);
  });
}

async function using<T>(pool: SessionPool, body: (session: Session) => Promise<T>): Promise<T> {
  const session = await pool.take();
  return body(session).finally(() => session.release());
}

type PoolOptions = SessionOptions & {
  /** Connections at most. */
  readonly max: number;
  /** How long a caller waits for a connection, ms. */
  readonly patience: number;
};

type SessionPool = ReturnType<typeof createPool>;

/** Knows, by its address or PGSSLMODE, whether it connects by TLS. */
class TrustingClient extends Client {
  constructor(config?: ClientConfig) {
    super(config);
    if (this.ssl) trustSystemAuthorities();
  }
}

/** Connections to one server, opened on demand. */
function createPool(url: string, options: PoolOptions) {
  const pool = new Pool({
    Client: TrustingClient,
    connectionString: url,
    application_name: 'masthead',
    max: options.max,
    connectionTimeoutMillis: options.patience,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
    keepAlive: true,
  });
  const sessions = new Map<PoolClient, Session>();
  // The loss of an idle connection is harmless, but an error event without a listener ends the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => sessions.set(client, new Session(client, options)));
  pool.on('remove', (client) => sessions.delete(client));

  function breakAll(): void {
    for (const client of sessions.keys()) void client.end().catch(() => undefined);
  }

  return {
    /** Throws {@link Unreachable}. */
    async take(): Promise<Session> {
      const client = await pool.connect().catch((error: unknown) => {
        throw new Unreachable(error);
      });
      return sessions.get(client) ?? new Session(client, options);
    },
    /** Breaks every connection, whatever is under way. */
    cut(): void {
      void pool.end().catch(() => undefined);
      breakAll();
    },
    /** Closes when all connections are released; breaks those still in use after a second. */
    async end(): Promise<void> {
      const overdue = setTimeout(breakAll, endPatience);
      await pool.end().finally(() => clearTimeout(overdue));
    },
  };
}
