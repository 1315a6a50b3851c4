import type { Token } from 'markdown-it';
import { plainText } from './tokens.ts';

/** When a block scrolls sideways: then alone it is a stop for the Tab key. No script can ask how wide a screen is. */
export type Scrolls = 'never' | 'on narrow screens' | 'always';

/** Columns that the narrowest screen has, of 320 px; that one of 768 px has; and that it has within other blocks. */
const narrowest = 32;
const wide = 80;
const within = 48;

/** Of what is so many columns wide, or `least` where lines break. */
function scrollsAt(columns: number, isOutermost: boolean, least = columns): Scrolls {
  if (columns <= narrowest) return 'never';
  return least <= (isOutermost ? wide : within) ? 'on narrow screens' : 'always';
}

/** Code, whose lines do not break. */
export function codeScrolls(code: string, isOutermost: boolean): Scrolls {
  return scrollsAt(columnsOf(code.replaceAll('\t', '    ')), isOutermost);
}

/** A displayed formula: signs stand apart, and a command is one of them. */
export function formulaScrolls(tex: string, isOutermost: boolean): Scrolls {
  const rows = tex.replace(/\n/g, '').replaceAll('\\\\', '\n');
  const signs = rows
    .replace(/\\(?:begin|end)\{[A-Za-z]+\*?\}/g, '')
    .replace(/\\(?:[A-Za-z]+|.)/g, 'x')
    .replace(/[{}&^_ ]/g, '');
  return scrollsAt(1.5 * columnsOf(signs), isOutermost);
}

/** Room that a picture in a cell may take, and the space between cells. */
const pictureColumns = 40;
const betweenCells = 2;

/** The table that opens here. Its cells break between words, but not within code. */
export function tableScrolls(tokens: readonly Token[], at: number): Scrolls {
  const most: number[] = [];
  const least: number[] = [];
  let column = -1;
  for (let next = at; tokens[next] && tokens[next]?.type !== 'table_close'; next++) {
    const { type, children } = tokens[next] as Token;
    if (type === 'tr_open') column = -1;
    if (type === 'th_open' || type === 'td_open') column++;
    if (type !== 'inline' || children === null) continue;
    const text = plainText(children);
    let picture = 0;
    let unbroken = columnsOf(text.replace(/\s+/g, '\n'));
    for (const { type: part, content } of children) {
      if (part === 'image') picture = pictureColumns;
      if (part === 'code_inline') unbroken = Math.max(unbroken, columnsOf(content));
    }
    most[column] = Math.max(most[column] ?? 0, columnsOf(text) + picture);
    least[column] = Math.max(least[column] ?? 0, unbroken, picture);
  }
  const total = (widths: readonly number[]) => widths.reduce((sum, width) => sum + width + betweenCells, 0);
  return scrollsAt(total(most), tokens[at]?.level === 0, total(least));
}

/** Columns of the longest line; letters that have two, or may have, count so. */
function columnsOf(text: string): number {
  return text.split('\n').reduce((most, line) => Math.max(most, line.replace(wideLetters, 'xx').length), 0);
}

const wideLetters = /[^\0-\u02FF]/gu;

/** Opens a block that may scroll. What scrolls has a name, which tells it from other regions of the page. */
export function scrollingBlock(className: string, name: string, scrolls: Scrolls): string {
  if (scrolls === 'never') return `<div class="${className}">`;
  const fits = scrolls === 'always' ? '' : ' fits';
  return `<div class="${className}${fits}" role="region" aria-label="${name}" tabindex="0">`;
}

/** HTML of a text whose lines do not break. */
export function preformatted(html: string, scrolls: Scrolls): string {
  const fits = scrolls === 'on narrow screens' ? ' class="fits"' : '';
  return `<pre${scrolls === 'never' ? '' : `${fits} tabindex="0"`}>${html}</pre>\n`;
}
