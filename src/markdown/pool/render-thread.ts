import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { giveMemoryBack, giveMemoryBackAtRest, heapSize } from '../../platform/memory.ts';
import type { Job } from './jobs.ts';
import { begin, type Answer, type Numbered, type ThreadData } from './messages.ts';
import { work } from './work.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

/**
 * Size of the heap from which on it is collected after a job, MiB: V8 alone would leave it as it is. One that renders
 * posts of a few kilobytes has up to 32, of which three quarters are its young generation; a patient one begins with 9.
 */
const largeHeap = { quick: 40, patient: 18 };

/**
 * By how much others go first for the processor: added to its nice value. Measured on one core, beside 32 comments at a
 * time: with 0 for quick ones pages took twice the time, and searches two to five times.
 */
const niceness = { quick: 4, patient: 10 };

const { lane, begun } = workerData as ThreadData;
lowerPriority();
giveMemoryBackAtRest();

port.on('message', ({ number, job }: Numbered) => {
  if (!begin(begun, number)) return;
  const outcome = outcomeOf(job);
  // Before the answer, so that it is the time of who made it necessary.
  if (heapSize() > largeHeap[lane] * 1024 * 1024) giveMemoryBack();
  port.postMessage({ ...outcome, processorMs: processorMs() } satisfies Answer);
});
port.postMessage({ type: 'ready', processorMs: processorMs() } satisfies Answer);

/** On Linux each thread has a priority, and 0 is the one that calls; elsewhere it would be the whole process. */
function lowerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, Math.min(19, getPriority() + niceness[lane]));
  } catch {
    // Forbidden by the host: then all threads are equal.
  }
}

function outcomeOf(job: Job) {
  try {
    return { type: 'done', result: work(job) } as const;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { code, detail, extra } = error;
    return { type: 'refused', code, detail, extra } as const;
  }
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
