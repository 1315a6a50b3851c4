import type { FieldFault } from '../errors.ts';
import type { RenderedComment, RenderedPost } from './rendered.ts';
import type { Kind } from './writer.ts';

/** What a thread is asked to do. */
export type Job = { readonly kind: Kind; readonly markdown: string };

/** What a thread sends: first that it is ready, then one answer per job, in order. */
export type Answer =
  | { readonly type: 'ready' }
  /** For a job that was given to another thread meanwhile. */
  | { readonly type: 'skipped' }
  | { readonly type: 'post'; readonly rendered: RenderedPost }
  | { readonly type: 'comment'; readonly rendered: RenderedComment }
  | { readonly type: 'refused'; readonly detail: string; readonly errors: readonly FieldFault[] };

/** What both sides read of the other at once, as numbers of jobs; they wrap at 2³², and only differences count. */
export const counts = {
  /** The last that the thread has answered. */
  answered: 0,
  /** Jobs after the first of these, up to the second, are to be skipped. */
  skipAfter: 1,
  skipTo: 2,
} as const;
