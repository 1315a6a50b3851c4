import type { CompiledQuery, QueryResult } from 'kysely';
import type { Log } from '../../platform/log.ts';
import { createDb, sqlState, Unreachable } from './postgres.ts';
import { createElection } from './postgres-election.ts';
import { watchReplicas } from './postgres-replicas.ts';
import { createServer, readOn, type Server } from './postgres-server.ts';
import type { Preparing } from './postgres-session.ts';

/** The servers of the database and their roles, as seen by this process. */
export type Servers = Awaited<ReturnType<typeof openServers>>;

/** Resolves after the first check of all servers. One of `urls` is the primary's, the preferred first. */
export async function openServers(urls: readonly string[], replicaUrls: readonly string[], log: Log) {
  const preparing: Preparing = {
    on: true,
    onEnd: () =>
      log.warn(
        {},
        'prepared statements cannot be relied on (a pooler, or a new schema): queries go without from now on',
      ),
  };
  const candidates = urls.map((url) => createServer(url, preparing));
  const followers = replicaUrls.map((url) => createServer(url, preparing));
  const election = createElection(candidates, log);
  const replicas = watchReplicas(followers, { primary: () => election.present(), log });
  let turn = 0;
  /** The primary at the last call of `primaryChanged`, and whether a standby stood in for it since. */
  let before: Server | null = null;
  let stoodIn = false;

  async function onPrimary<T>(read: (server: Server) => Promise<T>): Promise<T> {
    try {
      return await read(election.primary());
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      void election.look();
      // A connection that broke while idle does not mean that the server is down.
      return read(election.primary());
    }
  }

  /** Used while there is no primary: stale pages are better than none. */
  function standbys(): readonly Server[] {
    const alive = replicas.alive();
    return alive.length > 0 ? alive : election.standbys();
  }

  async function onPublic<T>(read: (server: Server) => Promise<T>): Promise<T> {
    const isAway = election.present() === null;
    const usable = isAway ? standbys() : replicas.fresh();
    const chosen = usable[turn++ % Math.max(1, usable.length)];
    if (isAway && chosen) stoodIn = true;
    try {
      return await (chosen ? read(chosen) : onPrimary(read));
    } catch (error) {
      // 40001: the replica cancelled the query, which conflicted with replay.
      if (!(error instanceof Unreachable) && sqlState(error) !== '40001') throw error;
      const other = chosen ? null : standbys()[0];
      if (other) stoodIn = true;
      return other ? read(other) : onPrimary(read);
    }
  }

  await Promise.all([election.look(), replicas.look()]);
  replicas.catchUp();
  return {
    /** Why servers did not answer the first check. */
    faults: election.faults(),
    /** Reads on the primary. */
    reads: readingDb(onPrimary),
    /** Reads on a replica that is up to date with this process, else on the primary, else on any standby. */
    publicReads: readingDb(onPublic),
    /** Runs reads on a server that `publicReads` would use. */
    onPublic,
    /** Throws {@link Unreachable} while there is none. */
    primary: () => election.primary(),
    /** The primary, else a standby. Throws {@link Unreachable} where none answers. */
    readable: (): Server => election.present() ?? standbys()[0] ?? election.primary(),
    /** Checks at once whether the primary is still there. */
    suspect: () => void election.look(),
    /** Makes `publicReads` reflect all that is committed now. */
    catchUp: () => replicas.catchUp(),
    /** As `Engine.primaryChanged`. */
    primaryChanged(): boolean {
      const primary = election.present();
      if (primary === null || (primary === before && !stoodIn)) return false;
      const took = stoodIn || before !== null;
      [before, stoodIn] = [primary, false];
      return took;
    },
    async close() {
      await Promise.all([election.stop(), replicas.stop()]);
      await Promise.all([...candidates, ...followers].map((server) => server.end()));
    },
  };
}

/** Asks a server that it chooses. */
type Reader = <T>(on: (server: Server) => Promise<T>) => Promise<T>;

/** A query builder that refuses all but reads. */
function readingDb(read: Reader) {
  const refuse = (): never => {
    throw new Error('This connection is for reading: changes go through Engine.write');
  };
  const check = ({ query }: CompiledQuery) =>
    query.kind === 'SelectQueryNode' || query.kind === 'RawNode' || refuse();
  return createDb(
    async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
      check(query);
      return read((server) => readOn<R>(server, query));
    },
    {
      async rows(query, { large }) {
        check(query);
        return read((server) => (large ? server.large(query) : server.gathered(query)));
      },
      change: refuse,
      changeRows: refuse,
    },
  );
}
