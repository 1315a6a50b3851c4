/**
 * Bounds how much of each owner is worked on at once; the rest begins in order of arrival. Where the work is this
 * thread's, all of it takes as long one after the other, but what each piece has made so far does not outlive V8's young
 * generation.
 */
export function createSemaphore(most: number) {
  const owners = new Map<string, { atWork: number; readonly waiting: (() => void)[] }>();

  /** Does the work when there is a place for it, and passes on what comes of it. */
  return async function within<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const own = owners.get(owner) ?? { atWork: 0, waiting: [] };
    owners.set(owner, own);
    if (own.atWork < most) own.atWork++;
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = own.waiting.shift();
      if (next) next();
      else if (--own.atWork === 0) owners.delete(owner);
    }
  };
}
