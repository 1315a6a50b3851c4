import { FairQueue } from '../../platform/fair-queue.ts';
import { mostOfOwner, mostWaiting, ownerOf, tooManyWrites } from '../write-owners.ts';
import { batchSize, type Unit } from './postgres-batch.ts';

/** How long a write waits for its turn, ms: as long as for a lock. */
export const patience = 15_000;

/** Runs writes and those that `another` gives, and resolves when all of them are settled. */
type RunBatch = (batch: Unit[], joining: Joining, names: LockNames) => Promise<void>;

/** How a batch grows, and what is to be called when it does so no more, since it is being committed. */
export type Joining = { readonly another: () => Unit | undefined; readonly committing: () => void };

/** Transactions of this process that have a named lock or wait for it, which only the database can tell apart. */
export type LockNames = {
  /** Whether there are so many that another is to wait without a connection. */
  isCrowded(name: string): boolean;
  enter(name: string): void;
  leave(names: Iterable<string>): void;
};

/**
 * Connections that writes of one owner may hold at once, and those that want one lock: the others are left while these
 * wait for it.
 */
const mostHeld = 2;

/**
 * Connections for writes that may share one. One of them works at a time, and meanwhile others gather for the next
 * commit; the others commit, which may wait for a standby, or work for longer than {@link longWork}, as on a lock.
 */
const mostSharing = 3;
/** So many ms a batch works alone. Usually it takes less. */
const longWork = 100;

/** How long the next batch of such waits for one more, in ms, and how often while none comes. */
const longestPause = 2;
const mostLooks = 3;

/** A write in the queue, and since when. */
type Waiting = { readonly unit: Unit; readonly since: number };

/**
 * Gives writes their turns, on at most `most` connections at a time. Of those about the same agent one batch runs at
 * once: the others would only wait for its lock, and share the next one, or join it. Owners take turns, and none holds
 * more than {@link mostHeld} connections. What waits for a connection shares the next that is free. `late` is what one
 * that has waited too long is refused with.
 */
export function createLanes(runBatch: RunBatch, most: number, late: () => Error) {
  const waiting = new FairQueue<Waiting>();
  const busy = new Set<string>();
  /** Connections held, by owner. */
  const held = new Map<string, number>();
  const names = createLockNames(startAll);
  let running = 0;
  /** Of these, those of writes that may share a transaction, and the batch of such that works. */
  let sharing = 0;
  let working: readonly Unit[] | null = null;
  const lateness = createLateness(waiting, late);
  const gathering = createGathering(waiting, startAll);

  function take(isMeant: (unit: Unit) => boolean): Unit | undefined {
    return waiting.take(({ unit }) => isMeant(unit))?.unit;
  }

  function isFree(unit: Unit): boolean {
    const owner = ownerOf(unit.request);
    return (
      (unit.about === null || !busy.has(unit.about)) &&
      (owner === '' || (held.get(owner) ?? 0) < mostHeld) &&
      (unit.locks === null || (working === null && sharing < mostSharing && gathering.isOver())) &&
      (unit.waitsFor === null || !names.isCrowded(unit.waitsFor))
    );
  }

  function startAll(): void {
    while (running < most) {
      const first = take(isFree);
      if (!first) return;
      void run(first.locks === null ? [first] : withOthers(first));
    }
  }

  /** With all that may share its connection, in the order in which every process takes locks. */
  function withOthers(first: Unit): Unit[] {
    const mayShare = (unit: Unit) => unit.locks !== null && isFree(unit);
    const batch = [first];
    while (batch.length < batchSize) {
      const other = take(mayShare);
      if (!other) break;
      batch.push(other);
    }
    return batch.toSorted(byAbout);
  }

  async function run(batch: Unit[]): Promise<void> {
    const abouts = new Set(batch.map(({ about }) => about).filter((about) => about !== null));
    const owners = new Set(batch.map(({ request }) => ownerOf(request)));
    const isSharing = batch.every(({ locks }) => locks !== null);
    running += 1;
    if (isSharing) {
      sharing += 1;
      working = batch;
    }
    for (const about of abouts) busy.add(about);
    for (const owner of owners) addTo(held, owner, 1);
    // One that was held up, and now runs by itself, would be held up again.
    const mayJoin = ({ about, locks }: Unit) =>
      about !== null && abouts.has(about) && (locks !== null) === isSharing;
    const goOn = () => {
      if (working === batch) {
        working = null;
        gathering.begin(batch.length);
      }
      startAll();
    };
    const timer = isSharing ? setTimeout(goOn, longWork) : undefined;
    await runBatch(batch, { another: () => take(mayJoin), committing: goOn }, names);
    clearTimeout(timer);
    for (const about of abouts) busy.delete(about);
    for (const owner of owners) addTo(held, owner, -1);
    running -= 1;
    if (isSharing) sharing -= 1;
    goOn();
  }

  return {
    /** Throws where too many wait. */
    run(unit: Unit): void {
      const owner = ownerOf(unit.request);
      if (waiting.size >= mostWaiting || (owner !== '' && waiting.sizeOf(owner) >= mostOfOwner))
        throw tooManyWrites();
      waiting.add(owner, { unit, since: performance.now() });
      lateness.watch();
      startAll();
    },
  };
}

