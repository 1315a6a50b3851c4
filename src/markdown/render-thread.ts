import { parentPort } from 'node:worker_threads';
import { AppError } from '../errors.ts';
import { renderComment, renderPost } from './render.ts';
import type { Answer, Job } from './renderer.ts';

// The entry of a render thread: one job at a time in, its answer out. An error that is not the document's own
// fault ends the thread, and the pool tells.
const port = parentPort;
if (port === null) throw new Error('render-thread.ts runs in a worker thread only');

port.on('message', (job: Job) => port.postMessage(answer(job)));
port.postMessage({ type: 'ready' } satisfies Answer);

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
