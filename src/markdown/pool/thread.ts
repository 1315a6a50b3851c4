import { Worker } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { threadEntry, threadEnv, youngMemory } from '../../platform/thread-entry.ts';
import { unrenderable } from '../rendered.ts';
import { takeBack, type Answer, type Lane, type Numbered, type ThreadData } from './messages.ts';
import { sizeOf, type Job, type Result, type StoredJob } from './jobs.ts';
import type { RendererOptions } from './renderer.ts';

/** A document to be rendered, and who waits for it. */
export type Task = {
  readonly job: Job | StoredJob;
  readonly owner: string;
  /** Whether it was taken out of a quick thread, for which others waited: a patient one begins it anew. */
  wasTakenOut?: true;
  resolve(result: Result): void;
  reject(error: Error): void;
};

/** Small documents that a thread may have behind the one it renders: as many, and characters of all of them. */
const mostBehind = 8;
const mostCharacters = 16 * 1024;

/** Processor time after which a document holds its thread up, ms. */
const patience = 50;
/**
 * Processor time after which a document is stuck, ms: about as much as another thread takes to start. To wait as long as
 * the other way costs, and then to take it, never costs more than twice the best choice (the ski rental problem).
 */
const stuckAfter = 250;
/** Least time between two looks at what a document has used, ms. */
const leastPause = 10;

const advice = 'Simplify or split it.';

/** What the pool is told. */
type ThreadEvents = {
  /** It has answered, or is ready for its first document: it can take one. */
  onFree(): void;
  /** These have not been begun, and will not be by this thread. */
  onReturned(tasks: readonly Task[]): void;
  /** A document of this owner has used more than a little. */
  onHeldUp(owner: string): void;
  /** Its document has used more than another thread takes to start. */
  onStuck(): void;
  /** Its document has used so much processor time, ms, and will use no more. */
  onDone(task: Task, processorMs: number, wasHeldUp: boolean): void;
  onGone(wasReady: boolean): void;
};

/**
 * This side of a render thread: its document, if it has one, and a watch over the processor time that it takes. Small
 * ones are sent before it is free, so that it need not be woken for each; they are taken back if it is held up.
 */
export class Thread {
  readonly lane: Lane;
  private readonly worker: Worker;
  private readonly options: Required<RendererOptions>;
  private readonly events: ThreadEvents;
  /** The document that it renders, and small ones behind it, each with its number. */
  private tasks: { readonly number: number; readonly task: Task }[] = [];
  private sent = 0;
  private readonly begun = new Int32Array(new SharedArrayBuffer(4));
  /** All processor time that the thread had used when it came to the document, ms. */
  private usedBefore = 0;
  private look: NodeJS.Timeout | undefined;
  private last: NodeJS.Timeout | undefined;
  private isReady = false;
  private isEnding = false;
  /** Whether the texts of its document are still being read: others would overtake it. */
  private isReading = false;
  /** Processor time that its document had used when it was last looked at, ms. */
  private used = 0;

