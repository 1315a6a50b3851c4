/** Milliseconds of work that is done before the event loop looks at what else has come in. */
export const slice = 4;

/**
 * Does what it is given: at once while there is time left in this turn of the event loop, else in later ones, the newest
 * and the oldest by turns, so that who comes behind thousands need not wait for all of them, nor anybody for ever. For
 * what comes by thousands, of which each takes little. Nothing is done while `isHeld`. Where each brings the event loop
 * more to do, `most` are done in a turn, and fewer while turns take longer than two slices.
 */
export function createSlices({
  isHeld = () => false,
  most = Infinity,
}: { isHeld?: () => boolean; most?: number } = {}): (work: () => void) => void {
  const waiting: (() => void)[] = [];
  let end: number | null = null;
  let share = most;
  let left = most;
  let oldestIsNext = true;
  const isTime = () => left >= 1 && !isHeld() && performance.now() < (end ?? Infinity);

  function begin(): void {
    const now = performance.now();
    const isLate = end !== null && now > end + slice;
    share = isLate ? Math.max(1, share / 2) : Math.min(most, share * 2);
    end = now + slice;
    left = share;
  }

  function renew(): void {
    begin();
    const isIdle = waiting.length === 0;
    while (waiting.length > 0 && isTime()) {
      const work = oldestIsNext ? waiting.shift() : waiting.pop();
      oldestIsNext = !oldestIsNext;
      left--;
      work?.();
    }
    if (isIdle) end = null;
    else setImmediate(renew);
  }

  return (work) => {
    if (end === null) {
      begin();
      setImmediate(renew);
    }
    if (waiting.length > 0 || !isTime()) waiting.push(work);
    else {
      left--;
      work();
    }
  };
}