/** Refuses what has waited too long with what `late` gives. */
function createLateness(waiting: FairQueue<Waiting>, late: () => Error) {
  let timer: NodeJS.Timeout | undefined;

  function refuse(): void {
    const oldest = performance.now() - patience;
    for (let isLate = true; isLate;) {
      const unit = waiting.take(({ since }) => since <= oldest)?.unit;
      isLate = unit !== undefined;
      unit?.done.reject(late());
    }
    let next = Infinity;
    for (const { since } of waiting) next = Math.min(next, since);
    timer = next === Infinity ? undefined : setTimeout(refuse, next - oldest).unref();
  }

  return {
    /** Called when something begins to wait. */
    watch(): void {
      timer ??= setTimeout(refuse, patience).unref();
    },
  };
}

/**
 * Those who write at the same time come one by one, since their documents are rendered one by one, and a transaction costs
 * as much as several writes. As many as were in the last one are waited for, as long as one follows another. One who
 * writes alone never waits. `over` is called once no more are waited for.
 */
function createGathering(waiting: Iterable<Waiting>, over: () => void) {
  let timer: NodeJS.Timeout | undefined;

  function count(): number {
    let sharing = 0;
    for (const { unit } of waiting) if (unit.locks !== null) sharing += 1;
    return sharing;
  }

  function look(expected: number, before: number, looks: number): void {
    const found = count();
    const left = found > before ? mostLooks : looks - 1;
    timer = undefined;
    if (found >= expected || left === 0) over();
    else wait(expected, found, left);
  }

  function wait(expected: number, found: number, looks: number): void {
    timer = setTimeout(look, Math.min(expected - found, longestPause), expected, found, looks);
  }

  return {
    isOver: () => timer === undefined,
    /** A batch of so many is being committed. */
    begin(size: number): void {
      const found = count();
      if (size > 1 && found < size) wait(size, found, mostLooks);
    },
  };
}

function createLockNames(onLeave: () => void): LockNames {
  const wanted = new Map<string, number>();
  return {
    isCrowded: (name) => (wanted.get(name) ?? 0) >= mostHeld,
    enter: (name) => addTo(wanted, name, 1),
    leave(left) {
      for (const name of left) addTo(wanted, name, -1);
      onLeave();
    },
  };
}

function addTo(counts: Map<string, number>, name: string, amount: number): void {
  const count = (counts.get(name) ?? 0) + amount;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

function byAbout({ about: a }: Unit, { about: b }: Unit): number {
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1;
}
