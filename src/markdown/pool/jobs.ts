import { diffTexts, type TextDiff } from '../../rules/text-diff.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import { renderComment, renderPost } from '../render.ts';

/** The old and the new text, and what a diff calls them. */
export type Versions = {
  readonly before: string;
  readonly after: string;
  readonly names: readonly [before: string, after: string];
};

/** What a thread is asked to do, as plain data. */
export type Job =
  | { readonly kind: 'post'; readonly markdown: string }
  | { readonly kind: 'comment'; readonly markdown: string }
  | ({ readonly kind: 'diff' } & Versions);

/** What comes of it. */
export type Result = RenderedPost | RenderedComment | TextDiff;

/** Does a job, in a thread with a deadline. Throws AppError where what was sent is to blame. */
export function work(job: Job): Result {
  if (job.kind === 'post') return renderPost(job.markdown);
  if (job.kind === 'comment') return renderComment(job.markdown);
  return diffTexts(job.before, job.after, job);
}
