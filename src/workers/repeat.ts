/** Work that is done again and again. */
export type Repetition = {
  /** Ends it; resolves when a round that is under way has ended. */
  stop(): Promise<void>;
};

/**
 * Runs `round` after `firstDelay` ms and then whenever as many ms have passed as it returned; rounds never
 * overlap, and waiting for one keeps no process alive. `round` must not throw.
 */
export function repeat(firstDelay: number, round: () => Promise<number>): Repetition {
  let stopped = false;
  let current: Promise<void> = Promise.resolve();
  let timer = setTimeout(run, firstDelay).unref();

  function run(): void {
    current = runOnce();
  }

  async function runOnce(): Promise<void> {
    const delay = await round();
    if (!stopped) timer = setTimeout(run, delay).unref();
  }

  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}
