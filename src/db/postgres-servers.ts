import type { CompiledQuery, Kysely, QueryResult } from 'kysely';
import type { Log } from '../log.ts';
import { createDb, createPool, sqlState, Unreachable, type Preparing, type SessionPool } from './postgres.ts';
import type { Tables } from './tables.ts';

/** Connections of one process to a server: for writes, for reads, and one to ask how it is. */
const mostWriting = 8;
const mostReading = 8;
/** How long a caller waits for a connection, ms. */
const connectPatience = 5_000;
/** How long the question how a server is may take, ms. */
const askPatience = 2_000;

/** Milliseconds between looks at the primary, while it is there and while it is not. */
const electEvery = 1_000;
const electAgain = 250;
/** Milliseconds between looks at a replica, and while it has not replayed what this process committed. */
const followEvery = 250;
const followAgain = 25;
/** A replica that is so far behind is left out, ms. */
const mostLag = 5_000;

/** A server, by one of its addresses. */
type Server = {
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

/** What the database consists of at present, as seen by this process. */
export type Servers = {
  /** Reads on the primary. */
  readonly reads: Kysely<Tables>;
  /** Reads on a replica that shows all that this process knows of, else on the primary, else on any replica. */
  readonly publicReads: Kysely<Tables>;
  /** Throws {@link Unreachable} while there is none. */
  primary(): Server;
  /** The primary may have gone: looks at once. */
  suspect(): void;
  /** From here on `publicReads` show all that is committed at this moment. */
  catchUp(): void;
  close(): Promise<void>;
};

export type ServersOptions = {
  /** Addresses of which one is the primary's, the preferred first. */
  readonly urls: readonly string[];
  readonly replicaUrls: readonly string[];
  readonly log: Log;
};

/**
 * Finds the primary among the addresses and keeps finding it: the one that is not in recovery, and of several
 * (an old primary that came back) the one on the latest timeline. Resolves after the first look; what failed
 * then is in `faults`.
 */
export async function openServers(
  options: ServersOptions,
): Promise<{ servers: Servers; faults: readonly unknown[] }> {
  const { urls, replicaUrls, log } = options;
  const preparing: Preparing = {
    on: true,
    onEnd: () => log.warn({}, 'the pooler keeps no prepared statements: queries go without from now on'),
  };
  const candidates = urls.map((url) => createServer(url, preparing));
  const replicas = replicaUrls.map((url) => createReplica(url, preparing));
  let current: Server | null = null;
  /** Looks in a row at which the present primary did not answer. */
  let misses = 0;
  let faults: unknown[] = [];
  /** Servers that take writes although another was promoted. */
  const others = new Set<Server>();
  /** Counts what this process knows to be committed; a replica is fresh when it has replayed up to it. */
  let generation = 0;
  /** Where the primary was, and when (ms of the process's clock): tells how far a replica is behind. */
  const history: { at: number; lsn: bigint }[] = [];
  let turn = 0;

  async function elect(): Promise<number> {
    const failed: unknown[] = [];
    const answers = await Promise.all(
      candidates.map(async (server) => {
        const standby = await isStandby(server).catch((error: unknown) => {
          failed.push(error);
          return null;
        });
        return { server, standby };
      }),
    );
    faults = failed;
    const primaries = answers.filter(({ standby }) => standby === false).map(({ server }) => server);
    const elected = primaries.length > 1 ? await onLatestTimeline(primaries, warnOfOther) : primaries[0];
    if (elected) become(elected);
    else miss(answers.some(({ server, standby }) => server === current && standby === true));
    return misses === 0 ? electEvery : electAgain;
  }

  function become(server: Server): void {
    const regained = misses > 0;
    misses = 0;
    if (server === current) {
      if (regained) log.info({ server: server.address }, 'the database takes writes again');
      return;
    }
    if (current !== null) {
      log.warn({ from: current.address, to: server.address }, 'another server is the primary now');
      current.cut();
    }
    current = server;
  }

  function miss(demoted: boolean): void {
    misses += 1;
    if (misses === 1 && current !== null)
      log.warn({ server: current.address }, 'no server of DATABASE_URL takes writes');
    // Callers that wait for a server that does not even answer this are told so.
    if (misses === 2) current?.cut();
    if (demoted) {
      current?.cut();
      current = null;
    }
  }

  function warnOfOther(other: Server): void {
    if (others.has(other)) return;
    others.add(other);
    log.error(
      { server: other.address },
      'two servers of DATABASE_URL take writes: stop the one that was replaced, before it misleads anyone',
    );
  }

  function primary(): Server {
    // Not waited for again by every caller: the looks tell when it is back.
    if (current === null || misses >= 2) throw new Unreachable(null);
    return current;
  }

  async function follow(replica: Replica): Promise<number> {
    const wanted = generation;
    const lsn = current === null || misses > 0 ? null : await position(current).catch(() => null);
    if (lsn !== null) remember(lsn);
    const replayed = await position(replica.server).catch(() => null);
    if (replica.alive !== (replayed !== null)) {
      replica.alive = replayed !== null;
      log.warn(
        { server: replica.server.address },
        replica.alive ? 'a replica answers' : 'a replica does not answer and is left out',
      );
    }
    if (replayed === null) return electEvery;
    const lag = lagOf(replayed);
    if (replica.lagging !== lag > mostLag) {
      replica.lagging = lag > mostLag;
      log.warn(
        { server: replica.server.address },
        replica.lagging ? 'a replica is more than 5 s behind and is left out' : 'a replica has caught up',
      );
    }
    if (lsn !== null && replayed >= lsn) replica.seen = wanted;
    return replica.seen === generation || replica.lagging ? followEvery : followAgain;
  }

  function remember(lsn: bigint): void {
    const at = performance.now();
    history.push({ at, lsn });
    while ((history[0]?.at ?? at) < at - 2 * mostLag) history.shift();
  }

  /** How long ago the primary was at a place that is not replayed yet, ms. */
  function lagOf(replayed: bigint): number {
    const missing = history.find(({ lsn }) => lsn > replayed);
    return missing ? performance.now() - missing.at : 0;
  }

  const election = createLoop(elect);
  const followers = replicas.map((replica) => createLoop(() => follow(replica)));

  function catchUp(): void {
    generation += 1;
    for (const follower of followers) follower.soon();
  }

  async function read<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      return await readOn<R>(primary(), query);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      void election.now();
      // A connection that broke while it was idle tells nothing of the server.
      return readOn<R>(primary(), query);
    }
  }

  async function readPublic<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const alive = replicas.filter((replica) => replica.alive);
    const fresh = alive.filter((replica) => !replica.lagging && replica.seen === generation);
    const usable = misses > 0 || current === null ? alive : fresh;
    const chosen = usable[turn++ % Math.max(1, usable.length)];
    try {
      return chosen ? await readOn<R>(chosen.server, query) : await read<R>(query);
    } catch (error) {
      // 40001: the replica ended the query, since it stood in the way of what it had to replay.
      if (!(error instanceof Unreachable) && sqlState(error) !== '40001') throw error;
      // Old pages are better than none: without a primary any replica will do.
      const other = chosen ? null : alive[0];
      return other ? readOn<R>(other.server, query) : read<R>(query);
    }
  }

  await Promise.all([election.now(), ...followers.map((follower) => follower.now())]);
  catchUp();
  const servers: Servers = {
    reads: createDb(refusing(read)),
    publicReads: createDb(refusing(readPublic)),
    primary,
    suspect: () => void election.now(),
    catchUp,
    async close() {
      await Promise.all([election, ...followers].map((loop) => loop.stop()));
      await Promise.all(
        [...candidates, ...replicas.map(({ server }) => server)].map((server) => server.end()),
      );
    },
  };
  return { servers, faults };
}

