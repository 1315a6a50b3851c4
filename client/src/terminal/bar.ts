import { printable } from '../../../src/rules/text.ts';
import type { Terminal } from './command.ts';
import { duration } from './format.ts';
import { cutInMiddle } from './width.ts';

/** The line of a run, within the columns of the terminal: a bar, how many are done, the rate, the time left, a name. */
export function createBar(total: number, columns: Terminal['columns']) {
  const began = performance.now();
  const line = (done: number, rate: string, note: string, reserved = 0): string => {
    // The last column stays free: some terminals begin a new line after it.
    const width = Math.max(20, (columns?.('progress') ?? 80) - 1);
    const counts = ` ${done}/${total}${rate}`;
    const size = Math.min(24, width - counts.length - 2 - reserved);
    const filled = Math.floor((done / total) * Math.max(size, 0));
    const drawn = size < 4 ? '' : `[${'#'.repeat(filled)}${'.'.repeat(size - filled)}]`;
    const room = width - drawn.length - counts.length - 1;
    const name = room < 8 ? '' : ` ${cutInMiddle(printable(note, 200), room)}`;
    return cutInMiddle(`${drawn}${counts}${name}`, width);
  };
  return {
    /** `room`: how many can be done before a limit stops it; beyond that the time left is not known. */
    working(done: number, note: string, room: number): string {
      const seconds = (performance.now() - began) / 1000;
      if (done === 0 || seconds < 1) return line(done, '', note);
      const rate = done / Math.max(seconds, 0.001);
      const left = total - done > room ? '' : `, ${duration(Math.ceil((total - done) / rate))} left`;
      return line(done, ` ${rate.toFixed(rate < 10 ? 1 : 0)}/s${left}`, note);
    },
    waiting: (done: number, note: string): string => line(done, '', note, note.length + 1),
  };
}
