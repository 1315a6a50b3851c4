import { AppError } from '../../errors.ts';
import { countRender, renderQueue, type Rendered } from '../../platform/measured.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import type { TextDiff } from '../../rules/edits/text-diff.ts';
import type { EditedPost, Editing, Job, Result, Stored, StoredJob, Versions } from './jobs.ts';
import type { Lane } from './messages.ts';
import { closed, notInTime, Thread, type Task } from './thread.ts';
import { Turns } from './turns.ts';

/** Rendering off the main thread, with a deadline. */
export type Renderer = {
  /**
   * Uses the turn and time of `owner`, an agent's id; empty for the service itself. Rejects with `unrenderable` (too
   * slow, large or deep), `unavailable`, or the reason of the signal: a document that still waits is then dropped.
   */
  renderPost(markdown: string | Stored<string>, owner?: string, signal?: AbortSignal): Promise<RenderedPost>;
  /** The same for a comment. */
  renderComment(markdown: string, owner?: string, signal?: AbortSignal): Promise<RenderedComment>;
  /** Changes a content and renders it. Rejects with `edit_not_applied` and `too_large` too. */
  editPost(editing: Stored<Editing>, owner?: string, signal?: AbortSignal): Promise<EditedPost>;
  /** The difference of two texts, within the same turn, time and memory. */
  diff(versions: Stored<Versions>, owner?: string, signal?: AbortSignal): Promise<TextDiff>;
  /** Ends all threads; waiting and unfinished documents are rejected with `unavailable`. */
  close(): Promise<void>;
};

/** Settings of a {@link Renderer}. */
export type RendererOptions = {
  /** Most threads of each of the two lanes; each is started when the others are busy. */
  readonly threads: number;
  /** Most processor time for one document, ms. Default 2,000. */
  readonly deadlineMs?: number;
  /** Longest time until a document is given up, whatever it has used, ms. Default five deadlines, at least 10,000. */
  readonly longestMs?: number;
  /** Memory of one thread's JavaScript heap, in MiB. Default 80: 512 KiB of table cells or emphasis take less. */
  readonly memoryMb?: number;
  /**
   * Most documents that may wait for a thread, of one owner half as many. Their bytes are bounded as bodies; of those that
   * are stored, a thread has one at a time in memory.
   */
  readonly maxWaiting?: number;
  /** Called when a thread ends unexpectedly: out of memory, or a bug. */
  readonly onCrash?: (error: Error) => void;
};

/** How long patient threads stay after the last document of any, ms. */
const idleFor = 30_000;

/**
 * Renders in worker threads that have one document at a time. Owners take turns by the processor time that they have
 * used ({@link Turns}). What is large or of a slow owner has threads of its own ({@link Lane}): a hostile document
 * costs others little more than idle time. A thread that passes the deadline or crashes is replaced, and its document
 * refused.
 */
export function createRenderer(options: RendererOptions): Renderer {
  const pool = new Pool(options);
  return {
    renderPost: async (markdown, owner = '', signal) =>
      (await pool.run(postJob(markdown), owner, signal)) as RenderedPost,
    renderComment: async (markdown, owner = '', signal) =>
      (await pool.run({ kind: 'comment', markdown }, owner, signal)) as RenderedComment,
    editPost: async (editing, owner = '', signal) =>
      (await pool.run(storedJob('edit', editing), owner, signal)) as EditedPost,
    diff: async (versions, owner = '', signal) =>
      (await pool.run(storedJob('diff', versions), owner, signal)) as TextDiff,
    close: () => pool.close(),
  };
}

function postJob(markdown: string | Stored<string>): Job | StoredJob {
  if (typeof markdown === 'string') return { kind: 'post', markdown };
  const { bytes, read } = markdown;
  return { kind: 'post', bytes, read: async () => ({ kind: 'post', markdown: await read() }) };
}