type Replica = {
  readonly server: Server;
  alive: boolean;
  lagging: boolean;
  /** The generation up to which it has replayed. */
  seen: number;
};

function createReplica(url: string, preparing: Preparing): Replica {
  return { server: createServer(url, preparing), alive: false, lagging: false, seen: -1 };
}

function createServer(url: string, preparing: Preparing): Server {
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

async function readOn<R>(server: Server, query: CompiledQuery): Promise<QueryResult<R>> {
  const session = await server.reading().take();
  try {
    return await session.executeQuery<R>(query);
  } finally {
    session.release();
  }
}

/** Passes on what reads only: everything else belongs into an operation. */
function refusing(execute: <R>(query: CompiledQuery) => Promise<QueryResult<R>>) {
  return async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
    if (query.query.kind !== 'SelectQueryNode' && query.query.kind !== 'RawNode')
      throw new Error('This connection is for reading: changes go through Engine.write');
    return execute<R>(query);
  };
}

async function isStandby(server: Server): Promise<boolean> {
  const question = 'select pg_is_in_recovery() as answer';
  // Asked again, since a connection may have broken while it was idle.
  return (await ask(server, question).catch(() => ask(server, question))) === true;
}

/** How far a server is in the log: written, or on a replica replayed. */
async function position(server: Server): Promise<bigint> {
  const text = `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text as answer`;
  const [high = '', low = ''] = String(await ask(server, text)).split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/** An old primary that was started again still takes writes, on the timeline that the new one has left. */
async function onLatestTimeline(
  primaries: readonly Server[],
  warn: (other: Server) => void,
): Promise<Server> {
  const found = await Promise.all(
    primaries.map(async (server) => {
      // A log file's name begins with the timeline, as 8 hex digits.
      const file = await ask(server, 'select pg_walfile_name(pg_current_wal_lsn()) as answer').catch(
        () => '',
      );
      return { server, timeline: Number.parseInt(String(file).slice(0, 8), 16) || 0 };
    }),
  );
  const latest = found.reduce((best, one) => (one.timeline > best.timeline ? one : best));
  for (const { server, timeline } of found) if (timeline < latest.timeline) warn(server);
  return latest.server;
}

async function ask(server: Server, text: string): Promise<unknown> {
  const session = await server.watching().take();
  try {
    return await session.ask(text, askPatience);
  } finally {
    session.release();
  }
}

/** Runs `round` now, on demand, and whenever as many ms have passed as it returned; rounds never overlap. */
function createLoop(round: () => Promise<number>) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;
  let stopped = false;

  function now(): Promise<void> {
    running ??= run();
    return running;
  }

  async function run(): Promise<void> {
    clearTimeout(timer);
    const delay = await round();
    running = null;
    later(delay);
  }

  function later(delay: number): void {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void now(), delay).unref();
  }

  return {
    now,
    /** A round in a moment, so that many events cause one. */
    soon(): void {
      if (running === null) later(1);
    },
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
