import { printable } from '../../../src/rules/text.ts';

/** Rows as aligned columns; the texts may come from outside, and are cut after `longest` characters. */
export function table(rows: readonly (readonly string[])[], longest = 200): string {
  const cells = rows.map((row) => row.map((cell) => printable(cell, longest)));
  const widths = cells.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, cell.length)),
    [],
  );
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
