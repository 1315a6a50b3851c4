import { Worker } from 'node:worker_threads';
import { AppError, type FieldFault } from '../../errors.ts';
import { threadEntry, youngMemory } from '../../platform/thread-entry.ts';
import { unrenderable, type RenderedComment, type RenderedPost } from '../rendered.ts';
import type { RendererOptions } from './renderer.ts';
import type { Kind } from '../write/writer.ts';

/** What a thread is asked to do. */
export type Job = { readonly kind: Kind; readonly markdown: string };

/** What a thread sends: first that it is ready, then one answer per job, in order. */
export type Answer =
  | { readonly type: 'ready' }
  /** For a job that was given to another thread meanwhile. */
  | { readonly type: 'skipped' }
  | { readonly type: 'rendered'; readonly rendered: RenderedPost | RenderedComment }
  | { readonly type: 'refused'; readonly detail: string; readonly errors: readonly FieldFault[] };

/** What each side sees of the other at once: places in shared memory. */
export const shared = {
  /** How many jobs the thread has answered. It wraps at 2³², and only differences count. */
  answered: 0,
  /** 1 while the thread is to skip what it was sent. */
  skipping: 1,
} as const;

/** A document to be rendered, and who waits for it. */
export type Task = {
  readonly job: Job;
  readonly owner: string;
  resolve(rendered: RenderedPost | RenderedComment): void;
  reject(error: Error): void;
};

/** How long one document may hold up those that were sent to the same thread after it, ms. */
const patience = 50;

const advice = 'Simplify or split it.';

/** What the pool is told. */
type ThreadEvents = {
  onFree(): void;
  /** A document of this owner takes long. */
  onSlow(owner: string): void;
  /** Documents, if any, that it was sent and will not answer: it is held up, or ends. */
  onGivenBack(tasks: readonly Task[]): void;
  onGone(wasReady: boolean): void;
};

/** This side of a render thread: what it was sent, and a watch over how long it takes. */
export class Thread {
  private readonly worker: Worker;
  private readonly deadlineMs: number;
  private readonly events: ThreadEvents;
  private readonly memory = new Int32Array(new SharedArrayBuffer(Object.keys(shared).length * 4));
  /** What it was sent and has not answered, in order; undefined for what was given back meanwhile. */
  private sent: (Task | undefined)[] = [];
  /** How many answers have come, counted like `shared.answered`. */
  private received = 0;
  private timer: NodeJS.Timeout | undefined;
  private isReady = false;
  private isSlow = false;
  private isEnding = false;

  constructor(options: Required<RendererOptions>, events: ThreadEvents) {
    this.deadlineMs = options.deadlineMs;
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

  /** Whether it is at a document that takes long, or ends because of one. */
  get isHeldUp(): boolean {
    return this.isSlow || this.isEnding;
  }

  /**
   * Documents in its hands; infinite while it can take none, as before it has answered for all that were given back.
   */
  get load(): number {
    if (!this.isReady || this.isHeldUp || this.sent.includes(undefined)) return Infinity;
    return this.sent.length;
  }

  /** Whose documents it has in its hands. */
  owners(): string[] {
    return this.sent.flatMap((task) => (task ? [task.owner] : []));
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
      this.isSlow = true;
      if (this.sent[0]) this.events.onSlow(this.sent[0].owner);
      const [head, ...others] = this.sent;
      Atomics.store(this.memory, shared.skipping, 1);
      this.sent = [head, ...others.map(() => undefined)];
      this.giveBack(others);
    }, first);
  }

  private answersOnTheirWay(): number {
    return (Atomics.load(this.memory, shared.answered) - this.received) | 0;
  }

  private giveBack(tasks: readonly (Task | undefined)[]): void {
    this.events.onGivenBack(tasks.filter((task) => task !== undefined));
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
    if (answer.type === 'ready') this.isReady = true;
    else {
      // It came after the deadline.
      if (this.isEnding) return;
      clearTimeout(this.timer);
      this.received = (this.received + 1) | 0;
      task = this.sent.shift();
    }
    this.isSlow = false;
    if (this.sent.length > 0) this.watch();
    else {
      Atomics.store(this.memory, shared.skipping, 0);
      this.worker.unref();
    }
    // One that was not given back is skipped where the thread had not come to it yet.
    if (answer.type === 'skipped') this.giveBack([task]);
    else if (answer.type === 'refused')
      task?.reject(new AppError('unrenderable', answer.detail, { errors: answer.errors }));
    else if (answer.type === 'rendered') task?.resolve(answer.rendered);
    this.events.onFree();
  }

  /** For a thread that ends: refuses its document and gives back the others, whose answers may not arrive. */
  private refuse(reason: Error): void {
    clearTimeout(this.timer);
    this.isEnding = true;
    const [culprit] = this.sent.splice(this.answersOnTheirWay(), 1);
    culprit?.reject(reason);
    this.giveBack(this.sent.splice(0));
  }
}

/** The refusal of what is not rendered any more. */
export function closed(): AppError {
  return new AppError('unavailable', 'The service is stopping. Send the call again.', { retryAfter: 5 });
}
