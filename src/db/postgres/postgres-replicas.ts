import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { positionOf, type Position, type Server } from './postgres-server.ts';

/** Milliseconds between checks of a replica: normally, until it has caught up, and while it does not answer. */
const lookEvery = 250;
const lookAgain = 25;
const lookWhileAway = 1_000;
/** Lag from which a replica is not used, ms. */
const mostLag = 5_000;

type Replica = {
  readonly server: Server;
  /** Null before the first check. */
  alive: boolean | null;
  lagging: boolean;
  /** The generation up to which it has replayed. */
  seen: number;
};

/** Watches servers that follow the primary. `primary` gives the one that answers, or null. */
export function watchReplicas(
  servers: readonly Server[],
  { primary, log }: { readonly primary: () => Server | null; readonly log: Log },
) {
  const replicas = servers.map((server): Replica => ({ server, alive: null, lagging: false, seen: -1 }));
  /** Counts what this process knows to be committed; a replica is fresh when it has replayed up to it. */
  let generation = 0;
  /** Log positions of the primary over time (ms of the process's clock), from which lag is computed. */
  const history: { at: number; lsn: bigint }[] = [];

  async function follow(replica: Replica): Promise<number> {
    const wanted = generation;
    const server = primary();
    const written = server && (await positionOf(server).catch(() => null));
    if (written) remember(written.lsn);
    const replayed = await positionOf(replica.server).catch(() => null);
    noteAlive(replica, replayed !== null);
    if (replayed === null) return lookWhileAway;
    noteLag(replica, lagOf(replayed.lsn));
    if (written && isUpTo(replayed, written)) replica.seen = wanted;
    return replica.seen === generation || replica.lagging ? lookEvery : lookAgain;
  }

  function noteAlive(replica: Replica, alive: boolean): void {
    if (replica.alive === alive) return;
    replica.alive = alive;
    const { address } = replica.server;
    if (alive) {
      log.info({ server: address }, 'a replica answers');
      return;
    }
    log.warn({ server: address }, 'a replica does not answer and is left out');
    // Fails the calls that wait for it, which then read elsewhere.
    replica.server.cut();
  }

  function noteLag(replica: Replica, lag: number): void {
    if (replica.lagging === lag > mostLag) return;
    replica.lagging = !replica.lagging;
    const { address } = replica.server;
    if (replica.lagging) log.warn({ server: address }, 'a replica is more than 5 s behind and is left out');
    else log.info({ server: address }, 'a replica has caught up');
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

  const followers = replicas.map((replica) => createLoop(() => follow(replica)));
  return {
    /** Those that answer. */
    alive: () => replicas.filter(({ alive }) => alive === true).map(({ server }) => server),
    /** Those that have replayed all that was committed before the last `catchUp`. */
    fresh: () =>
      replicas
        .filter(({ alive, lagging, seen }) => alive === true && !lagging && seen === generation)
        .map(({ server }) => server),
    /** Requires replicas to have replayed all that is committed now. */
    catchUp() {
      generation += 1;
      for (const follower of followers) follower.soon();
    },
    /** Checks all of them at once; resolves after that. */
    look: () => Promise.all(followers.map((follower) => follower.now())),
    stop: () => Promise.all(followers.map((follower) => follower.stop())),
  };
}

/** A replica that takes writes is the primary by another address, or an old one on a timeline of the past. */
function isUpTo(replayed: Position, written: Position): boolean {
  return (
    replayed.lsn >= written.lsn && (replayed.timeline === null || replayed.timeline === written.timeline)
  );
}