function storedJob(kind: 'edit', texts: Stored<Editing>): StoredJob;
function storedJob(kind: 'diff', texts: Stored<Versions>): StoredJob;
function storedJob(kind: 'edit' | 'diff', { bytes, read }: Stored<Editing | Versions>): StoredJob {
  return { kind, bytes, read: async () => ({ kind, ...(await read()) }) as Job };
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
    const defaults = { deadlineMs, longestMs, memoryMb: 80, maxWaiting: 1000, onCrash: () => {} };
    this.options = { ...defaults, ...options };
  }

  async run(job: Task['job'], owner: string, signal?: AbortSignal): Promise<Result> {
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

  private enqueue(job: Task['job'], owner: string, signal?: AbortSignal): Promise<Result> {
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
    for (const lane of ['quick', 'patient'] as const) {
      for (let task = this.next(lane); task; task = this.next(lane)) {
        const thread = this.threadFor(task, lane);
        if (!thread) break;
        this.waiting.began(task, lane);
        thread.run(task);
      }
    }
  }

  /** The next document for such a thread. Patient ones help out first where all the others are held up. */
  private next(lane: Lane): Task | undefined {
    const helps = lane === 'patient' && this.areHeldUp();
    return (helps ? this.waiting.first('quick') : undefined) ?? this.waiting.first(lane);
  }

  private areHeldUp(): boolean {
    const quick = this.threadsOf('quick');
    return quick.length === this.options.threads && quick.every(({ isHeldUp }) => isHeldUp);
  }

  private threadsOf(lane: Lane): Thread[] {
    return [...this.threads].filter((thread) => thread.lane === lane);
  }

  /** One that is free, else one that takes the document behind others; none may be ready yet. */
  private threadFor(task: Task, lane: Lane): Thread | undefined {
    const threads = this.threadsOf(lane);
    const idle = threads.find(({ isIdle }) => isIdle);
    if (idle) return idle;
    this.awaitThread(lane);
    // Behind a patient one's it would wait longer than for a thread that is started now.
    if (lane === 'patient' && this.areHeldUp()) return undefined;
    return this.waiting.mayFollow(task) ? threads.find((thread) => thread.takesBehind(task)) : undefined;
  }

  /** Starts a thread where there may be one more, and keeps the process alive until it is ready. */
  private awaitThread(lane: Lane): void {
    const threads = this.threadsOf(lane);
    const starting = threads.find(({ isStarting }) => isStarting);
    if (starting) starting.hold();
    else if (threads.length < this.options.threads) this.start(lane).hold();
    else if (lane === 'quick') this.freeOne();
  }

  /** Where no thread can help out either, a document that is stuck makes room, and is begun anew in a patient one. */
  private freeOne(): void {
    const patient = this.threadsOf('patient');
    const areBusy = patient.length === this.options.threads && patient.every(({ isBusy }) => isBusy);
    if (!areBusy || !this.areHeldUp()) return;
    const stuck = this.threadsOf('quick').find(({ isStuck }) => isStuck);
    const task = stuck?.takeOut();
    if (!task) return;
    task.wasTakenOut = true;
    this.waiting.add(task);
  }

  private start(lane: Lane): Thread {
    const thread: Thread = new Thread(lane, this.options, {
      onFree: () => {
        this.dispatch();
        if (lane === 'patient') this.retireLater();
      },
      onReturned: (tasks) => {
        for (const task of tasks) this.again(task, lane);
      },
      onHeldUp: (owner) => {
        this.waiting.heldUpBy(owner);
        this.dispatch();
      },
      onStuck: () => this.dispatch(),
      onDone: (task, processorMs, wasHeldUp) => this.waiting.ended(task, lane, processorMs, wasHeldUp),
      onGone: (wasReady) => this.replace(thread, wasReady),
    });
    this.threads.add(thread);
    return thread;
  }

  private again(task: Task, lane: Lane): void {
    this.waiting.left(task, lane);
    if (this.isClosed) task.reject(closed());
    else this.waiting.add(task);
  }

  private retireLater(): void {
    if (this.retiring) return void this.retiring.refresh();
    const retire = () => {
      for (const thread of this.threadsOf('patient')) if (thread.isIdle) void thread.end(closed());
    };
    this.retiring = setTimeout(retire, idleFor).unref();
  }

  /** Where a quick one is missed, another is started at once, so that the next document finds it warm. */
  private replace(thread: Thread, wasReady: boolean): void {
    this.threads.delete(thread);
    if (this.isClosed) return;
    const { length } = this.threadsOf(thread.lane);
    if (wasReady) {
      if (thread.lane === 'quick' && length < this.options.threads) this.start('quick');
      this.dispatch();
    } else if (length === 0) {
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
