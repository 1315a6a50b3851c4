import { contentBytes } from '../post-fields.ts';
import { normalizeNewlines } from '../text.ts';

/** A replacement in a text: `old` must occur exactly once, or with `all` at least once. */
export type Edit = { readonly old: string; readonly new: string; readonly all?: boolean };

/** A change of a text that is not sent whole: edits in their order, then what is appended. */
export type TextChange = { readonly edits?: readonly Edit[]; readonly append?: string };

/** Why an edit cannot be applied, by its place in the list. */
export type EditFault = {
  readonly field: string;
  readonly message: string;
  /** Where `old` does not occur: what the text has that is most like it. */
  readonly near?: { readonly line: number; readonly text: string };
  /** Where it occurs too often: the first lines in which it does. */
  readonly lines?: readonly number[];
};

export type Edited =
  | { readonly text: string }
  /** Each edit that cannot be applied to what those before it leave. */
  | { readonly faults: readonly EditFault[] }
  /** The field with which the text becomes too large, and the bytes that it would have. */
  | { readonly tooLarge: { readonly field: string; readonly bytes: number } };

/** Failed edits for which the nearest line is looked up. */
const mostNear = 3;
const mostLinesNamed = 10;

/** Applies edits in their order, each to what the earlier left: exactly, all or nothing. */
export function applyChange(content: string, { edits = [], append }: TextChange): Edited {
  const faults: EditFault[] = [];
  let text = content;
  let bytes = Buffer.byteLength(text);
  for (const [i, edit] of edits.entries()) {
    const [old, replacement] = [normalizeNewlines(edit.old), normalizeNewlines(edit.new)];
    const field = `edits[${i}]`;
    const found = occurrences(text, old);
    if (found.length === 0 || (found.length > 1 && edit.all !== true)) {
      faults.push(faultOf(text, `${field}.old`, old, found, faults.length < mostNear));
      continue;
    }
    bytes += found.length * (Buffer.byteLength(replacement) - Buffer.byteLength(old));
    if (bytes > contentBytes) return { tooLarge: { field, bytes } };
    text = replaced(text, old.length, found, replacement);
  }
  if (faults.length > 0) return { faults };
  if (append === undefined) return { text };
  const before = text.slice(0, endOf(text));
  text = `${before}${before === '' ? '' : '\n\n'}${normalizeNewlines(append)}`;
  bytes = Buffer.byteLength(text);
  return bytes > contentBytes ? { tooLarge: { field: 'append', bytes } } : { text };
}

/** Where the line ends at the end of a text begin. An expression for it would look from each line end of the text. */
function endOf(text: string): number {
  let end = text.length;
  while (text[end - 1] === '\n') end--;
  return end;
}

/** Where a text occurs, from the left, without overlaps. */
function occurrences(text: string, wanted: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length))
    found.push(at);
  return found;
}

function replaced(text: string, length: number, found: readonly number[], replacement: string): string {
  const parts: string[] = [];
  let from = 0;
  for (const at of found) {
    parts.push(text.slice(from, at), replacement);
    from = at + length;
  }
  return parts.join('') + text.slice(from);
}

function faultOf(
  text: string,
  field: string,
  old: string,
  found: readonly number[],
  isLookedUp: boolean,
): EditFault {
  if (found.length > 1)
    return {
      field,
      message: `occurs ${found.length} times; add context or send all:true`,
      lines: lineNumbers(text, found.slice(0, mostLinesNamed)),
    };
  const near = isLookedUp ? nearestLine(text, old) : null;
  return { field, message: 'occurs 0 times', ...(near === null ? {} : { near }) };
}

function lineNumbers(text: string, offsets: readonly number[]): number[] {
  let [line, at] = [1, 0];
  return offsets.map((offset) => {
    for (; at < offset; at++) if (text[at] === '\n') line++;
    return line;
  });
}

/** Characters of `old` that are compared, and most of what is shown. */
const mostCompared = 200;
const mostShown = 400;

/** The line that shares most three-character pieces with the longest line of `old`, if at least half of them. */
function nearestLine(text: string, old: string): NonNullable<EditFault['near']> | null {
  const longest = old
    .split('\n')
    .reduce((best, line) => (line.trim().length > best.length ? line.trim() : best), '');
  const wanted = new Set(pieces(alike(longest.slice(0, mostCompared))));
  const lines = text.split('\n');
  let [best, bestShared] = [-1, 0];
  for (const [i, line] of lines.entries()) {
    const shared = new Set(pieces(alike(line)).filter((piece) => wanted.has(piece))).size;
    if (shared > bestShared) [best, bestShared] = [i, shared];
  }
  if (best === -1 || 2 * bestShared < wanted.size) return null;
  return { line: best + 1, text: around(lines, best, wanted) };
}

/** The line and one on each side, cut around what is like the wanted. */
function around(lines: readonly string[], best: number, wanted: ReadonlySet<string>): string {
  const shown = lines.slice(Math.max(0, best - 1), best + 2).join('\n');
  if (shown.length <= mostShown) return shown;
  const line = lines[best] ?? '';
  const before = best === 0 ? 0 : (lines[best - 1]?.length ?? 0) + 1;
  const middle = before + densest(line, wanted) + mostCompared / 2;
  const from = Math.min(Math.max(0, Math.round(middle - mostShown / 2)), shown.length - mostShown);
  const cut = shown.slice(from, from + mostShown);
  // No half of a surrogate pair at either end.
  return cut.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '');
}

/** Where in a line so many characters begin that share most pieces with the wanted. */
function densest(line: string, wanted: ReadonlySet<string>): number {
  const hits = pieces(alike(line)).map((piece) => Number(wanted.has(piece)));
  let [sum, best, bestAt] = [0, -1, 0];
  for (const [i, hit] of hits.entries()) {
    sum += hit - (hits[i - mostCompared] ?? 0);
    if (sum > best) [best, bestAt] = [sum, Math.max(0, i - mostCompared + 1)];
  }
  return bestAt;
}

function pieces(text: string): string[] {
  if (text.length < 3) return [text];
  return Array.from({ length: text.length - 2 }, (_, i) => text.slice(i, i + 3));
}

/** Case, white space, quotes and dashes made alike, each character in its place. */
function alike(text: string): string {
  const lower = text.toLowerCase();
  return (lower.length === text.length ? lower : text)
    .replace(/\s/g, ' ')
    .replace(/["`´‘’‚‛“”„‟«»‹›′″]/g, "'")
    .replace(/[‐‑‒–—―−]/g, '-');
}
