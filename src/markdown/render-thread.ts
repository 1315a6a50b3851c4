import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../errors.ts';
import { renderComment, renderPost } from './render.ts';
import { counts, type Answer, type Job } from './render-jobs.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

const shared = workerData as Int32Array;
let taken = 0;
port.on('message', (job: Job) => {
  taken = (taken + 1) | 0;
  const sent: Answer = isSkipped() ? { type: 'skipped' } : answer(job);
  Atomics.store(shared, counts.answered, taken);
  port.postMessage(sent);
});
port.postMessage({ type: 'ready' } satisfies Answer);

function isSkipped(): boolean {
  const after = Atomics.load(shared, counts.skipAfter);
  const to = Atomics.load(shared, counts.skipTo);
  return ((taken - after) | 0) > 0 && ((to - taken) | 0) >= 0;
}

function answer({ kind, markdown }: Job): Answer {
  try {
    return kind === 'post'
      ? { type: 'post', rendered: renderPost(markdown) }
      : { type: 'comment', rendered: renderComment(markdown) };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'unrenderable') throw error;
    return { type: 'refused', detail: error.message, errors: error.extra.errors ?? [] };
  }
}
