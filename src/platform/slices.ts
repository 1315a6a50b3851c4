/** Milliseconds of work that is done before the event loop looks at what else has come in. */
export const slice = 4;

/**
 * Does what it is given: at once while there is time left in this turn of the event loop, else in later ones, the newest
 * and the oldest by turns, so that who comes behind thousands need not wait for all of them, nor anybody for ever. For
 * what comes by thousands, of which each takes little. Nothing is done while `isHeld`.
 */
export function createSlices(isHeld: () => boolean = () => false): (work: () => void) => void {
  const waiting: (() => void)[] = [];
  let end: number | null = null;
  let oldestIsNext = true;
  const isTime = () => !isHeld() && performance.now() < (end ?? Infinity);

  function renew(): void {
    end = performance.now() + slice;
    const isIdle = waiting.length === 0;
    while (waiting.length > 0 && isTime()) {
      const work = oldestIsNext ? waiting.shift() : waiting.pop();
      oldestIsNext = !oldestIsNext;
      work?.();
    }
    if (isIdle) end = null;
    else setImmediate(renew);
  }

  return (work) => {
    if (end === null) {
      end = performance.now() + slice;
      setImmediate(renew);
    }
    if (waiting.length === 0 && isTime()) work();
    else waiting.push(work);
  };
}
