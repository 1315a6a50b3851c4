import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { Unreachable } from './postgres.ts';
import { isStandby, positionOf, type Server } from './postgres-server.ts';

/** Milliseconds between checks of the primary, while it answers and while it does not. */
const lookEvery = 1_000;
const lookAgain = 250;

/**
 * Finds the primary among the candidates and keeps finding it: the one that is not in recovery, and of several
 * (an old primary that came back) the one on the latest timeline. It never goes back to an earlier timeline.
 */
export function createElection(candidates: readonly Server[], log: Log) {
  let current: Server | null = null;
  /** Successive checks that the primary did not answer. */
  let misses = 0;
  let standbys: readonly Server[] = [];
  let faults: unknown[] = [];
  /** The latest timeline of any primary so far: one on an earlier timeline was superseded. */
  let timeline = 0;
  /** Servers that take writes although another was promoted. */
  const others = new Set<Server>();

  async function elect(): Promise<number> {
    const answers = await Promise.allSettled(candidates.map((server) => isStandby(server)));
    const whereStandby = (wanted: boolean) =>
      candidates.filter((_, i) => answers[i]?.status === 'fulfilled' && answers[i].value === wanted);
    faults = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    standbys = whereStandby(true);
    const elected = await choose(whereStandby(false));
    if (elected) become(elected);
    else miss(current !== null && standbys.includes(current));
    return misses === 0 ? lookEvery : lookAgain;
  }

  /** An old primary that was started again still takes writes, on the timeline that the new one has left. */
  async function choose(primaries: readonly Server[]): Promise<Server | undefined> {
    const [first] = primaries;
    if (candidates.length === 1 || (primaries.length === 1 && first === current)) return first;
    const found = await Promise.all(
      primaries.map(async (server) => {
        const position = await positionOf(server).catch(() => null);
        return { server, timeline: position?.timeline ?? 0 };
      }),
    );
    timeline = Math.max(timeline, ...found.map((one) => one.timeline));
    // 0: unknown.
    for (const one of found) if (one.timeline > 0 && one.timeline < timeline) warnOfOther(one.server);
    return found.find((one) => one.timeline === timeline)?.server;
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
    // Fails the calls that wait for a server that does not answer.
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
      'a server of DATABASE_URL takes writes although another has replaced it: stop it, before it misleads anyone',
    );
  }

  const loop = createLoop(elect);
  return {
    /** Checks all candidates at once; resolves after that. */
    look: () => loop.now(),
    /** Throws {@link Unreachable} while there is none, at once: the next checks will find it again. */
    primary(): Server {
      if (current === null || misses >= 2) throw new Unreachable(null);
      return current;
    },
    /** The primary that answered the last check, or null. */
    present: () => (misses > 0 ? null : current),
    /** Servers in recovery at the last check. */
    standbys: () => standbys,
    /** Why servers did not answer the last check. */
    faults: (): readonly unknown[] => faults,
    stop: () => loop.stop(),
  };
}
