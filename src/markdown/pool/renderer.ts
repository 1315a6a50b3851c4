import { AppError } from '../../errors.ts';
import { countRender, renderQueue, type Rendered } from '../../platform/measured.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import type { TextDiff } from '../../rules/edits/text-diff.ts';
import type { EditedPost, Editing, Job, Result, Versions } from './jobs.ts';
import { closed, notInTime, Thread, type Task } from './thread.ts';
import { Turns } from './turns.ts';

/** Rendering off the main thread, with a deadline. */
export type Renderer = {
  /**
   * Uses the turn and time of `owner`, an agent's id; empty for the service itself. Rejects with `unrenderable` (too
   * slow, large or deep), `unavailable`, or the reason of the signal: a document that still waits is then dropped.
   */
  renderPost(markdown: string, owner?: string, signal?: AbortSignal): Promise<RenderedPost>;
  /** The same for a comment. */
  renderComment(markdown: string, owner?: string, signal?: AbortSignal): Promise<RenderedComment>;
  /** Changes a content and renders it. Rejects with `edit_not_applied` and `too_large` too. */
  editPost(editing: Editing, owner?: string, signal?: AbortSignal): Promise<EditedPost>;
  /** The difference of two texts, within the same turn, time and memory. */
  diff(versions: Versions, owner?: string, signal?: AbortSignal): Promise<TextDiff>;
  /** Ends all threads; waiting and unfinished documents are rejected with `unavailable`. */
  close(): Promise<void>;
};

/** Settings of a {@link Renderer}. */
export type RendererOptions = {
  /** Most threads, but those that a slow document holds up; each is started when the others are busy. */
  readonly threads: number;
  /** Most processor time for one document, ms. Default 2,000. */
  readonly deadlineMs?: number;
  /** Longest time until a document is given up, whatever it has used, ms. Default five deadlines, at least 10,000. */
  readonly longestMs?: number;
  /** Memory of one thread's JavaScript heap, in MiB. Default 256. */
  readonly memoryMb?: number;
  /** Most documents that may wait for a thread, of one owner half as many. Their bytes are bounded as bodies. */
  readonly maxWaiting?: number;
  /** Called when a thread ends unexpectedly: out of memory, or a bug. */
  readonly onCrash?: (error: Error) => void;
};

/** Threads beside the most that are started while others are held up by documents that take long. */
const spares = 1;
/** How long a spare thread stays idle before it ends, ms. */
const spareIdle = 30_000;

/**
 * Renders in worker threads that have one document at a time. Owners take turns by the processor time that they have
 * used ({@link Turns}), and one thread is never given to slow owners: a hostile document costs others only processor
 * time. A thread that passes the deadline or crashes is replaced, and its document refused.
 */
export function createRenderer(options: RendererOptions): Renderer {
  const pool = new Pool(options);
  return {
    renderPost: async (markdown, owner = '', signal) =>
      (await pool.run({ kind: 'post', markdown }, owner, signal)) as RenderedPost,
    renderComment: async (markdown, owner = '', signal) =>
      (await pool.run({ kind: 'comment', markdown }, owner, signal)) as RenderedComment,
    editPost: async (editing, owner = '', signal) =>
      (await pool.run({ kind: 'edit', ...editing }, owner, signal)) as EditedPost,
    diff: async (versions, owner = '', signal) =>
      (await pool.run({ kind: 'diff', ...versions }, owner, signal)) as TextDiff,
    close: () => pool.close(),
  };
}

class Pool {
  private readonly options: Required<RendererOptions>;
  private readonly threads = new Set<Thread>();
  private readonly waiting = new Turns();
  private readonly uncount = renderQueue(() => this.waiting.size);
  private isClosed = false;
  private retiring: NodeJS.Timeout | undefined;

  constructor(options: RendererOptions) {
    const { deadlineMs = 2000 } = options;
    const longestMs = Math.max(10_000, 5 * deadlineMs);
    const defaults = { deadlineMs, longestMs, memoryMb: 256, maxWaiting: 1000, onCrash: () => {} };
    this.options = { ...defaults, ...options };
  }

  async run(job: Job, owner: string, signal?: AbortSignal): Promise<Result> {
    const began = performance.now();
    const count = (result: Rendered) => countRender(job.kind, result, (performance.now() - began) / 1000);
    try {
      const result = await this.enqueue(job, owner, signal);
      count('done');
      return result;
    } catch (error) {
      const isBusy = error instanceof AppError && error.code === 'unavailable';
      count(signal?.aborted ? 'left' : isBusy ? 'unavailable' : 'refused');
      throw error;
    }
  }

  private enqueue(job: Job, owner: string, signal?: AbortSignal): Promise<Result> {
    const { maxWaiting, longestMs } = this.options;
    if (this.isClosed) return Promise.reject(closed());
    if (this.waiting.size >= maxWaiting || this.waiting.waitingOf(owner) >= maxWaiting / 2)
      return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const giveUp = (reason: unknown) => {
        end();
        this.waiting.remove(task);
        reject(reason);
      };
      const leave = () => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(notInTime()), longestMs);
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
      };
      const task: Task = {
        job,
        owner,
        resolve(result) {
          end();
          resolve(result);
        },
        reject(error) {
          end();
          reject(error);
        },
      };
      signal?.addEventListener('abort', leave);
      this.waiting.add(task);
      this.dispatch();
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.uncount();
    clearTimeout(this.retiring);
    this.rejectWaiting(closed());
    await Promise.all([...this.threads].map((thread) => thread.end(closed())));
  }

  private dispatch(): void {
    for (let task = this.next(); task; task = this.next()) {
      const idle = [...this.threads].find(({ isIdle }) => isIdle);
      if (!idle) return this.awaitThread();
      this.waiting.began(task);
      idle.run(task);
    }
  }

  /** The next document that may be rendered now. One thread more than usual is there for owners who are not slow. */
  private next(): Task | undefined {
    if (this.waiting.size === 0) return undefined;
    let [busy, slow] = [0, 0];
    for (const { owner, isHeldUp } of this.threads) {
      if (owner === null) continue;
      if (!isHeldUp) busy++;
      if (this.waiting.isSlow(owner)) slow++;
    }
    const { threads } = this.options;
    return busy < threads ? this.waiting.first({ mayBeSlow: slow < threads }) : undefined;
  }

  /** Starts a thread where there may be one more, and keeps the process alive until it is ready. */
  private awaitThread(): void {
    const starting = [...this.threads].find(({ isStarting }) => isStarting);
    if (starting) starting.hold();
    else if (this.threads.size < this.options.threads + spares) this.start().hold();
  }

  private start(): Thread {
    const thread: Thread = new Thread(this.options, {
      onFree: () => {
        this.dispatch();
        this.retireSpare();
      },
      onHeldUp: (owner) => {
        this.waiting.heldUpBy(owner);
        this.dispatch();
      },
      onDone: (task, processorMs, wasHeldUp) => this.waiting.ended(task, processorMs, wasHeldUp),
      onGone: (wasReady) => this.replace(thread, wasReady),
    });
    this.threads.add(thread);
    return thread;
  }

  private retireSpare(): void {
    if (this.threads.size <= this.options.threads) return;
    this.retiring ??= setTimeout(() => {
      this.retiring = undefined;
      const spare = [...this.threads].slice(this.options.threads).find(({ isIdle }) => isIdle);
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

function tooMany(): AppError {
  const detail = 'Too many documents are waiting to be rendered. Send the call again in a moment.';
  return new AppError('unavailable', detail, { retryAfter: 1, uncounted: true, budget: 'renders' });
}
