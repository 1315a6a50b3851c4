/**
 * Runs `round` on demand, and again as many ms after each round as it returned; first after `firstDelay` ms, or
 * only on demand without it. Rounds never overlap, must not throw, and waiting for one keeps no process alive.
 */
export function createLoop(round: () => Promise<number>, firstDelay?: number) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;
  let again = false;
  let stopped = false;

  /** Starts a round at once and resolves after it; during a round, resolves after that one. */
  function now(): Promise<void> {
    running ??= run();
    return running;
  }

  async function run(): Promise<void> {
    clearTimeout(timer);
    again = false;
    const delay = await round();
    running = null;
    later(again ? 1 : delay);
  }

  function later(delay: number): void {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(() => void now(), delay).unref();
  }

  if (firstDelay !== undefined) later(firstDelay);
  return {
    now,
    /** Starts a round in a moment, or right after the present one: many calls cause one round. */
    soon(): void {
      again = true;
      if (running === null) later(1);
    },
    /** Ends the loop; resolves when a round in progress has ended. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
