import { invisible, invisibleRuns, shapingPart, sweep, type HiddenText } from './text/hidden.ts';
import { warning, type Warning } from './warnings.ts';

/** Length in Unicode code points; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

/** The part of a text between two places, counted in code points. What follows is not looked at. */
export function sliceCodePoints(text: string, from: number, to: number): string {
  const begin = placeOf(text, from, 0);
  return text.slice(begin, placeOf(text, to - from, begin));
}

/** The place in a text that lies so many code points after another one, or its end. */
function placeOf(text: string, points: number, after: number): number {
  let at = after;
  for (let count = 0; count < points && at < text.length; count++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/** What a name is sorted by: its letters, whatever their case and accents. Stored, so that a change needs a new column. */
export function nameKey(name: string): string {
  return withoutMarks(name).toLowerCase();
}

/**
 * Letters without accents. Marks of their own go first: to put a long run of them in order takes time that grows with
 * its square, a minute for 512 KiB.
 */
export function withoutMarks(text: string): string {
  return text
    .replace(/\p{M}+/gu, '')
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '');
}

/** With every line ending, CR LF or a lone CR, as LF: the forms that CommonMark reads alike. */
export function normalizeNewlines(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

/**
 * Text from outside, fit for a message or log: cut to so many code points, invisible ones written as `\u{…}`, but for
 * those of an emoji or of a script whose letters join.
 */
export function printable(text: string, longest: number): string {
  const shown = Array.from(text.slice(0, 2 * longest))
    .slice(0, longest)
    .join('');
  const escaped = shown.replace(/[\p{C}\p{DI}\p{Zl}\p{Zp}]+/gu, (run: string, at: number) => {
    const shaping = shapingPart(shown, run, at);
    const others = Array.from(run.slice(shaping.length));
    return shaping + others.map((each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`).join('');
  });
  return shown.length < text.length ? `${escaped}…` : escaped;
}

/** The same in quotation marks: how every message names a value, but for those about settings. */
export function quoted(text: string, longest = 64): string {
  return `'${printable(text, longest)}'`;
}

/** The value of a setting for a message to the operator: a JSON string, cut. */
export function settingValue(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}

/**
 * Which character the text may not hold, as a predicate; null if none: NUL, lone surrogates, control characters and
 * noncharacters, which no XML feed could carry; on one line also line breaks and tabs.
 */
export function controlFault(text: string, { multiline = true } = {}): string | null {
  if (multiline && text.isWellFormed() && !maybeNotMultiline.test(text)) return null;
  const found = (multiline ? notMultiline : notText).exec(text);
  if (found === null) return null;
  const place = `at character ${codePoints(text.slice(0, found.index)) + 1}`;
  const code = (found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  if (/[\t\n\r\u2028\u2029]/.test(found[0]))
    return `contains a line break or tab (U+${code}) ${place}; write it on one line`;
  const isControl = /\p{Cc}/u.test(found[0]);
  const other = /\p{Cs}/u.test(found[0]) ? 'half of a surrogate pair' : 'a code point that is no character';
  return `contains ${isControl ? 'a control character' : other} (U+${code}) ${place}; remove it`;
}

const notText = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/u;
const notMultiline = /[[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]--[\t\n\r]]/v;
/**
 * By code units, for a text without lone surrogates: all that the other finds, and some that it does not, as U+1F7FE. It
 * takes a quarter of the time where a character is beyond Latin-1.
 */
const maybeNotMultiline = /[^\t\n\r -~\u00a0-\udffd\ue000-\ufdcf\ufdf0-\ufffd]/;

/** Invisible text that could carry instructions to agents who read it, by kind; empty if there is none. */
export function hiddenText(text: string): HiddenText[] {
  return sweep(text).found;
}

/** What is hidden in a name, title, tag or bio, as a predicate; null if nothing. */
export function hiddenTextFault(text: string): string | null {
  const found = hiddenText(text);
  if (found.length > 0) return `contains invisible text (${found.map(counted).join(', ')}); remove it`;
  return text !== '' && isBlank(text) ? 'has no visible character' : null;
}

/** Whether a text shows nothing. */
export function isBlank(text: string): boolean {
  return blank.test(text);
}

/** What is wrong with a name, title, tag or bio, as a predicate; null if nothing. */
export function lineFault(text: string): string | null {
  return controlFault(text, { multiline: false }) ?? hiddenTextFault(text);
}

/** The text without what is hidden in it, with a warning for each kind. Idempotent if it has no lone surrogates. */
export function stripHiddenText(text: string): { text: string; warnings: Warning[] } {
  const { text: clean, found } = sweep(text);
  const warnings = found.map((hidden) =>
    warning('hidden_text', `removed invisible text: ${counted(hidden)}`),
  );
  return { text: clean, warnings };
}

const blank = /^[\p{DI}\p{White_Space}\u2800]*$/u;

function counted({ kind, count }: HiddenText): string {
  return `${count} ${count === 1 ? kind.slice(0, -1) : kind}`;
}

/** A warning when line breaks arrived as the two characters `\n`; null if the content looks whole. */
export function looksMangled(content: string): Warning | null {
  if (/[\n\r]/.test(content) || !content.includes('\\n')) return null;
  return warning(
    'escaped_twice',
    "content has '\\n' written out and not one line break; it was probably escaped twice on its way",
  );
}

/** Distinct API keys (UUIDs v4 in any case) in the text, in lower case, also one in the tail of another. */
export function apiKeyCandidates(text: string): string[] {
  const found = new Set<string>();
  // Every key has these two characters, which are found far sooner than its first digits.
  for (let at = text.indexOf('-4'); at !== -1; at = text.indexOf('-4', at + 1)) {
    const start = at - beforeVersion;
    // The other hyphens, far sooner than the whole pattern.
    if (start < 0 || text[start + 8] !== '-' || text[start + 18] !== '-' || text[start + 23] !== '-')
      continue;
    apiKey.lastIndex = start;
    if (apiKey.test(text)) found.add(text.slice(start, start + uuidLength).toLowerCase());
  }
  return [...found];
}

/**
 * The same of several texts, and tokens of mailed links: as they are, as readers see them (without what is invisible),
 * and as anybody would put a key together again.
 */
export function keysToBeSeen(texts: readonly string[]): string[] {
  const seen = texts.flatMap((text) => {
    const visible = invisible.test(text) ? text.replace(invisibleRuns, '') : text;
    return [...new Set([text, visible, keysMended(visible)])];
  });
  return [...new Set(seen.flatMap((text) => [...apiKeyCandidates(text), ...linkTokens(text)]))];
}

/** Characters of a token of a mailed link: 32 bytes in base64url. */
const linkTokenLength = 43;

/** Whether it is of base64url; what it is, beyond an end of the text, is NaN. */
function inLinkToken(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x5f;
}

/** What may be tokens of mailed links. Only every 43rd character is looked at, where none are near. */
function linkTokens(text: string): string[] {
  const found: string[] = [];
  const isPart = (at: number) => inLinkToken(text.charCodeAt(at));
  for (let at = linkTokenLength - 1; at < text.length; at += linkTokenLength) {
    if (!isPart(at)) continue;
    let from = at;
    while (isPart(from - 1)) from--;
    while (isPart(at)) at++;
    if (at - from === linkTokenLength) found.push(text.slice(from, at));
  }
  return found;
}

/** With hyphens where an address or a typesetter has something else, and in one line what was broken within a key. */
function keysMended(text: string): string {
  const plain = text.includes('%') ? text.replace(escaped, (code) => decodeURIComponent(code)) : text;
  return withoutBreaks(plain.replace(otherHyphens, '-'));
}

/** Of the characters that a key can have. */
const escaped = /%(?:2d|3\d|[46][1-9a-f]|[57][\da]|5f)/gi;
const otherHyphens = /[\u2010\u2011\u2212\uFE63\uFF0D]/g;

/** The text without line breaks, and what indents or quotes the next line, where two characters of a key stand on both sides. */
function withoutBreaks(text: string): string {
  let joined = '';
  let kept = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    let [from, to] = [at, at + 1];
    while (isSpaceOrTab(text.charCodeAt(from - 1))) from--;
    if (!inKey(text.charCodeAt(from - 1)) || !inKey(text.charCodeAt(from - 2))) continue;
    for (let code = text.charCodeAt(to); isSpaceOrTab(code) || code === 0x3e; code = text.charCodeAt(to))
      to++;
    if (!inKey(text.charCodeAt(to)) || !inKey(text.charCodeAt(to + 1))) continue;
    joined += text.slice(kept, from);
    kept = to;
  }
  return joined + text.slice(kept);
}

function inKey(code: number): boolean {
  const lower = code | 0x20;
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66) || code === 0x2d;
}

function isSpaceOrTab(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** The text with words in place of all that looks like an API key or token. Ids do not: they are of other versions. */
export function withoutKeys(text: string): string {
  return text.replace(apiKeys, '(a key or token)');
}

const apiKey = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/iy;
/** Keys, also where their hyphens are other ones, escaped, or beside a break or something invisible. */
const apiKeys = new RegExp(
  ['[0-9a-f]{8}', '[0-9a-f]{4}', '4[0-9a-f]{3}', '[89ab][0-9a-f]{3}', '[0-9a-f]{12}'].join(
    String.raw`[\s\p{DI}]{0,20}(?:[\-\u2010\u2011\u2212\uFE63\uFF0D]|%2d)[\s\p{DI}>]{0,20}`,
  ),
  'giu',
);
/** Characters of a UUID, and of it before the hyphen that stands at its version. */
const uuidLength = 36;
const beforeVersion = 13;

/**
 * A tag as it is stored and compared: NFC, lower case, trimmed, runs of white space as one space. One that is far too long
 * for a tag stays in the form that it has: see {@link withoutMarks}.
 */
export function normalizeTag(tag: string): string {
  const plain = tag.toLowerCase().trim().replace(/\s+/g, ' ');
  return plain.length > longestOfTag ? plain : plain.normalize('NFC');
}

/** UTF-16 units from which none that NFC could leave would be 40 characters. */
const longestOfTag = 1_000;

/**
 * What is wrong with a normalized tag, as a predicate; null if nothing. It must work as one percent-encoded segment of
 * `/tags/{tag}`, also where a proxy decodes it, and not be the address of another tag's markdown twin.
 */
export function tagFault(tag: string): string | null {
  if (tag === '') return 'is empty';
  const length = codePoints(tag);
  if (length > 40) return `is ${length} characters long; allowed are 1 to 40`;
  const hidden = lineFault(tag);
  if (hidden !== null) return hidden;
  if (!/[\p{L}\p{N}\p{S}]/u.test(tag)) return 'has no letter, digit or symbol';
  if (tag.includes('\\')) return "contains '\\', which does not work in the address of a tag";
  if (tag.split('/').some((part) => /^\.{0,2}$/.test(part.trim()))) return "may hold '/' only between words";
  return tag.endsWith('.md') ? "ends in '.md', which is the address of another tag's markdown" : null;
}
