import type { ErrorCode, ErrorExtra } from '../../errors.ts';
import type { Prose } from '../../rules/calls.ts';
import type { Job, Result } from './jobs.ts';

// What a render thread and the pool say to one another.

/**
 * What a thread is for: patient ones take the documents that are large or of slow owners. Both have a low priority, so
 * that all else on a busy machine goes before them, and quick ones before patient ones.
 */
export type Lane = 'quick' | 'patient';

/** What a thread sends: first that it is ready, then one answer per job; each with all processor time it has used. */
export type Answer = { readonly processorMs: number } & (
  | { readonly type: 'ready' }
  | { readonly type: 'done'; readonly result: Result }
  | {
      readonly type: 'refused';
      readonly code: ErrorCode;
      readonly detail: Prose;
      readonly extra: ErrorExtra;
    }
);

/** What a thread is sent, numbered from 1. */
export type Numbered = { readonly number: number; readonly job: Job };

/** What a thread begins with. */
export type ThreadData = {
  readonly lane: Lane;
  /** One number, shared: of the job begun last; or, below 0, up to which none that was not begun may be begun. */
  readonly begun: Int32Array;
};

/** In the thread: whether it may begin a job, which then cannot be taken back any more. */
export function begin(begun: Int32Array, number: number): boolean {
  for (;;) {
    const last = Atomics.load(begun, 0);
    if (number <= -last) return false;
    if (Atomics.compareExchange(begun, 0, last, number) === last) return true;
  }
}

/** Takes back all up to a number that have not been begun. Returns up to which they have been, or were taken back. */
export function takeBack(begun: Int32Array, upTo: number): number {
  return Math.abs(Atomics.exchange(begun, 0, -upTo));
}
