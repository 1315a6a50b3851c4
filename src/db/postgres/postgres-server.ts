import type { CompiledQuery, QueryResult } from 'kysely';
import { createPool, type Preparing, type Session, type SessionPool } from './postgres.ts';

/** Most connections of one process to a server, besides one for health checks. */
const mostWriting = 8;
const mostReading = 8;
/** How long a caller waits for a connection, ms. */
const connectPatience = 5_000;
/** How long a health check may take, ms. */
const askPatience = 2_000;
/** A connection that broke while idle fails within this, ms, and the check is repeated; a slower failure is a hang. */
const breaksWithin = 500;

/** A server, by one of its addresses. */
export type Server = {
  /** Host, port and database: no credentials. */
  readonly address: string;
  readonly url: string;
  readonly watching: () => SessionPool;
  readonly reading: () => SessionPool;
  readonly writing: () => SessionPool;
  /** Breaks all connections; the next callers get new ones. */
  cut(): void;
  end(): Promise<void>;
};

/** A server whose connections are made when they are needed. */
export function createServer(url: string, preparing: Preparing): Server {
  const open = () => ({
    watching: createPool(url, { max: 1, patience: askPatience, preparing }),
    reading: createPool(url, { max: mostReading, patience: connectPatience, preparing }),
    writing: createPool(url, { max: mostWriting, patience: connectPatience, preparing }),
  });
  let pools = open();
  const { host, pathname } = new URL(url);
  return {
    address: host + pathname,
    url,
    watching: () => pools.watching,
    reading: () => pools.reading,
    writing: () => pools.writing,
    cut() {
      const broken = pools;
      pools = open();
      for (const pool of Object.values(broken)) pool.cut();
    },
    end: async () => void (await Promise.all(Object.values(pools).map((pool) => pool.end()))),
  };
}

/** Runs a query. Throws {@link Unreachable}, or the database's own error. */
export function readOn<R>(server: Server, query: CompiledQuery): Promise<QueryResult<R>> {
  return using(server.reading(), (session) => session.executeQuery<R>(query));
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

async function ask<T>(server: Server, question: (session: Session) => Promise<T>): Promise<T> {
  const begun = performance.now();
  return using(server.watching(), question).catch((error: unknown) => {
    if (performance.now() - begun > breaksWithin) throw error;
    return using(server.watching(), question);
  });
}

async function using<T>(pool: SessionPool, body: (session: Session) => Promise<T>): Promise<T> {
  const session = await pool.take();
  return body(session).finally(() => session.release());
}
