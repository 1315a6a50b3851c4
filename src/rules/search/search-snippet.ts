import { isCommonWord } from './english.ts';
import {
  asWritten,
  fold,
  isAscii,
  isUnspaced,
  unspaced,
  type Clause,
  type SearchQuery,
} from './search-terms.ts';

/** A piece of text, and whether it is what was looked for. */
export type SnippetPart = { readonly text: string; readonly hit: boolean };

/** Length of a snippet, and how much of it precedes the first hit, in UTF-16 units. */
const snippetLength = 240;
const leadLength = 60;
/** How much of a text is searched, in UTF-16 units; how many occurrences are examined, and how many count. */
export const longestLook = 20_000;
const mostLooks = 1000;
const mostHits = 200;

/**
 * The passage of a plain text where most hits stand together, on one line and marked; its beginning if there are none.
 * The work for a text is bounded, whatever is in it.
 */
export function snippetOf(text: string, query: SearchQuery): SnippetPart[] {
  const plain = composed(text.slice(0, longestLook));
  const hits = findHits(plain, query);
  const first = densest(hits);
  const from = first === undefined ? 0 : wordAfter(plain, first.at - leadLength, first.at);
  const shown = hits.filter(({ at, end }) => at >= from && end <= from + snippetLength);
  const to = Math.max(shown.at(-1)?.end ?? from, wordBefore(plain, from + snippetLength));
  const parts = markHits(plain.slice(0, to), from, shown);
  if (from > 0) parts.unshift({ text: '… ', hit: false });
  if (to < plain.length) parts.push({ text: ' …', hit: false });
  return parts;
}

/** A snippet as plain text with ** around every hit. */
export function markedSnippet(parts: readonly SnippetPart[]): string {
  return parts.map(({ text, hit }) => (hit ? `**${text}**` : text)).join('');
}

/** NFC, piece by piece: to put a long run of marks in order takes quadratic time. */
function composed(text: string): string {
  if (isAscii(text)) return text;
  let result = '';
  for (let at = 0; at < text.length; at += pieceLength)
    result += text.slice(at, at + pieceLength).normalize('NFC');
  return result;
}

const pieceLength = 64;

type Hit = { readonly at: number; readonly end: number; readonly needle: string };
/** Words that follow one another; the last may go on. */
type Needle = { readonly words: readonly string[]; readonly prefix: boolean };

function findHits(text: string, query: SearchQuery): Hit[] {
  const sought = [...query.all, ...(query.some?.clauses ?? [])].flatMap(needlesOf);
  // Words such as 'the' are marked only where nothing else is looked for.
  const telling = sought.filter(({ words }) => words.some((word) => !isCommonWord(word)));
  const needles = new Map(
    (telling.length > 0 ? telling : sought).map((each) => [each.words.join(' '), each]),
  );
  const folded = foldInPlace(text);
  const looks = Math.ceil(mostLooks / [...needles.values()].flatMap(({ words }) => words).length);
  const found = [...needles.values()].flatMap((needle) => {
    const inOrder = hitsOf(needle, folded, looks);
    if (inOrder.length > 0 || needle.words.length === 1) return inOrder;
    return singly(needle).flatMap((each) => hitsOf(each, folded, looks));
  });
  found.sort((a, b) => a.at - b.at || b.end - a.end);
  const hits: Hit[] = [];
  for (const hit of found) {
    if (hits.length === mostHits) break;
    if (hit.at >= (hits.at(-1)?.end ?? 0)) hits.push(hit);
  }
  return hits;
}

function hitsOf({ words, prefix }: Needle, folded: string, looks: number): Hit[] {
  const hits: Hit[] = [];
  const [first = '', ...rest] = words;
  let at = folded.indexOf(first);
  for (let look = 0; at !== -1 && look < looks; look++) {
    let end = endOfHit(folded, at, first, prefix && rest.length === 0);
    for (const [i, word] of rest.entries()) {
      const next = end === null ? null : nextWord(folded, end);
      const follows = next !== null && folded.startsWith(word, next);
      end = follows ? endOfHit(folded, next, word, prefix && i === rest.length - 1) : null;
    }
    if (end !== null) hits.push({ at, end, needle: words.join(' ') });
    at = folded.indexOf(first, end ?? at + first.length);
  }
  return hits;
}

/** Where the next word begins, if only a sign or two part it. */
function nextWord(folded: string, end: number): number {
  let next = end;
  while (next < end + longestGap && !/[\p{L}\p{N}]/u.test(folded.charAt(next))) next++;
  return next;
}

const longestGap = 4;

/** What a clause looks like in a text: its words, and pairs of characters joined again to what they were. */
function needlesOf({ terms, prefix, or = [] }: Clause): Needle[] {
  const words: string[] = [];
  for (const term of terms) {
    const before = words.at(-1) ?? '';
    const [first = '', ...rest] = Array.from(term);
    if (isUnspaced.test(term) && isUnspaced.test(before) && before.endsWith(first))
      words[words.length - 1] = before + rest.join('');
    else words.push(term);
  }
  const others = or.map((text) => ({ words: text.split(' '), prefix: false }));
  return [{ words: words.map(asWritten), prefix }, ...others].flatMap(withLigatures);
}

