import { AppError } from '../../errors.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import { closed, Thread, type Job, type Task } from './thread.ts';

/** Rendering off the main thread, with a deadline. */
export type Renderer = {
  /** Rejects with `unrenderable` (too slow, large or deep) or `unavailable` (too many wait, or closed). */
  renderPost(markdown: string, owner?: string): Promise<RenderedPost>;
  /** The same for a comment. */
  renderComment(markdown: string, owner?: string): Promise<RenderedComment>;
  /** Ends all threads; waiting and unfinished documents are rejected with `unavailable`. */
  close(): Promise<void>;
};

/** Settings of a {@link Renderer}. */
export type RendererOptions = {
  /** Most threads, but those that a slow document holds up; each is started when the others are busy. */
  readonly threads: number;
  /** Longest time for one document, in milliseconds, from when a thread takes it. Default 2,000. */
  readonly deadlineMs?: number;
  /** Memory of one thread's JavaScript heap, in MiB. Default 256. */
  readonly memoryMb?: number;
  /** Most documents that may wait for a thread, of one owner half as many. Default 1,000. */
  readonly maxWaiting?: number;
  /** Called when a thread ends unexpectedly: out of memory, or a bug. */
  readonly onCrash?: (error: Error) => void;
};

/** Documents that a thread may have at once, so that it need not wait for the main thread between two. */
const depth = 16;
/** Longer ones are sent to idle threads only, UTF-16 units: what is given back may be rendered twice. */
const longestQueued = 16 * 1024;
/** Threads beside the most that are started while others are held up by documents that take long. */
const spares = 1;
/** How long a spare thread stays idle before it ends, ms. */
const spareIdle = 30_000;
/** How long an owner counts as slow after a slow document, ms; and how many owners are remembered. */
const slowFor = 60_000;
const mostSlow = 1_000;

/**
 * Renders in worker threads, owners by turns. A thread that passes the deadline or crashes is replaced, and its document
 * refused; those waiting in a thread behind a slow one go to another, of which there is always one. Owners of slow
 * documents have one rendered at a time: a hostile one costs others only processor time.
 */
export function createRenderer(options: RendererOptions): Renderer {
  const pool = new Pool(options);
  return {
    renderPost: async (markdown, owner = '') =>
      (await pool.run({ kind: 'post', markdown }, owner)) as RenderedPost,
    renderComment: async (markdown, owner = '') => pool.run({ kind: 'comment', markdown }, owner),
    close: () => pool.close(),
  };
}

class Pool {
  private readonly options: Required<RendererOptions>;
  private readonly threads = new Set<Thread>();
  private readonly waiting = new Turns();
  /** When owners cease to count as slow, the latest last. */
  private readonly slow = new Map<string, number>();
  private isClosed = false;
  private retiring: NodeJS.Timeout | undefined;

  constructor(options: RendererOptions) {
    this.options = { deadlineMs: 2000, memoryMb: 256, maxWaiting: 1000, onCrash: () => {}, ...options };
  }

