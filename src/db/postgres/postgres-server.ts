import type { CompiledQuery, QueryResult } from 'kysely';
import { createPool, type Preparing, type SessionPool } from './postgres.ts';

/** Connections of one process to a server: for writes, for reads, and one to ask how it is. */
const mostWriting = 8;
const mostReading = 8;
/** How long a caller waits for a connection, ms. */
const connectPatience = 5_000;
/** How long the question how a server is may take, ms. */
const askPatience = 2_000;
/** A connection that broke while it was idle fails within this, ms, and is asked again; what takes longer hangs. */
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

/** Throws {@link Unreachable}, or what the database has against the query. */
export async function readOn<R>(server: Server, query: CompiledQuery): Promise<QueryResult<R>> {
  const session = await server.reading().take();
  try {
    return await session.executeQuery<R>(query);
  } finally {
    session.release();
  }
}

/** Whether a server is in recovery, and so takes no writes. Throws where it does not answer in time. */
export async function isStandby(server: Server): Promise<boolean> {
  return (await ask(server, 'select pg_is_in_recovery() as answer')) === true;
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
  const [high = '', low = '', file] = String(await ask(server, text)).split('/');
  return {
    lsn: (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`),
    timeline: file === undefined ? null : Number.parseInt(file.slice(0, 8), 16),
  };
}

async function ask(server: Server, text: string): Promise<unknown> {
  const begun = performance.now();
  return askOnce(server, text).catch((error: unknown) => {
    if (performance.now() - begun > breaksWithin) throw error;
    return askOnce(server, text);
  });
}

async function askOnce(server: Server, text: string): Promise<unknown> {
  const session = await server.watching().take();
  try {
    return await session.ask(text, askPatience);
  } finally {
    session.release();
  }
}
