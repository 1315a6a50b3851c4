import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * How many seconds in a row a thread must have had next to nothing to do, and the share of each which counts as nothing.
 * Compiled code is given back too: after one second alone, publishing in bursts cost 1.7 times as much.
 */
const quietSeconds = 5;
const nothing = 0.02;
/** Growth since the last time that is worth the pause, bytes. */
const worthwhile = 4 * 1024 * 1024;

let collect: ((options: object) => void) | undefined;

/**
 * Gives the memory that this thread's heap does not need back to the system. The thread does nothing else meanwhile. V8
 * by itself leaves a heap as its busiest moment made it: a young generation at its largest, and garbage until the next
 * collection.
 */
export function giveMemoryBack(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as (options: object) => void;
  }
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Does that for as long as the thread lives, whenever it has come to rest and its heap has grown since the last time. */
export function giveMemoryBackAtRest(): void {
  let before = performance.eventLoopUtilization();
  let left = 0;
  let quiet = 0;
  setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    quiet = utilization > nothing ? 0 : quiet + 1;
    if (quiet < quietSeconds || heapSize() < left + worthwhile) return;
    giveMemoryBack();
    left = heapSize();
    before = performance.eventLoopUtilization();
  }, 1_000).unref();
}

/** Of this thread, as far as it is in memory, bytes. */
export function heapSize(): number {
  return getHeapStatistics().total_physical_size;
}

/**
 * Frees the memory of a chunk that nobody reads any more. V8 begins to collect such memory, which is not part of its
 * heap, when 64 MiB more of it have come: an attacker's dropped bodies would cost all of that.
 */
export function freeChunk({ buffer, byteLength }: Buffer): void {
  // A slice of a pool shares its memory with others; an empty one has none to free, and may stand for many.
  if (byteLength > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
