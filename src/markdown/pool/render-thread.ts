import { parentPort } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { renderComment, renderPost } from '../render.ts';
import type { Answer, Job } from './thread.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

port.on('message', (job: Job) => {
  const outcome = render(job);
  port.postMessage({ ...outcome, processorMs: processorMs() } satisfies Answer);
});
port.postMessage({ type: 'ready', processorMs: processorMs() } satisfies Answer);

function render({ kind, markdown }: Job) {
  try {
    const rendered = kind === 'post' ? renderPost(markdown) : renderComment(markdown);
    return { type: 'rendered', rendered } as const;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'unrenderable') throw error;
    return { type: 'refused', detail: error.message, errors: error.extra.errors ?? [] } as const;
  }
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
