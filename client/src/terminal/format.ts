import { printable, quoted } from '../../../src/rules/text.ts';

/**
 * Rows as aligned columns; the texts may come from outside, and are cut after `longest` characters. Where a terminal is
 * narrower than `width`, the widest columns give way.
 */
export function table(
  rows: readonly (readonly string[])[],
  { longest = 200, width }: { longest?: number; width?: number | undefined } = {},
): string {
  const cells = rows.map((row) => row.map((cell) => printable(cell, longest)));
  const widths = cells.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, cell.length)),
    [],
  );
  if (width !== undefined) narrow(widths, width);
  const fit = (cell: string, column: number) => {
    const most = widths[column] ?? 0;
    return (cell.length > most ? cutInMiddle(cell, most) : cell).padEnd(most);
  };
  return cells.map((row) => row.map(fit).join('  ').trimEnd()).join('\n');
}

/** Takes from the widest columns what a line has too much, but leaves each something to be recognised by. */
function narrow(widths: number[], width: number): void {
  const least = 8;
  for (;;) {
    const total = widths.reduce((sum, each) => sum + each + 2, -2);
    const widest = Math.max(...widths);
    if (total <= width || widest <= least) return;
    widths[widths.indexOf(widest)] = Math.max(least, widest - (total - width), Math.ceil(widest / 2));
  }
}

/** A text of at most so many columns: what is left out is left out of its middle, since names end in what tells them apart. */
export function cutInMiddle(text: string, columns: number): string {
  const points = Array.from(text);
  if (points.length <= columns) return text;
  if (columns < 3) return points.slice(0, Math.max(columns, 0)).join('');
  const begin = Math.ceil((columns - 1) / 2);
  return `${points.slice(0, begin).join('')}…${points.slice(points.length - (columns - 1 - begin)).join('')}`;
}

/** A word of the command line, safe to repeat. */
export function shown(word: string): string {
  return quoted(word, 60);
}

/** Text of others without control characters, which a terminal would obey; lines and tabs stay. */
export function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '');
}

/** Seconds in words: `41 s`, `12 min 4 s`. */
export function duration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`;
}
