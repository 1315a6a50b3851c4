/** Bytes at once: of all bodies, as they come in, and of one owner's, by what they are to become. */
type Sizes = { readonly total: number; readonly perOwner: number };

/** Why there is no room: the owner's share is full, or all of the memory. */
export type Full = 'share' | 'total';

type Waiter = { readonly bytes: number; readonly go: () => void };

/**
 * Shares out memory among owners (an agent id or a client address). What a body is said to become counts against its
 * owner's share only. All share one total, of which a body takes what has come in: nobody fills it by promises.
 */
export class BodyBudget {
  private readonly sizes: Sizes;
  private readonly promised = new Map<string, number>();
  private readonly waiting = new Map<string, Waiter[]>();
  private taken = 0;

  constructor(sizes: Sizes) {
    this.sizes = sizes;
  }

  /** Lets in a body that may take so many bytes, to be given back; null, or what is full (or waited for). */
  admit(owner: string, bytes: number): Full | null {
    return this.waiting.has(owner) ? 'share' : this.admitIfRoom(owner, bytes);
  }

  /** Takes bytes of the total, to be given back; false where it is full. */
  take(bytes: number): boolean {
    if (this.taken + bytes > this.sizes.total) return false;
    this.taken += bytes;
    return true;
  }

  /** Gives back what was admitted and what was taken of it. */
  giveBack(owner: string, admitted: number, taken: number): void {
    const left = (this.promised.get(owner) ?? 0) - admitted;
    if (left > 0) this.promised.set(owner, left);
    else this.promised.delete(owner);
    this.taken -= taken;
    if (this.waiting.size > 0) this.serve();
  }

  /** How many wait for room of this owner. */
  queued(owner: string): number {
    return this.waiting.get(owner)?.length ?? 0;
  }

  /**
   * Calls `go` once the bytes are admitted: after all others of the owner that wait. Returns what ends the wait, to be
   * called at most until then.
   */
  wait(owner: string, bytes: number, go: () => void): () => void {
    const waiter = { bytes, go };
    const queue = this.waiting.get(owner);
    if (queue) queue.push(waiter);
    else this.waiting.set(owner, [waiter]);
    return () => {
      const rest = (this.waiting.get(owner) ?? []).filter((other) => other !== waiter);
      if (rest.length > 0) this.waiting.set(owner, rest);
      else this.waiting.delete(owner);
      this.serve();
    };
  }

  private admitIfRoom(owner: string, bytes: number): Full | null {
    const own = (this.promised.get(owner) ?? 0) + bytes;
    if (own > this.sizes.perOwner) return 'share';
    if (this.taken + bytes > this.sizes.total) return 'total';
    this.promised.set(owner, own);
    return null;
  }

  private serve(): void {
    for (const [owner, queue] of this.waiting) {
      let served = 0;
      while (served < queue.length && this.admitIfRoom(owner, queue[served]?.bytes ?? 0) === null) served++;
      if (served === queue.length) this.waiting.delete(owner);
      for (const { go } of queue.splice(0, served)) go();
    }
  }
}
