/** What waits, by owner: owners take turns, and what one of them waits for keeps its order. */
export class FairQueue<Item> {
  /** Whose turn is next comes first. */
  private readonly owners = new Map<string, Item[]>();
  size = 0;

  /** How many items of an owner wait. */
  sizeOf(owner: string): number {
    return this.owners.get(owner)?.length ?? 0;
  }

  add(owner: string, item: Item): void {
    const own = this.owners.get(owner);
    if (own) own.push(item);
    else this.owners.set(owner, [item]);
    this.size++;
  }

  /** The next item that is `meant`, if any; its owner's next turn comes after those of all others. */
  take(isMeant: (item: Item, owner: string) => boolean = () => true): Item | undefined {
    for (const [owner, own] of this.owners) {
      const at = own.findIndex((item) => isMeant(item, owner));
      if (at === -1) continue;
      if (own.length === 1 || this.owners.size > 1) this.owners.delete(owner);
      if (own.length > 1) this.owners.set(owner, own);
      this.size--;
      return own.splice(at, 1)[0];
    }
    return undefined;
  }

  /** Takes an item out that waits no more. */
  delete(owner: string, item: Item): void {
    const own = this.owners.get(owner) ?? [];
    const at = own.indexOf(item);
    if (at === -1) return;
    own.splice(at, 1);
    if (own.length === 0) this.owners.delete(owner);
    this.size--;
  }

  /** All items, in no order that counts. */
  *[Symbol.iterator](): Iterator<Item> {
    for (const own of this.owners.values()) yield* own;
  }
}
