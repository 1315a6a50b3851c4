import { tooManySearches } from '../../db/database.ts';

/**
 * Searches of one address, and of all, that may wait or run. Ten a second of one address stay below this while a search
 * process starts on a slow machine, which takes a second.
 */
const mostOfAddress = 16;
const mostOfAll = 400;
/** How long an address is refused once a search of its was cut off, ms, so that others search meanwhile. */
const pause = 1_000;

/** A search that waits for its turn. */
export type Turn = {
  /** Resolves to whether it was cut off; must not reject. */
  readonly run: () => Promise<boolean>;
  /** Called instead where its address is refused after all. */
  readonly refuse: (error: Error) => void;
};

/** Lets addresses take turns, one search of each at a time and `atOnce` of all. */
export function createTurns(atOnce: number) {
  /** What waits, by address: the next to have a turn comes first. */
  const queues = new Map<string, Set<Turn>>();
  /** How many addresses wait for a turn. */
  const claims = new Map<Turn, number>();
  const running = new Set<string>();
  const pausedUntil = new Map<string, number>();

  function next(): void {
    for (const [address, [turn]] of queues) {
      if (running.size === atOnce) return;
      if (turn && !running.has(address)) void start(address, turn);
    }
  }

  async function start(address: string, turn: Turn): Promise<void> {
    leave(turn);
    const queue = queues.get(address);
    queues.delete(address);
    if (queue) queues.set(address, queue);
    running.add(address);
    const wasCutOff = await turn.run();
    running.delete(address);
    if (wasCutOff) refuse(address);
    next();
  }

  /** Takes a turn out of the queues of all addresses. */
  function leave(turn: Turn): void {
    if (!claims.delete(turn)) return;
    for (const [address, queue] of queues) if (queue.delete(turn) && queue.size === 0) queues.delete(address);
  }

  function refuse(address: string): void {
    const now = performance.now();
    for (const [other, until] of pausedUntil) if (until <= now) pausedUntil.delete(other);
    pausedUntil.set(address, now + pause);
    for (const turn of queues.get(address) ?? []) {
      const others = (claims.get(turn) ?? 1) - 1;
      claims.set(turn, others);
      if (others > 0) continue;
      claims.delete(turn);
      turn.refuse(tooManySearches());
    }
    queues.delete(address);
  }

  return {
    /** Waits, for one more address if it waits already. Throws unavailable where too many do. */
    wait(address: string, turn: Turn): void {
      const queue = queues.get(address) ?? new Set();
      if (queue.has(turn)) return;
      const isPaused = (pausedUntil.get(address) ?? 0) > performance.now();
      const ofAddress = queue.size + (running.has(address) ? 1 : 0);
      if (isPaused || ofAddress >= mostOfAddress || claims.size + running.size >= mostOfAll)
        throw tooManySearches();
      queues.set(address, queue.add(turn));
      claims.set(turn, (claims.get(turn) ?? 0) + 1);
      next();
    },
    leave,
  };
}
