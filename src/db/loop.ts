/** Work that is done again and again, and sooner when something has happened. */
export type Loop = {
  /** A round at once, or the one that is under way. */
  now(): Promise<void>;
  /** A round in a moment, so that many events cause one. */
  soon(): void;
  /** Ends it; resolves when a round that is under way has ended. */
  stop(): Promise<void>;
};

/** Runs `round` on demand, and whenever as many ms have passed as it returned; rounds never overlap. */
export function createLoop(round: () => Promise<number>): Loop {
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
    soon() {
      if (running === null) later(1);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
