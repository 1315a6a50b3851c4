import { printable, quoted } from '../../../src/rules/text.ts';
import { columnsOf, cutInMiddle, padded, wrapped } from './width.ts';

/** Characters of a cell that are shown. */
const longestCell = 200;

/**
 * Rows as aligned columns; the texts may come from outside, and are cut after `longest` characters. Where a terminal is
 * narrower than `width`, the widest columns give way.
 */
export function table(
  rows: readonly (readonly string[])[],
  { longest = longestCell, width }: { longest?: number; width?: number | undefined } = {},
): string {
  const cells = printed(rows, longest);
  const widths = widthsOf(cells);
  if (width !== undefined) narrow(widths, textColumns(cells), width);
  const fit = (cell: string, column: number) => {
    const most = widths[column] ?? 0;
    return padded(cutInMiddle(cell, most), most);
  };
  return cells.map((row) => row.map(fit).join('  ').trimEnd()).join('\n');
}

/**
 * A table under its heads, of which texts give way where a terminal is narrower than `width`; or where that is not enough,
 * each row as facts: an id, a time or an address that is cut is of no use. Where there is none, it says so.
 */
export function listing(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  width = Infinity,
): string {
  if (rows.length === 0) return 'None.';
  const isText = textColumns([heads, ...rows]);
  const most = widthsOf(printed([heads, ...rows], longestCell));
  const least = most.map((each, column) => (isText[column] ? Math.min(each, leastOfText) : each));
  if (least.reduce((sum, each) => sum + each + 2, -2) <= width) return table([heads, ...rows], { width });
  const names = heads.map((head) => head.toLowerCase());
  return rows
    .map((row) =>
      facts(
        row.flatMap((cell, n) => (cell === '' ? [] : [[names[n] ?? '', cell]])),
        width,
      ),
    )
    .join('\n\n');
}

function printed(rows: readonly (readonly string[])[], longest: number): string[][] {
  return rows.map((row) => row.map((cell) => printable(cell, longest)));
}

/** Of each column, the widest cell. */
function widthsOf(cells: readonly (readonly string[])[]): number[] {
  return cells.reduce<number[]>(
    (widest, row) => row.map((cell, column) => Math.max(widest[column] ?? 0, columnsOf(cell))),
    [],
  );
}

/** Which columns have texts, and not only words. */
function textColumns(rows: readonly (readonly string[])[]): boolean[] {
  return (rows[0] ?? []).map((_, column) => rows.some((row) => /\s/.test(row[column] ?? '')));
}

/** Columns by which a text is still recognised. */
const leastOfText = 24;

/** A table, or where the terminal is too narrow for all of it the lines of a list, in which nothing is cut that is needed. */
export function tableOrList(
  rows: readonly (readonly string[])[],
  list: readonly string[],
  width = Infinity,
): string {
  const whole = table(rows);
  return whole.split('\n').some((line) => columnsOf(line) > width) ? list.join('\n') : whole;
}

/** Takes what a line has too much from the widest columns, of texts first, but leaves each something to be recognised by. */
function narrow(widths: number[], isText: readonly boolean[], width: number): void {
  const least = 8;
  for (;;) {
    const total = widths.reduce((sum, each) => sum + each + 2, -2);
    const texts = widths.filter((each, column) => isText[column] && each > least);
    const widest = Math.max(...(texts.length > 0 ? texts : widths));
    if (total <= width || widest <= least) return;
    const column = widths.findIndex((each, n) => each === widest && (texts.length === 0 || isText[n]));
    widths[column] = Math.max(least, widest - (total - width), Math.ceil(widest / 2));
  }
}

/**
 * Facts as aligned lines, `name  value`. Where a terminal is narrower than `width`, values go on below at a space, or are
 * below their name: an address that is cut leads nowhere.
 */
export function facts(rows: readonly (readonly [name: string, value: string])[], width = Infinity): string {
  const most = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.flatMap(([name, value]) => {
    const text = printable(value, 1000);
    const beside = wrapped(text, width - most - 2);
    return beside.some((line) => columnsOf(line) > width - most - 2)
      ? [name, ...wrapped(text, width - 2).map((line) => `  ${line}`)]
      : beside.map((line, n) => `${(n === 0 ? name : '').padEnd(most)}  ${line}`);
  });
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** Texts and what they mean, beside each other, or where a terminal is too narrow for that below each other. */
export function glossary(
  rows: readonly (readonly [term: string, meaning: string])[],
  width?: number,
): string {
  const most = Math.max(...rows.map(([term]) => term.length));
  const room = (width ?? Infinity) - most - 2;
  const isBeside = room >= 30;
  const lines = rows.flatMap(([term, meaning]) =>
    isBeside
      ? wrapped(meaning, room).map((line, n) => `${(n === 0 ? term : '').padEnd(most)}  ${line}`)
      : [term.trimEnd(), ...wrapped(meaning, (width ?? 0) - 8).map((line) => `        ${line}`)],
  );
  return lines.join('\n');
}

/** Lines that go on at a word, below their indent, where a terminal is narrower: prose that the terminal would cut. */
export function fitted(text: string, width = Infinity): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const indent = /^ */.exec(line)?.[0] ?? '';
      return wrapped(line.slice(indent.length), width - indent.length).map((each) => indent + each);
    })
    .join('\n');
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
