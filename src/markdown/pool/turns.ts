import { sizeOf } from './jobs.ts';
import type { Lane } from './messages.ts';
import type { Task } from './thread.ts';

/** Processor time that an owner may have used of late, ms, before it is slow if its documents are not light. */
const little = 500;
/** Characters beyond which a document is large: one may take 100 MiB. */
const large = 64 * 1024;
/** After this long half of what an owner has used is forgotten, ms. */
const halfLife = 10_000;
/** Processor time of one turn of a slow owner, ms; at least one document. */
const turnLength = 50;
/** Processor time of a document that is no burden to others, ms, as the mean of its owner's. */
const light = 10;
/** Owners beyond which those are forgotten that neither wait nor have used anything worth mentioning. */
const mostRemembered = 1_000;

type Owner = {
  /**
   * In their order. Not a Set: V8 links the table that a Set has outgrown to its next one, and each to all that was in it.
   * Once the first is old, every document stays until the old objects are collected, and that comes more often.
   */
  readonly waiting: Task[];
  /** Documents in threads, how many of these hold their thread up, and how many are in patient threads. */
  running: number;
  held: number;
  patient: number;
  /** Processor time that is not forgotten yet, ms, as it was at `usedAt`, and of how many documents. */
  used: number;
  documents: number;
  usedAt: number;
  /** Processor time of the present turn, ms, and the number of the turn that ended last. */
  usedInTurn: number;
  lastTurn: number;
};

/**
 * Documents that wait, each owner's in their order, and the processor time that owners have used. Who has used least
 * goes first, and fewest threads before that. Slow owners, who have used much, come after all others and take turns.
 */
export class Turns {
  private readonly owners = new Map<string, Owner>();
  private readonly waiting = new Map<string, Owner>();
  private turns = 0;
  private largeRunning = 0;
  size = 0;

  waitingOf(owner: string): number {
    return this.waiting.get(owner)?.waiting.length ?? 0;
  }

  add(task: Task): void {
    const owner = this.find(task.owner);
    owner.waiting.push(task);
    this.waiting.set(task.owner, owner);
    this.size++;
  }

  /** Takes out what waits; false for what does not. */
  remove(task: Task): boolean {
    const owner = this.waiting.get(task.owner);
    const at = owner?.waiting.indexOf(task) ?? -1;
    if (!owner || at === -1) return false;
    owner.waiting.splice(at, 1);
    if (owner.waiting.length === 0) this.waiting.delete(task.owner);
    this.size--;
    return true;
  }

  /**
   * The document whose turn it is, of those for such a thread: quick ones are kept from large documents, from those taken
   * out of one, and from owners who are slow or have one in a patient thread. Of the large ones, one is rendered at a time.
   */
  first(lane: Lane): Task | undefined {
    let [best, bestRank]: [Task | undefined, Rank | undefined] = [undefined, undefined];
    for (const owner of this.waiting.values()) {
      const [task] = owner.waiting;
      if (!task || this.laneOf(owner, task) !== lane) continue;
      if (this.largeRunning > 0 && isLarge(task)) continue;
      const slow = isSlow(owner);
      const rank = [Number(slow), owner.running, slow ? owner.lastTurn : usedBy(owner)] as const;
      if (!bestRank || isBefore(rank, bestRank)) [best, bestRank] = [task, rank];
    }
    return best;
  }

  private laneOf(owner: Owner, task: Task): Lane {
    return task.wasTakenOut === true || isSlow(owner) || isLarge(task) || owner.patient > 0
      ? 'patient'
      : 'quick';
  }

  began(task: Task, lane: Lane): void {
    this.remove(task);
    const owner = this.find(task.owner);
    owner.running++;
    if (lane === 'patient') owner.patient++;
    if (isLarge(task)) this.largeRunning++;
  }

  /** It is in no thread of this lane any more; it may not have been begun. */
  left(task: Task, lane: Lane): void {
    const owner = this.find(task.owner);
    owner.running--;
    if (lane === 'patient') owner.patient--;
    if (isLarge(task)) this.largeRunning--;
  }

  /** Whether a document may wait behind others in a thread. */
  mayFollow({ owner }: Task): boolean {
    return isLight(this.find(owner));
  }

  /** A document of this owner holds its thread up. */
  heldUpBy(owner: string): void {
    this.find(owner).held++;
  }

  ended(task: Task, lane: Lane, processorMs: number, wasHeldUp: boolean): void {
    this.left(task, lane);
    const owner = this.find(task.owner);
    if (wasHeldUp) owner.held--;
    const kept = keptBy(owner);
    owner.used = owner.used * kept + processorMs;
    owner.documents = owner.documents * kept + 1;
    owner.usedAt = performance.now();
    owner.usedInTurn += processorMs;
    if (owner.usedInTurn < turnLength) return;
    owner.usedInTurn = 0;
    owner.lastTurn = ++this.turns;
  }

  takeAll(): Task[] {
    const tasks = [...this.waiting.values()].flatMap(({ waiting }) => [...waiting]);
    for (const task of tasks) this.remove(task);
    return tasks;
  }

  private find(name: string): Owner {
    const known = this.owners.get(name);
    if (known) return known;
    if (this.owners.size >= mostRemembered) this.forget();
    const owner: Owner = {
      waiting: [],
      running: 0,
      held: 0,
      patient: 0,
      used: 0,
      documents: 0,
      usedAt: 0,
      usedInTurn: 0,
      lastTurn: 0,
    };
    this.owners.set(name, owner);
    return owner;
  }

  private forget(): void {
    for (const [name, owner] of this.owners)
      if (owner.waiting.length === 0 && owner.running === 0 && usedBy(owner) < 1) this.owners.delete(name);
  }
}

/** Slow or not, threads, and the processor time used or the last turn: the least comes first. */
type Rank = readonly [slow: number, running: number, used: number];

function isBefore([slow, running, used]: Rank, [slow2, running2, used2]: Rank): boolean {
  return (slow - slow2 || running - running2 || used - used2) < 0;
}

function isLarge({ job }: Task): boolean {
  return sizeOf(job) > large;
}

function isSlow(owner: Owner): boolean {
  return owner.held > 0 || (!isLight(owner) && usedBy(owner) >= little);
}

/** Whether its documents take little time: many of them are no hostile ones, and stay in threads that are warm. */
function isLight({ used, documents }: Owner): boolean {
  return used <= light * documents;
}

function usedBy(owner: Owner): number {
  return owner.used * keptBy(owner);
}

/** Which part of what it had used at `usedAt` is not forgotten. */
function keptBy({ usedAt }: Owner): number {
  return 2 ** ((usedAt - performance.now()) / halfLife);
}
