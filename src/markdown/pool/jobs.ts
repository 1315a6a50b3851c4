import { AppError, detailOf } from '../../errors.ts';
import { contentBytes } from '../../rules/post-fields.ts';
import { diffTexts, type TextDiff } from '../../rules/edits/text-diff.ts';
import { applyChange, type EditFault, type TextChange } from '../../rules/edits/text-edits.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';
import { renderComment, renderPost } from '../render.ts';

/** The old and the new text, and what a diff calls them. */
export type Versions = {
  readonly before: string;
  readonly after: string;
  readonly names: readonly [before: string, after: string];
};

/** A content that is to be changed, and what a diff calls it before and after. */
export type Editing = {
  readonly content: string;
  readonly change: TextChange;
  readonly names: Versions['names'];
};

/** The changed content, rendered, and what changed. */
export type EditedPost = RenderedPost & { readonly diff: TextDiff };

/** What a thread is asked to do, as plain data. */
export type Job =
  | { readonly kind: 'post'; readonly markdown: string }
  | { readonly kind: 'comment'; readonly markdown: string }
  | ({ readonly kind: 'edit' } & Editing)
  | ({ readonly kind: 'diff' } & Versions);

/** A text, or several, that are stored: read when their turn comes, they take no memory while they wait. */
export type Stored<T> = {
  /** Bytes of all of them, as they are known without reading them. */
  readonly bytes: number;
  readonly read: () => Promise<T>;
};

/** A job whose texts are stored. */
export type StoredJob = { readonly kind: Job['kind'] } & Stored<Job>;

/** What comes of it. */
export type Result = RenderedPost | RenderedComment | EditedPost | TextDiff;

/** Characters of all texts that a job works on; bytes of those that are not read yet. */
export function sizeOf(job: Job | StoredJob): number {
  if ('read' in job) return job.bytes;
  if (job.kind === 'diff') return job.before.length + job.after.length;
  if (job.kind !== 'edit') return job.markdown.length;
  const { edits = [], append = '' } = job.change;
  return edits.reduce((size, edit) => size + edit.new.length, job.content.length + append.length);
}

/** Does a job, in a thread with a deadline. Throws AppError where what was sent is to blame. */
export function work(job: Job): Result {
  if (job.kind === 'post') return renderPost(job.markdown);
  if (job.kind === 'comment') return renderComment(job.markdown);
  if (job.kind === 'edit') return editPost(job);
  return diffTexts(job.before, job.after, job);
}

/** Throws edit_not_applied, too_large, unrenderable. */
function editPost({ content, change, names }: Editing): EditedPost {
  const edited = applyChange(content, change);
  if ('faults' in edited) throw notApplied(edited.faults);
  if ('tooLarge' in edited) throw tooLarge(edited.tooLarge);
  const rendered = renderPost(edited.text);
  return { ...rendered, diff: diffTexts(content, rendered.content, { names }) };
}

function notApplied(faults: readonly EditFault[]): AppError {
  return new AppError('edit_not_applied', `${detailOf(faults)}. Nothing was stored.`, { errors: faults });
}

function tooLarge({ field, bytes }: { readonly field: string; readonly bytes: number }): AppError {
  const message = `makes the content ${bytes} bytes of UTF-8, and it must be at most ${contentBytes}`;
  return new AppError('too_large', `'${field}' ${message}. Nothing was stored.`, {
    errors: [{ field, message }],
  });
}
