import { AppError } from '../errors.ts';
import type { Answer, Job } from './render-jobs.ts';
import type { RenderedComment, RenderedPost } from './rendered.ts';
import { closed, Thread, type Task } from './thread.ts';

/** Rendering off the main thread, with a deadline. */
export type Renderer = {
  /** Rejects with `unrenderable` (too slow, too large, too deep) or `unavailable` (too many wait, or closed). */
  renderPost(markdown: string): Promise<RenderedPost>;
  /** The same for a comment. */
  renderComment(markdown: string): Promise<RenderedComment>;
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
  /** Most documents that may wait for a thread. Default 1,000. */
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
/** How long such a thread is kept once it is not needed, ms. */
const spareKept = 30_000;

/**
 * Renders in worker threads, in the order of arrival. A thread that passes the deadline or crashes is replaced, and
 * its document refused. Those that wait in a thread behind a slow one are given to others, of which there is always
 * one: a hostile document costs the rest nothing but its share of the processor.
 */
export function createRenderer(options: RendererOptions): Renderer {
  const pool = new Pool(options);
  return {
    async renderPost(markdown) {
      const answer = await pool.run({ kind: 'post', markdown });
      if (answer.type === 'post') return answer.rendered;
      throw unexpected(answer);
    },
    async renderComment(markdown) {
      const answer = await pool.run({ kind: 'comment', markdown });
      if (answer.type === 'comment') return answer.rendered;
      throw unexpected(answer);
    },
    close: () => pool.close(),
  };
}

class Pool {
  private readonly options: Required<RendererOptions>;
  private readonly threads = new Set<Thread>();
  private readonly waiting: Task[] = [];
  private isClosed = false;
  private retiring: NodeJS.Timeout | undefined;

  constructor(options: RendererOptions) {
    this.options = { deadlineMs: 2000, memoryMb: 256, maxWaiting: 1000, onCrash: () => {}, ...options };
  }

  run(job: Job): Promise<Answer> {
    if (this.isClosed) return Promise.reject(closed());
    if (this.waiting.length >= this.options.maxWaiting) {
      return Promise.reject(
        new AppError(
          'unavailable',
          'Too many documents are waiting to be rendered. Send the call again in a few seconds.',
          {
            retryAfter: 5,
          },
        ),
      );
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ job, resolve, reject });
      this.dispatch();
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retiring);
    for (const task of this.waiting.splice(0)) task.reject(closed());
    await Promise.all([...this.threads].map((thread) => thread.end(closed())));
  }

  private dispatch(): void {
    for (let task = this.waiting[0]; task; task = this.waiting[0]) {
      const thread = this.leastBusy(task);
      if (thread === undefined) break;
      this.waiting.shift();
      thread.run(task);
    }
    if (this.waiting.length === 0) return;
    if (this.canStart()) this.start();
    for (const thread of this.active()) thread.hold();
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
    let load = this.canStart() || job.markdown.length > longestQueued ? 1 : depth;
    let found: Thread | undefined;
    for (const thread of this.active()) {
      if (thread.load >= load) continue;
      load = thread.load;
      found = thread;
    }
    return found;
  }

  private start(): void {
    const thread: Thread = new Thread(this.options, {
      onFree: () => {
        this.dispatch();
        this.retireSpare();
      },
      onGivenBack: (tasks) => {
        if (this.isClosed) for (const task of tasks) task.reject(closed());
        else {
          this.waiting.unshift(...tasks);
          this.dispatch();
        }
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
    }, spareKept).unref();
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
      const error = new AppError('unavailable', 'Nothing can be rendered at this moment.', {
        retryAfter: 60,
      });
      for (const task of this.waiting.splice(0)) task.reject(error);
    }
  }
}

function unexpected(answer: Answer): Error {
  return new Error(`the render thread answered with '${answer.type}'`);
}
