import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../errors.ts';
import { renderComment, renderPost } from '../render.ts';
import { shared, type Answer, type Job } from './thread.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

const memory = workerData as Int32Array;
port.on('message', (job: Job) => {
  const isSkipped = Atomics.load(memory, shared.skipping) === 1;
  const sent: Answer = isSkipped ? { type: 'skipped' } : answer(job);
  Atomics.add(memory, shared.answered, 1);
  port.postMessage(sent);
});
port.postMessage({ type: 'ready' } satisfies Answer);

function answer({ kind, markdown }: Job): Answer {
  try {
    return { type: 'rendered', rendered: kind === 'post' ? renderPost(markdown) : renderComment(markdown) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'unrenderable') throw error;
    return { type: 'refused', detail: error.message, errors: error.extra.errors ?? [] };
  }
}
