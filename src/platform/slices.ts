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

/** Parts of long work that are done in a turn at most: each in a callback of its own, so that promises settle between two. */
const mostParts = 32;

/** Work in parts; `used` counts the milliseconds that they have taken so far. */
type LongWork = { used: number };

/** Works whose next part waits, the one that waits longest first. */
const parts: { readonly work: LongWork; readonly begin: () => void }[] = [];
let plannedParts = 0;
let partsEnd = Infinity;
let begun: { readonly work: LongWork; readonly at: number } | null = null;
let longestWaits = false;

/**
 * What long work awaits between two of its parts, which take a fraction of a slice each. Of all such works, however many
 * clients have begun them, as many go on in a turn of the event loop as have half a slice of time: by turns the one that
 * has used least, so that what is short need not wait for what is long, and the one that waits longest.
 */
export function longWork(): () => Promise<void> {
  const work: LongWork = { used: 0 };
  return () =>
    new Promise((begin) => {
      parts.push({ work, begin });
      if (plannedParts === 0) planParts();
    });
}

function planParts(): void {
  // One more, which tells how long the last has taken.
  plannedParts = Math.min(parts.length, mostParts) + 1;
  partsEnd = Infinity;
  for (let n = 0; n < plannedParts; n++) setImmediate(beginPart);
}

function beginPart(): void {
  const now = performance.now();
  if (begun) begun.work.used += now - begun.at;
  begun = null;
  partsEnd = Math.min(partsEnd, now + slice / 2);
  plannedParts--;
  const next = plannedParts > 0 && now < partsEnd ? takePart() : undefined;
  if (plannedParts === 0 && parts.length > 0) planParts();
  if (!next) return;
  begun = { work: next.work, at: now };
  next.begin();
}

function takePart() {
  let at = 0;
  if (!longestWaits)
    for (const [n, { work }] of parts.entries()) if (work.used < (parts[at]?.work.used ?? 0)) at = n;
  longestWaits = !longestWaits;
  return parts.splice(at, 1)[0];
}