  constructor(lane: Lane, options: Required<RendererOptions>, events: ThreadEvents) {
    this.lane = lane;
    this.options = options;
    this.events = events;
    this.worker = new Worker(threadEntry('render'), {
      env: threadEnv(),
      execArgv: [],
      workerData: { lane, begun: this.begun } satisfies ThreadData,
      resourceLimits: {
        maxOldGenerationSizeMb: options.memoryMb,
        maxYoungGenerationSizeMb: youngMemory[lane],
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

  get isIdle(): boolean {
    return this.isReady && !this.isEnding && !this.isBusy;
  }

  get isBusy(): boolean {
    return this.tasks.length > 0;
  }

  /** Whether its document has used more than a little. */
  get isHeldUp(): boolean {
    return this.used >= patience;
  }

  /** Whether its document has used so much that others need not wait for it. */
  get isStuck(): boolean {
    return this.used >= stuckAfter;
  }

  /** Whether this document may be sent behind what it has. */
  takesBehind(task: Task): boolean {
    if (!this.isReady || this.isEnding || this.isHeldUp || this.tasks.length > mostBehind) return false;
    if (this.isReading || 'read' in task.job) return false;
    return this.tasks.reduce((sum, sent) => sum + sizeOf(sent.task.job), sizeOf(task.job)) <= mostCharacters;
  }

  /** Whether it has not said yet that it can take a document. */
  get isStarting(): boolean {
    return !this.isReady;
  }

  /** Whose document it has; null for none. */
  get owner(): string | null {
    return this.tasks[0]?.task.owner ?? null;
  }

  run(task: Task): void {
    const number = ++this.sent;
    this.tasks.push({ number, task });
    this.worker.ref();
    if ('read' in task.job) void this.read(number, task, task.job);
    else this.send({ number, job: task.job });
    if (this.tasks.length === 1) this.lookIn(task, patience);
  }

  private send(numbered: Numbered): void {
    this.worker.postMessage(numbered);
  }

  /** Reads the texts of its only document, and sends them. */
  private async read(number: number, task: Task, { read }: StoredJob): Promise<void> {
    this.isReading = true;
    const job = await read().catch((error: unknown) => error as Error);
    this.isReading = false;
    // Its time may be over.
    if (this.tasks[0]?.task !== task) return;
    if (!(job instanceof Error)) return this.send({ number, job });
    this.finish(0)?.reject(job);
    this.worker.unref();
    this.events.onFree();
  }

  /** Keeps the process alive until the thread is idle, since somebody is waiting for it. */
  hold(): void {
    this.worker.ref();
  }

  async end(reason: Error): Promise<void> {
    this.refuse(reason);
    await this.worker.terminate();
  }

  /** Ends it, and gives back its document. */
  takeOut(): Task | null {
    const task = this.giveUp(this.used);
    void this.worker.terminate();
    return task;
  }

  private lookIn(task: Task, delay: number): void {
    this.look = setTimeout(() => void this.watch(task), Math.min(delay, this.options.deadlineMs));
  }

  /** Asks the system, not a clock, what the document has used: on a busy machine a thread waits for its turn. */
  private async watch(task: Task): Promise<void> {
    const { deadlineMs, longestMs } = this.options;
    // One that uses nothing, or does not even answer this question, is not left to itself.
    this.last ??= setTimeout(() => void this.end(notInTime()), longestMs);
    const { user, system } = await this.worker.cpuUsage().catch(() => ({ user: 0, system: 0 }));
    if (this.tasks[0]?.task !== task) return;
    const used = (user + system) / 1000 - this.usedBefore;
    if (used >= deadlineMs) {
      const fault = `takes more than ${deadlineMs / 1000} s of processor time to render`;
      return void this.end(unrenderable(fault, advice));
    }
    const { isHeldUp, isStuck } = this;
    this.used = used;
    const next = [patience, stuckAfter].find((time) => used < time) ?? deadlineMs;
    this.lookIn(task, Math.max(leastPause, Math.min(next, deadlineMs) - used));
    if (this.isHeldUp && !isHeldUp) {
      this.returnOthers();
      this.events.onHeldUp(task.owner);
    }
    if (this.isStuck && !isStuck) this.events.onStuck();
  }

  private receive(answer: Answer): void {
    // It came after the deadline.
    if (this.isEnding) return;
    const { processorMs } = answer;
    const task = this.finish(processorMs - this.usedBefore);
    this.usedBefore = processorMs;
    this.isReady = true;
    if (answer.type === 'refused') task?.reject(new AppError(answer.code, answer.detail, answer.extra));
    else if (answer.type === 'done') task?.resolve(answer.result);
    const [next] = this.tasks;
    if (next) this.lookIn(next.task, patience);
    else this.worker.unref();
    this.events.onFree();
  }

  /** Gives back what it has not begun: the present document may have ended by now, and the next have begun. */
  private returnOthers(): void {
    const begun = takeBack(this.begun, this.sent);
    const others = this.tasks.filter(({ number }) => number > begun);
    this.tasks = this.tasks.filter(({ number }) => number <= begun);
    this.events.onReturned(others.map(({ task }) => task));
  }

  /** For a thread that ends: its document cannot be answered otherwise. */
  private refuse(reason: Error): void {
    this.giveUp(this.options.deadlineMs)?.reject(reason);
  }

  /** Its document, where it has one, as it ends; it returns those behind it. */
  private giveUp(processorMs: number): Task | null {
    this.isEnding = true;
    const others = this.tasks.splice(1);
    const task = this.finish(processorMs);
    this.events.onReturned(others.map((other) => other.task));
    return task;
  }

  private finish(processorMs: number): Task | null {
    const { isHeldUp } = this;
    const task = this.tasks.shift()?.task ?? null;
    clearTimeout(this.look);
    clearTimeout(this.last);
    this.last = undefined;
    this.used = 0;
    if (task) this.events.onDone(task, processorMs, isHeldUp);
    return task;
  }
}

/** The refusal of what is not rendered any more. */
export function closed(): AppError {
  return new AppError('unavailable', 'The service is stopping. Send the call again.', { retryAfter: 5 });
}

/** The refusal of what was not rendered in time though its document need not be to blame. */
export function notInTime(): AppError {
  const detail = 'The document was not rendered in time, since this service is busy. Send the call again.';
  return new AppError('unavailable', detail, { retryAfter: 1, uncounted: true, budget: 'render_time' });
}
