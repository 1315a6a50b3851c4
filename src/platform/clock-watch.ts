import { hour } from './durations.ts';

/** A clock that gains as much at once is taken for wrong, ms. */
const jump = hour;
/** How long it is, ms: time to set it right before anything is deleted by it. */
const distrustedFor = hour;

/**
 * Notices a clock that jumps ahead, against one that cannot be set: what it says is old may be new, and deleting that
 * could not be undone. `onJump` gets by how much, ms.
 */
export function watchClock(
  now: () => number,
  onJump: (by: number) => void,
  elapsed: () => number = () => performance.now(),
) {
  let offset = now() - elapsed();
  let trustedFrom = -Infinity;
  /** Whether what is old by the clock may be deleted. */
  return function isTrusted(): boolean {
    const by = now() - elapsed() - offset;
    offset += by;
    if (by >= jump) {
      trustedFrom = elapsed() + distrustedFor;
      onJump(by);
    } else if (by <= -jump) trustedFrom = -Infinity;
    return elapsed() >= trustedFrom;
  };
}