/** Also as `ß` and the like, which stay as they are in a text that is compared in its place. */
function withLigatures(needle: Needle): Needle[] {
  const words = needle.words.map((word) => word.replace(/ss|ae|oe/g, (pair) => ligatures[pair] ?? pair));
  return words.join() === needle.words.join() ? [needle] : [needle, { ...needle, words }];
}

const ligatures: Readonly<Record<string, string>> = { ss: 'ß', ae: 'æ', oe: 'œ' };

/** What stands nowhere in its order, word by word. */
function singly({ words, prefix }: Needle): Needle[] {
  return words
    .map((word, i) => ({ words: [word], prefix: prefix && i === words.length - 1 }))
    .filter(({ words: [word = ''] }) => !isCommonWord(word));
}

/** Where a hit ends; null where it is only a part of a word. */
function endOfHit(folded: string, at: number, needle: string, prefix: boolean): number | null {
  if (isUnspaced.test(needle)) return at + needle.length;
  if (at > 0 && isOfWord(folded, at - 1)) return null;
  let end = at + needle.length;
  if (!isOfWord(folded, end)) return end;
  if (!prefix) return null;
  while (end < at + longestHit && isOfWord(folded, end)) end++;
  return end;
}

const longestHit = 100;

const ofWord = new RegExp(String.raw`^[[\p{L}\p{N}\p{M}]--${unspaced}]$`, 'v');

/** Cache by UTF-16 unit: 1 if it belongs to a word, 2 if not, 0 if unknown. A pattern takes ten times as long. */
const wordUnits = new Uint8Array(0x10000);

/** Whether a word goes on at this unit. No character of two units is taken for a letter: most are emoji. */
function isOfWord(text: string, at: number): boolean {
  if (at >= text.length) return false;
  const unit = text.charCodeAt(at);
  if (wordUnits[unit] === 0) wordUnits[unit] = ofWord.test(String.fromCharCode(unit)) ? 1 : 2;
  return wordUnits[unit] === 1;
}

/** The text as it is compared, but each character in its place: one that unfolds to several stays as it is. */
function foldInPlace(text: string): string {
  const lower = text.toLowerCase();
  if (isAscii(text)) return lower;
  const units = new Uint16Array(text.length);
  const cased = lower.length === text.length ? lower : text;
  for (let at = 0; at < units.length; at++) units[at] = foldUnit(cased.charCodeAt(at));
  return Buffer.from(units.buffer).toString('utf16le');
}

/** Cache of folded UTF-16 units; 0 if unknown. */
const foldedUnits = new Uint16Array(0x10000);

function foldUnit(unit: number): number {
  const known = foldedUnits[unit];
  if (known !== undefined && known !== 0) return known;
  // Halves of pairs, Han and Hangul are compared as they are, so they need not be folded to see that.
  const mayFold = unit < 0x3400 || (unit > 0x9fff && unit < 0xac00) || unit > 0xdfff;
  const result = mayFold ? fold(String.fromCharCode(unit)) : '';
  return (foldedUnits[unit] = result.length === 1 ? result.charCodeAt(0) : unit);
}

/** The hit from which on most different ones follow within a snippet. */
function densest(hits: readonly Hit[]): Hit | undefined {
  let best = hits[0];
  let most = 1;
  let next = 0;
  const near = new Map<string, number>();
  for (const hit of hits) {
    const end = hit.at + snippetLength - leadLength;
    for (let other = hits[next]; other && other.end <= end; other = hits[++next])
      near.set(other.needle, (near.get(other.needle) ?? 0) + 1);
    if (near.size > most) [best, most] = [hit, near.size];
    const left = (near.get(hit.needle) ?? 1) - 1;
    if (left > 0) near.set(hit.needle, left);
    else near.delete(hit.needle);
  }
  return best;
}

/** Start of the first word after a place, before a limit; the place itself in a text without spaces. */
function wordAfter(text: string, place: number, limit: number): number {
  if (place <= 0) return 0;
  const space = /\s\S/u.exec(text.slice(place, limit + 1));
  return space === null ? atCharacter(text, place) : place + space.index + 1;
}

/** End of the last word before a place. */
function wordBefore(text: string, place: number): number {
  if (place >= text.length) return text.length;
  const tail = /\s\S*$/u.exec(text.slice(place - leadLength, place));
  return tail === null ? atCharacter(text, place) : place - leadLength + tail.index;
}

function atCharacter(text: string, place: number): number {
  const unit = text.charCodeAt(place);
  return unit >= 0xdc00 && unit <= 0xdfff ? place + 1 : place;
}

function markHits(text: string, from: number, hits: readonly Hit[]): SnippetPart[] {
  const parts: SnippetPart[] = [];
  let at = from;
  for (const hit of [...hits, null]) {
    // Between blocks that end without a sign, such as headings, items and cells.
    const before = text
      .slice(at, hit?.at)
      .replace(/(?<=^|[^\p{P}\s])[^\S\n]*\n\s*/gu, ' · ')
      .replace(/\s+/gu, ' ');
    if (before !== '') parts.push({ text: before, hit: false });
    if (hit === null) break;
    parts.push({ text: text.slice(hit.at, hit.end), hit: true });
    at = hit.end;
  }
  return parts;
}
