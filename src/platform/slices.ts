/** Milliseconds of work that is done before the event loop looks at what else has come in. */
const slice = 4;

/**
 * Does what it is given, in that order: at once while there is time left in this turn of the event loop, else in later
 * ones. For what comes by thousands, of which each takes little.
 */
export function createSlices(): (work: () => void) => void {
  const waiting: (() => void)[] = [];
  let end: number | null = null;

  function renew(): void {
    end = performance.now() + slice;
    let done = 0;
    for (; done < waiting.length && performance.now() < end; done++) waiting[done]?.();
    waiting.splice(0, done);
    if (done > 0) setImmediate(renew);
    else end = null;
  }

  return (work) => {
    if (end === null) {
      end = performance.now() + slice;
      setImmediate(renew);
    }
    if (waiting.length === 0 && performance.now() < end) work();
    else waiting.push(work);
  };
}
