import type { Log } from '../log.ts';
import { createLoop } from './loop.ts';
import { Unreachable } from './postgres.ts';
import { isStandby, positionOf, type Server } from './postgres-server.ts';

/** Milliseconds between looks at the primary, while it is there and while it is not. */
const lookEvery = 1_000;
const lookAgain = 250;

/** Which of several servers is the primary, as seen by this process. */
export type Election = {
  /** Looks at once; resolves after that. */
  look(): Promise<void>;
  /** Throws {@link Unreachable} while there is none. */
  primary(): Server;
  /** The primary that answered the last look, or null. */
  present(): Server | null;
  /** Servers that were in recovery at the last look. */
  standbys(): readonly Server[];
  /** What kept servers from answering the last look. */
  faults(): readonly unknown[];
  stop(): Promise<void>;
};

/**
 * Finds the primary among the candidates and keeps finding it: the one that is not in recovery, and of several
 * (an old primary that came back) the one on the latest timeline.
 */
export function createElection(candidates: readonly Server[], log: Log): Election {
  let current: Server | null = null;
  /** Looks in a row at which the present primary did not answer. */
  let misses = 0;
  let standbys: readonly Server[] = [];
  let faults: unknown[] = [];
  /** Servers that take writes although another was promoted. */
  const others = new Set<Server>();

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
    standbys = answers.filter(({ standby }) => standby === true).map(({ server }) => server);
    const primaries = answers.filter(({ standby }) => standby === false).map(({ server }) => server);
    const elected = primaries.length > 1 ? await onLatestTimeline(primaries, warnOfOther) : primaries[0];
    if (elected) become(elected);
    else miss(current !== null && standbys.includes(current));
    return misses === 0 ? lookEvery : lookAgain;
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

  const loop = createLoop(elect);
  return {
    look: () => loop.now(),
    primary() {
      // Not waited for again by every caller: the looks tell when it is back.
      if (current === null || misses >= 2) throw new Unreachable(null);
      return current;
    },
    present: () => (misses > 0 ? null : current),
    standbys: () => standbys,
    faults: () => faults,
    stop: () => loop.stop(),
  };
}

/** An old primary that was started again still takes writes, on the timeline that the new one has left. */
async function onLatestTimeline(
  primaries: readonly Server[],
  warn: (other: Server) => void,
): Promise<Server | undefined> {
  const found = await Promise.all(
    primaries.map(async (server) => {
      const position = await positionOf(server).catch(() => null);
      return { server, timeline: position?.timeline ?? 0 };
    }),
  );
  const latest = Math.max(...found.map(({ timeline }) => timeline));
  for (const { server, timeline } of found) if (timeline < latest) warn(server);
  return found.find(({ timeline }) => timeline === latest)?.server;
}
