import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { positionOf, type Position, type Server } from './postgres-server.ts';

/** Milliseconds between looks at a replica, while it has not replayed what it must, and while it is away. */
const lookEvery = 250;
const lookAgain = 25;
const lookWhileAway = 1_000;
/** A replica that is so far behind is left out, ms. */
const mostLag = 5_000;

/** The replicas, as seen by this process. */
export type Replicas = {
  /** Those that answer. */
  alive(): readonly Server[];
  /** Those that show all that is committed at the moment of the last {@link Replicas.catchUp}. */
  fresh(): readonly Server[];
  /** From here on only those are fresh that show all that is committed at this moment. */
  catchUp(): void;
  /** Looks at all of them at once; resolves after that. */
  look(): Promise<void>;
  stop(): Promise<void>;
};

type Replica = {
  readonly server: Server;
  /** Null before the first look. */
  alive: boolean | null;
  lagging: boolean;
  /** The generation up to which it has replayed. */
  seen: number;
};

/** Watches servers that follow the primary. `primary` gives the one that answers, or null. */
export function watchReplicas(
  servers: readonly Server[],
  { primary, log }: { readonly primary: () => Server | null; readonly log: Log },
): Replicas {
  const replicas = servers.map((server): Replica => ({ server, alive: null, lagging: false, seen: -1 }));
  /** Counts what this process knows to be committed; a replica is fresh when it has replayed up to it. */
  let generation = 0;
  /** Where the primary was, and when (ms of the process's clock): tells how far a replica is behind. */
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
    // Who waits for it is told, and reads elsewhere.
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
    alive: () => replicas.filter(({ alive }) => alive === true).map(({ server }) => server),
    fresh: () =>
      replicas
        .filter(({ alive, lagging, seen }) => alive === true && !lagging && seen === generation)
        .map(({ server }) => server),
    catchUp() {
      generation += 1;
      for (const follower of followers) follower.soon();
    },
    look: async () => void (await Promise.all(followers.map((follower) => follower.now()))),
    stop: async () => void (await Promise.all(followers.map((follower) => follower.stop()))),
  };
}

/** A replica that takes writes is the primary by another address, or an old one on a timeline of the past. */
function isUpTo(replayed: Position, written: Position): boolean {
  return (
    replayed.lsn >= written.lsn && (replayed.timeline === null || replayed.timeline === written.timeline)
  );
}
