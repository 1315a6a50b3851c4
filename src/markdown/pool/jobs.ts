import type { TextDiff } from '../../rules/edits/text-diff.ts';
import type { TextChange } from '../../rules/edits/text-edits.ts';
import type { RenderedComment, RenderedPost } from '../rendered.ts';

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
