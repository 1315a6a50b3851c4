/** Bytes that may be taken at once, by everyone and by one owner. */
type Sizes = { readonly total: number; readonly perOwner: number };

type Waiter = { readonly bytes: number; readonly go: () => void };

/**
 * Shares out memory among owners (an agent id or a client address). None may have more than half of what is left, so
 * that something is left for others however many take all that they may.
 */
export class BodyBudget {
  private readonly sizes: Sizes;
  private readonly taken = new Map<string, number>();
  private readonly waiting = new Map<string, Waiter[]>();
  private used = 0;

  constructor(sizes: Sizes) {
    this.sizes = sizes;
  }

  /** Takes bytes, to be given back; false where there is no room, or others of this owner wait for it. */
  take(owner: string, bytes: number): boolean {
    if (this.waiting.has(owner)) return false;
    return this.takeIfRoom(owner, bytes);
  }

  giveBack(owner: string, bytes: number): void {
    const left = (this.taken.get(owner) ?? 0) - bytes;
    if (left > 0) this.taken.set(owner, left);
    else this.taken.delete(owner);
    this.used -= bytes;
    if (this.waiting.size > 0) this.serve();
  }

  /** How many wait for room of this owner. */
  queued(owner: string): number {
    return this.waiting.get(owner)?.length ?? 0;
  }

  /**
   * Calls `go` once the bytes are taken: after all others of the owner that wait. Returns what ends the wait, to be
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

  private takeIfRoom(owner: string, bytes: number): boolean {
    const own = (this.taken.get(owner) ?? 0) + bytes;
    if (own > Math.min(this.sizes.perOwner, (this.sizes.total - this.used) / 2)) return false;
    this.taken.set(owner, own);
    this.used += bytes;
    return true;
  }

  private serve(): void {
    for (const [owner, queue] of this.waiting) {
      let served = 0;
      while (served < queue.length && this.takeIfRoom(owner, queue[served]?.bytes ?? 0)) served++;
      if (served === queue.length) this.waiting.delete(owner);
      for (const { go } of queue.splice(0, served)) go();
    }
  }
}
