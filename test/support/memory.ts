import { readFileSync } from 'node:fs';

/**
 * Memory of a process and of all that it has started, MiB, with what several of them share counted once (PSS); 0 once
 * it has ended. What they share with processes outside, such as the program file of Node, counts in part only.
 */
export function memoryOf(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
    const own = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;
    return children.reduce((sum, child) => sum + memoryOf(Number(child)), own);
  } catch {
    return 0;
  }
}
