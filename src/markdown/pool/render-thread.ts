import { parentPort } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { work, type Job } from './jobs.ts';
import type { Answer } from './thread.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

port.on('message', (job: Job) => {
  const outcome = outcomeOf(job);
  port.postMessage({ ...outcome, processorMs: processorMs() } satisfies Answer);
});
port.postMessage({ type: 'ready', processorMs: processorMs() } satisfies Answer);

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
