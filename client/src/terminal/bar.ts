import { printable } from '../../../src/rules/text.ts';
import type { Terminal } from './command.ts';
import { cutInMiddle, duration } from './format.ts';

/** The line of a run, within the columns of the terminal: a bar, how many are done, the rate, the time left, a name. */
export function createBar(
  total: number,
  columns: Terminal['columns'],
): (done: number, note: string) => string {
  const began = performance.now();
  return (done, note) => {
    // The last column stays free: some terminals begin a new line after it.
    const width = Math.max(20, (columns?.('progress') ?? 80) - 1);
    const seconds = (performance.now() - began) / 1000;
    const rate = done / Math.max(seconds, 0.001);
    const left =
      done === 0 || seconds < 1
        ? ''
        : ` ${rate.toFixed(rate < 10 ? 1 : 0)}/s, ${duration(Math.ceil((total - done) / rate))} left`;
    const counts = ` ${done}/${total}${left}`;
    const size = Math.min(24, width - counts.length - 2);
    const filled = Math.floor((done / total) * Math.max(size, 0));
    const drawn = size < 4 ? '' : `[${'#'.repeat(filled)}${'.'.repeat(size - filled)}]`;
    const room = width - drawn.length - counts.length - 1;
    const name = room < 8 ? '' : ` ${cutInMiddle(printable(note, 200), room)}`;
    return cutInMiddle(`${drawn}${counts}${name}`, width);
  };
}
