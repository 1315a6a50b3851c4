import type { Token } from 'markdown-it';
import type { Places } from '../parse/places.ts';

/** Where a character of an inline token's text stands in the source. Cheap when asked in ascending order. */
export type Origin = (offset: number) => number;

/** Where the text of the inline token at this index comes from: lines without their marks, or part of one line. */
export function originOf(tokens: readonly Token[], at: number, places: Places): Origin {
  const [holder, inline] = [tokens[at - 1], tokens[at]];
  const content = inline?.content ?? '';
  const line = inline?.map?.[0] ?? 0;
  if (holder?.type === 'th_open' || holder?.type === 'td_open') return cellOrigin(tokens, at, places);
  if (holder?.type === 'summary_open') return within(places, line, /^.*?<summary>\s*/i);
  if (/^callout_(?:title|kind)_open$/.test(holder?.type ?? ''))
    return within(places, line, /^\[![a-z]+\][-+]?[ \t]*/i);
  if (holder?.markup.startsWith('#') === true) return within(places, line, /^#+[ \t]*/);
  return linesOrigin(content, line, places);
}

/** Each line of the text is the end of a line of the source. */
function linesOrigin(content: string, firstLine: number, { source, ends }: Places): Origin {
  const lastLine = ends.length;
  let line = firstLine - 1;
  let [start, end, shift] = [0, -1, 0];
  return (offset) => {
    if (offset < start) [line, start, end] = [firstLine - 1, 0, -1];
    while (offset > end && line < lastLine) {
      line++;
      start = end + 1;
      end = content.indexOf('\n', end + 1);
      let sourceEnd = ends[line] ?? source.length;
      if (end === -1) {
        end = content.length;
        // The text as a whole has no white space at its end.
        while (/[ \t]/.test(source[sourceEnd - 1] ?? '')) sourceEnd--;
      }
      shift = sourceEnd - end;
    }
    return offset + shift;
  };
}

/** The text stands in one piece behind this mark. */
function within({ source, starts, ends }: Places, line: number, mark: RegExp): Origin {
  const start = starts[line] ?? 0;
  const shift = start + (mark.exec(source.slice(start, ends[line]))?.[0].length ?? 0);
  return (offset) => offset + shift;
}

/** The text of a cell: `\|` stands there as `|`. */
function cellOrigin(tokens: readonly Token[], at: number, { source, starts, ends }: Places): Origin {
  let row = at;
  let cell = -1;
  for (; tokens[row]?.type !== 'tr_open'; row--) if (/^t[hd]_open$/.test(tokens[row]?.type ?? '')) cell++;
  const line = tokens[row]?.map?.[0] ?? 0;
  const start = starts[line] ?? 0;
  const text = source.slice(start, ends[line]);
  const [from] = cellRange(text, cell);
  const first = start + from + (/^\s*/.exec(text.slice(from))?.[0].length ?? 0);
  let [inSource, inCell] = [first, 0];
  return (offset) => {
    if (offset < inCell) [inSource, inCell] = [first, 0];
    for (; inCell < offset; inCell++, inSource++) if (source.startsWith('\\|', inSource)) inSource++;
    return inSource;
  };
}

/** Where a cell of a row begins, from 0, and where the row goes on behind its `|`; both at its end if it has none. */
export function cellRange(row: string, cell: number): [from: number, next: number] {
  let from = /^\s*\|?/.exec(row)?.[0].length ?? 0;
  for (let at = 0; ; at++) {
    let end = from;
    while (end < row.length && (row[end] !== '|' || row[end - 1] === '\\')) end++;
    if (at === cell || end === row.length) return [from, Math.min(end + 1, row.length)];
    from = end + 1;
  }
}
