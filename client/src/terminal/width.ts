/** Two columns each: East Asian Wide and Fullwidth (UAX #11), and what is shown as an emoji. */
const wide =
  /^(?:[\u1100-\u115F\u231A\u231B\u2329\u232A\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{1F200}-\u{1F2FF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|.\uFE0F)/u;
const nothing = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for one character each: an accent stays with its letter, and a family of emoji is one. */
function characters(text: string): string[] {
  if (isPlain(text)) return text.split('');
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** The columns of a terminal that a line of text takes. */
export function columnsOf(text: string): number {
  if (isPlain(text)) return text.length;
  return characters(text).reduce((sum, each) => sum + columnsOfOne(each), 0);
}

function columnsOfOne(character: string): number {
  if (wide.test(character)) return 2;
  // Vowels that stand beside their letter (Thai, Devanagari, Tamil) and letters that join take a column each.
  return Array.from(character).filter((each) => !nothing.test(each)).length;
}

/** The text, and spaces up to so many columns. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - columnsOf(text)));
}

/** A text of at most so many columns: what is left out is left out of its middle, since names end in what tells them apart. */
export function cutInMiddle(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  const all = characters(text);
  if (columns < 3) return fitting(all, columns).join('');
  const end = fitting(all.toReversed(), Math.floor((columns - 1) / 2)).toReversed();
  const begin = fitting(all, columns - 1 - columnsOf(end.join('')));
  return `${begin.join('')}…${end.join('')}`;
}

/** The first of the characters that have room in so many columns. */
function fitting(all: readonly string[], columns: number): string[] {
  const taken: string[] = [];
  let left = columns;
  for (const each of all) {
    left -= columnsOfOne(each);
    if (left < 0) break;
    taken.push(each);
  }
  return taken;
}

/**
 * Words in lines of at most so many columns, where no word is longer; each line but the first begins with `indent`. A text
 * that has no spaces between its words, such as Japanese, goes on at any of its wide characters.
 */
export function wrapped(text: string, columns: number, indent = ''): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && columnsOf(longer) > columns - (lines.length === 0 ? 0 : indent.length)) {
      lines.push(line);
      line = word;
    } else line = longer;
    for (let end; (end = breakIn(line, columns - (lines.length === 0 ? 0 : indent.length))) > 0;) {
      lines.push(line.slice(0, end));
      line = line.slice(end);
    }
  }
  return [...lines, line].map((each, n) => (n === 0 ? each : indent + each));
}

/** Where a line of more than so many columns may end beside a wide character; 0: nowhere, or it has room. */
function breakIn(line: string, columns: number): number {
  if (isPlain(line) || columnsOf(line) <= columns) return 0;
  const all = characters(line);
  let count = fitting(all, columns).length;
  // No line begins with what ends a sentence or a bracket.
  while (
    (count > 0 && !(isWide(all[count - 1]) || isWide(all[count]))) ||
    /^[\p{Po}\p{Pe}\p{Pf}]/u.test(all[count] ?? '')
  )
    count--;
  return all.slice(0, Math.max(0, count)).join('').length;
}

function isWide(character = ''): boolean {
  return wide.test(character);
}

function isPlain(text: string): boolean {
  return /^[\x20-\x7E]*$/.test(text);
}