  run(job: Job, owner: string): Promise<RenderedPost | RenderedComment> {
    if (this.isClosed) return Promise.reject(closed());
    const { maxWaiting } = this.options;
    if (this.waiting.size >= maxWaiting || this.waiting.of(owner) >= maxWaiting / 2) {
      const detail = 'Too many documents are waiting to be rendered. Send the call again in a few seconds.';
      return Promise.reject(new AppError('unavailable', detail, { retryAfter: 5 }));
    }
    return new Promise((resolve, reject) => {
      this.waiting.add({ job, owner, resolve, reject });
      this.dispatch();
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retiring);
    this.rejectWaiting(closed());
    await Promise.all([...this.threads].map((thread) => thread.end(closed())));
  }

  private dispatch(): void {
    for (let task = this.next(); task; task = this.next()) {
      const thread = this.leastBusy(task);
      if (thread === undefined) break;
      this.waiting.take(task);
      thread.run(task);
    }
    if (!this.next()) return;
    if (this.canStart()) this.start();
    for (const thread of this.active()) thread.hold();
  }

  private next(): Task | undefined {
    return this.waiting.first((owner) => this.isSlow(owner) && this.rendersForSlow());
  }

  private isSlow(owner: string): boolean {
    return (this.slow.get(owner) ?? 0) > performance.now();
  }

  private rendersForSlow(): boolean {
    return [...this.threads].some((thread) => thread.owners().some((owner) => this.isSlow(owner)));
  }

  private noteSlow(owner: string): void {
    this.slow.delete(owner);
    this.slow.set(owner, performance.now() + slowFor);
    if (this.slow.size > mostSlow) this.slow.delete(this.slow.keys().next().value ?? '');
  }

  /** Those that documents are sent to: as many as there may be, of those that none holds up. */
  private active(): Thread[] {
    return [...this.threads].filter((thread) => !thread.isHeldUp).slice(0, this.options.threads);
  }

  private canStart(): boolean {
    const { threads } = this.options;
    return this.active().length < threads && this.threads.size < threads + spares;
  }

  /** An idle thread; a busy one where there can be no more, and the document is short. */
  private leastBusy({ job }: Task): Thread | undefined {
    const most = this.canStart() || job.markdown.length > longestQueued ? 1 : depth;
    const [thread] = this.active().toSorted((a, b) => a.load - b.load);
    return thread && thread.load < most ? thread : undefined;
  }

  private start(): void {
    const thread: Thread = new Thread(this.options, {
      onFree: () => {
        this.dispatch();
        this.retireSpare();
      },
      onSlow: (owner) => this.noteSlow(owner),
      onGivenBack: (tasks) => {
        this.waiting.giveBack(tasks);
        if (this.isClosed) this.rejectWaiting(closed());
        else this.dispatch();
      },
      onGone: (wasReady) => this.replace(thread, wasReady),
    });
    this.threads.add(thread);
  }

  private retireSpare(): void {
    if (this.threads.size <= this.options.threads) return;
    this.retiring ??= setTimeout(() => {
      this.retiring = undefined;
      const spare = [...this.threads].slice(this.options.threads).find(({ load }) => load === 0);
      void spare?.end(closed());
    }, spareIdle).unref();
  }

  /** Where it is missed, a new thread is started at once, so that the next document finds it warm. */
  private replace(thread: Thread, wasReady: boolean): void {
    this.threads.delete(thread);
    if (this.isClosed) return;
    if (wasReady) {
      if (this.threads.size < this.options.threads) this.start();
      this.dispatch();
    } else if (this.threads.size === 0) {
      // A thread that cannot even start would be started again for ever.
      const detail = 'Nothing can be rendered at this moment.';
      this.rejectWaiting(new AppError('unavailable', detail, { retryAfter: 60 }));
    }
  }

  private rejectWaiting(error: Error): void {
    for (const task of this.waiting.takeAll()) task.reject(error);
  }
}

/** Documents that wait, each owner's in their order. Owners take turns. */
class Turns {
  private readonly byOwner = new Map<string, Task[]>();
  size = 0;

  of(owner: string): number {
    return this.byOwner.get(owner)?.length ?? 0;
  }

  add(task: Task): void {
    const own = this.byOwner.get(task.owner);
    if (own) own.push(task);
    else this.byOwner.set(task.owner, [task]);
    this.size++;
  }

  /** Puts documents back at the head of their owners' queues, and these owners first in turn: none loses a turn. */
  giveBack(tasks: readonly Task[]): void {
    const others = new Map(this.byOwner);
    this.byOwner.clear();
    for (const { owner } of tasks) this.byOwner.set(owner, others.get(owner) ?? []);
    for (const [owner, own] of others) this.byOwner.set(owner, own);
    for (const task of tasks.toReversed()) this.byOwner.get(task.owner)?.unshift(task);
    this.size += tasks.length;
  }

  /** The first document of the owner whose turn it is, but for those to be passed over. */
  first(isPassedOver: (owner: string) => boolean): Task | undefined {
    for (const [owner, [task]] of this.byOwner) if (!isPassedOver(owner)) return task;
    return undefined;
  }

  /** Removes a document that is the first of its owner, whose next turn comes after all others'. */
  take({ owner }: Task): void {
    const own = this.byOwner.get(owner) ?? [];
    own.shift();
    this.byOwner.delete(owner);
    if (own.length > 0) this.byOwner.set(owner, own);
    this.size--;
  }

  takeAll(): Task[] {
    const tasks = [...this.byOwner.values()].flat();
    this.byOwner.clear();
    this.size = 0;
    return tasks;
  }
}
