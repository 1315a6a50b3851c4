import { Worker } from 'node:worker_threads';
import { AppError } from '../errors.ts';
import { threadEntry, youngMemory } from '../thread-entry.ts';
import { unrenderable } from './refusal.ts';
import { shared, type Answer, type Job } from './render-jobs.ts';
import type { RenderedComment, RenderedPost } from './rendered.ts';

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
  /** Most threads; each is started when the others are busy. */
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

type Task = {
  readonly job: Job;
  resolve(answer: Answer): void;
  reject(error: Error): void;
};

/** Documents that a thread may have at once, so that it need not wait for the main thread between two. */
const depth = 16;
/** Longer ones are sent to idle threads only, UTF-16 units: what is given back may be rendered twice. */
const longestQueued = 16 * 1024;
/** How long one document may hold up those that were sent to the same thread after it, ms. */
const patience = 50;

/**
 * Renders in worker threads, in the order of arrival. A thread that passes the deadline or crashes is replaced, and
 * its document refused. Those that wait in a thread behind a slow one are given to others, if there are any, so a
 * hostile document costs the rest nothing but one thread for that long.
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
    if (this.threads.size < this.options.threads) this.start();
    for (const thread of this.threads) thread.hold();
  }

  /** An idle thread; a busy one where there can be no more, and the document is short. */
  private leastBusy({ job }: Task): Thread | undefined {
    const canStart = this.threads.size < this.options.threads;
    let load = canStart || job.markdown.length > longestQueued ? 1 : depth;
    let found: Thread | undefined;
    for (const thread of this.threads) {
      if (thread.load >= load) continue;
      load = thread.load;
      found = thread;
    }
    return found;
  }

  private start(): void {
    const thread: Thread = new Thread(this.options, {
      onFree: () => this.dispatch(),
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

  /** A new thread is started at once, so that the next document finds it warm. */
  private replace(thread: Thread, wasReady: boolean): void {
    this.threads.delete(thread);
    if (this.isClosed) return;
    if (wasReady) {
      this.start();
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

const advice = 'Simplify or split it.';

type ThreadEvents = {
  onFree(): void;
  /** Documents that it was sent and will not answer. */
  onGivenBack(tasks: readonly Task[]): void;
  onGone(wasReady: boolean): void;
};

class Thread {
  private readonly worker: Worker;
  private readonly deadlineMs: number;
  private readonly events: ThreadEvents;
  private readonly memory = new Int32Array(new SharedArrayBuffer(Object.keys(shared).length * 4));
  /** Whether another thread can take what waits in this one. */
  private readonly hasOthers: boolean;
  /** What it was sent and has not answered, in order; undefined for what was given back meanwhile. */
  private sent: (Task | undefined)[] = [];
  /** How many answers have come, counted like `shared.answered`. */
  private received = 0;
  private timer: NodeJS.Timeout | undefined;
  private isReady = false;
  /** Whether it is at a document that takes long. */
  private isHeldUp = false;
  private isEnding = false;

  constructor(options: Required<RendererOptions>, events: ThreadEvents) {
    this.deadlineMs = options.deadlineMs;
    this.hasOthers = options.threads > 1;
    this.events = events;
    this.worker = new Worker(threadEntry('render'), {
      workerData: this.memory,
      env: {},
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: options.memoryMb,
        maxYoungGenerationSizeMb: youngMemory.render,
      },
    });
    this.worker.on('message', (answer: Answer) => this.receive(answer));
    this.worker.on('error', (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.refuse(unrenderable(isMemory ? 'takes too much memory to render' : 'cannot be rendered', advice));
      options.onCrash(error);
    });
    this.worker.on('exit', () => {
      this.refuse(unrenderable('cannot be rendered', advice));
      this.events.onGone(this.isReady);
    });
    this.worker.unref();
  }

  /**
   * Documents in its hands; infinite while it can take none. It takes none before it has answered for those that were
   * given back, so that one that comes to it again is the first and is rendered.
   */
  get load(): number {
    if (!this.isReady || this.isHeldUp || this.isEnding || this.sent.includes(undefined)) return Infinity;
    return this.sent.length;
  }

  run(task: Task): void {
    this.sent.push(task);
    if (this.sent.length === 1) this.watch();
    this.worker.ref();
    this.worker.postMessage(task.job, []);
  }

  /** Watches over the document that the thread is at. Where it was this side that was slow, an answer is on its way. */
  private watch(): void {
    const first = Math.min(patience, this.deadlineMs);
    this.timer = setTimeout(() => {
      if (this.answersOnTheirWay() > 0) return;
      this.timer = setTimeout(() => {
        if (this.answersOnTheirWay() > 0) return;
        void this.end(unrenderable(`takes longer than ${this.deadlineMs / 1000} s to render`, advice));
      }, this.deadlineMs - first);
      this.isHeldUp = true;
      if (this.hasOthers) this.giveBackOthers();
    }, first);
  }

  private answersOnTheirWay(): number {
    return (Atomics.load(this.memory, shared.answered) - this.received) | 0;
  }

  private giveBackOthers(): void {
    const [head, ...others] = this.sent;
    Atomics.store(this.memory, shared.skipping, 1);
    this.sent = [head, ...others.map(() => undefined)];
    this.giveBack(others);
  }

  private giveBack(tasks: readonly (Task | undefined)[]): void {
    const given = tasks.filter((task) => task !== undefined);
    if (given.length > 0) this.events.onGivenBack(given);
  }

  /** Keeps the process alive until the thread is idle, since somebody is waiting for it. */
  hold(): void {
    this.worker.ref();
  }

  async end(reason: Error): Promise<void> {
    this.refuse(reason);
    await this.worker.terminate();
  }

  private receive(answer: Answer): void {
    let task: Task | undefined;
    if (answer.type === 'ready') {
      this.isReady = true;
    } else {
      // It came after the deadline.
      if (this.isEnding) return;
      clearTimeout(this.timer);
      this.received = (this.received + 1) | 0;
      task = this.sent.shift();
    }
    this.isHeldUp = false;
    if (this.sent.length > 0) this.watch();
    else {
      Atomics.store(this.memory, shared.skipping, 0);
      this.worker.unref();
    }
    // One that was not given back is skipped where the thread had not come to it yet.
    if (answer.type === 'skipped') this.giveBack([task]);
    else if (answer.type === 'refused')
      task?.reject(new AppError('unrenderable', answer.detail, { errors: answer.errors }));
    else task?.resolve(answer);
    this.events.onFree();
  }

  /**
   * For a thread that ends: refuses the document that it is at, and gives back the others, also those whose answers
   * are on their way, since they may not arrive.
   */
  private refuse(reason: Error): void {
    clearTimeout(this.timer);
    this.isEnding = true;
    const [culprit] = this.sent.splice(this.answersOnTheirWay(), 1);
    culprit?.reject(reason);
    this.giveBack(this.sent.splice(0));
  }
}

function closed(): AppError {
  return new AppError('unavailable', 'The service is stopping. Send the call again.', { retryAfter: 5 });
}

function unexpected(answer: Answer): Error {
  return new Error(`the render thread answered with '${answer.type}'`);
}
