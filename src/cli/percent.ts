import type { Terminal } from './command.ts';

/** Shows on a terminal how much of a work is done. */
export function percent({ status }: Terminal): (done: number, all: number) => void {
  return (done, all) => status?.(done >= all ? '' : `${Math.floor((100 * done) / all)} %`);
}
