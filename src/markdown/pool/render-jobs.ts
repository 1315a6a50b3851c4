import type { FieldFault } from '../../errors.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import type { Kind } from '../write/writer.ts';

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

/** What each side sees of the other at once: places in shared memory. */
export const shared = {
  /** How many jobs the thread has answered. It wraps at 2³², and only differences count. */
  answered: 0,
  /** 1 while the thread is to skip what it was sent. */
  skipping: 1,
} as const;
