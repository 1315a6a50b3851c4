import { AppError, detailOf } from '../../errors.ts';
import { contentBytes } from '../../rules/post-fields.ts';
import { diffTexts } from '../../rules/edits/text-diff.ts';
import { applyChange, type EditFault } from '../../rules/edits/text-edits.ts';
import { renderComment, renderPost } from '../render.ts';
import type { EditedPost, Editing, Job, Result } from './jobs.ts';

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
