import { parseTags } from '../post-fields.ts';
import { normalizeTag } from '../text.ts';
import { warning, type Warning } from '../warnings.ts';

/** Terms of one text that are indexed; what follows them is not found. Keeps a tsvector below its 16,383 positions. */
const mostTerms = 15_000;
/** Terms are cut to this, in UTF-16 units. */
const longestTerm = 40;
/** Text is cut to this after folding, in UTF-16 units: compatibility forms can unfold to 18 times themselves. */
const longestText = 200_000;

/** Words of a query that are looked for, those of phrases too, and how many may be beginnings, which cost most. */
const mostWords = 16;
const mostPrefixes = 2;
/** Letters that the beginning of a word needs: shorter ones would match most posts. */
export const leastPrefix = 3;

/** Terms that must follow one another; the last may be the beginning of a term. */
export type Clause = {
  readonly terms: readonly string[];
  readonly prefix: boolean;
  /** Terms that are as good, and phrases, their terms between spaces. */
  readonly or?: readonly string[];
  /** Whether it was written in quotes, or as the beginning of a word. */
  readonly quoted?: boolean;
};

/** What to look for: every clause of `all`, of `some` all but one, or any one, and none of `none`. */
export type SearchQuery = {
  readonly all: readonly Clause[];
  readonly none: readonly Clause[];
  readonly some?: { readonly clauses: readonly Clause[]; readonly but: 'one' | 'all' };
};

/** Scripts that are written without spaces, or (Hangul) with particles joined to words. */
export const unspaced = String.raw`[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]&&[\p{L}\p{N}\p{M}]]`;
const run = new RegExp(String.raw`(${unspaced}+)|[[\p{L}\p{N}\p{M}]--${unspaced}]+`, 'gv');

/**
 * The terms of a text in order: words without case, and Latin, Greek and Cyrillic ones without marks. Scripts without
 * spaces become overlapping pairs of characters and the last one alone (as in Lucene's CJKBigramFilter). What is
 * written with signs (C++, .NET, node:fs) is a term as a whole, with its words after it.
 */
export function searchTerms(text: string, most = mostTerms): string[] {
  const folded = fold(text);
  if (!maybeSigned.test(folded)) return plainTerms(folded, most);
  const terms: string[] = [];
  let at = 0;
  for (const { 0: whole, index } of folded.matchAll(signed)) {
    terms.push(...plainTerms(folded.slice(at, index), most - terms.length));
    if (terms.length >= most) return atMost(most, terms);
    terms.push(cut(whole.replace(/[+#.:]/g, (sign) => inIndex[sign] ?? sign)));
    // Of one letter, what is left (C) is another name.
    if (!/^[a-z](?:\+\+|#)$/.test(whole)) terms.push(...plainTerms(whole, most));
    at = index + whole.length;
  }
  terms.push(...plainTerms(folded.slice(at), most - terms.length));
  return atMost(most, terms);
}

const signed =
  /(?<![\p{L}\p{N}\p{M}_])(?:[a-z][a-z0-9]{0,19}(?:\+\+|#)|(?<![^\s([{"'`])\.[a-z][a-z0-9]{1,19}|[a-z][a-z0-9_]{0,19}(?:::?[a-z][a-z0-9_]{0,19}){1,4})(?![\p{L}\p{N}\p{M}_+#:])/gu;

/** What each of these has: prose without it takes a quarter of the time. */
const maybeSigned = /[a-z0-9](?:\+\+|#)|(?:^|[\s([{"'`])\.[a-z]|[a-z0-9_]::?[a-z]/;

/** Full-width forms stand for signs in the index, where those would end a word; folding leaves none in a text. */
const inIndex: Readonly<Record<string, string>> = {
  '+': '\uFF0B',
  '#': '\uFF03',
  '.': '\uFF0E',
  ':': '\uFF1A',
};

/** A term as a text has it. */
export function asWritten(term: string): string {
  return term.replace(/[\uFF0B\uFF03\uFF0E\uFF1A]/g, (sign) =>
    String.fromCharCode(sign.charCodeAt(0) - 0xfee0),
  );
}

function plainTerms(folded: string, most: number): string[] {
  // The same for plain English, at half the cost.
  if (isAscii(folded)) {
    const words = atMost(most, folded.match(/[a-z0-9]+/g) ?? []);
    return words.some(isLong) ? words.map(cut) : words;
  }
  const terms: string[] = [];
  for (const { 0: word, 1: pairs } of folded.matchAll(run)) {
    if (pairs === undefined) terms.push(cut(word));
    else {
      const characters = Array.from(pairs.slice(0, 2 * (most - terms.length)));
      for (const [i, character] of characters.entries()) terms.push(character + (characters[i + 1] ?? ''));
    }
    if (terms.length >= most) return atMost(most, terms);
  }
  return terms;
}

/** Text as it is compared: compatibility forms unfolded (full-width, ligatures), lower case, without mere accents. */
export function fold(text: string): string {
  const start = text.slice(0, longestText);
  if (isAscii(start)) return start.toLowerCase();
  // Runs of marks are cut short: to put them in order, as normalization does, takes quadratic time.
  const bounded = start.replace(/(\p{M}{8})\p{M}+/gu, '$1');
  const folded = bounded.replace(beyondAscii, foldPiece).toLowerCase();
  return folded.slice(0, longestText).toWellFormed();
}

/**
 * With the character before, which a mark may belong to. Near pieces are one: 100,000 singly take three times as long.
 */
// oxlint-disable-next-line no-control-regex
const beyondAscii = /.?[^\0-\x7f]+(?:[\0-\x7f]{1,16}[^\0-\x7f]+)*/gsu;

/** How letters are typed by those whose keyboards lack them. */
const spelled: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ħ: 'h',
  ı: 'i',
};

function foldPiece(piece: string): string {
  return piece
    .normalize('NFKD')
    .toLowerCase()
    .replace(/([\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}])\p{M}+/gu, '$1')
    .replace(/[ßæœøłđðþħı]/g, (letter) => spelled[letter] ?? letter)
    .normalize('NFC')
    .replaceAll('ς', 'σ');
}

export function isAscii(text: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return /^[\0-\x7f]*$/.test(text);
}

function isLong(term: string): boolean {
  return term.length > longestTerm;
}

function cut(term: string): string {
  return isLong(term) ? term.slice(0, longestTerm).toWellFormed() : term;
}

function atMost(most: number, terms: string[]): string[] {
  return terms.length > most ? terms.slice(0, most) : terms;
}

/** A query as it was understood. */
type ParsedSearch = SearchQuery & {
  /** As tags are stored; null where the query names none. */
  readonly tag: string | null;
  /** The first beginning of a word that is shorter than {@link leastPrefix}, or null. */
  readonly tooShort: string | null;
  /** What was not done as written. */
  readonly warnings: readonly Warning[];
};

/**
 * Reads what somebody looks for: words (all must occur), "words in this order", word* for words that begin so,
 * -word for what must not occur, and tag:name for posts with that tag, in which \" stands for a quote. Of a second tag, or
 * one that must not be there, the words are looked for.
 */
export function parseSearch(text: string): ParsedSearch {
  const sides = { all: new Map<string, Clause>(), none: new Map<string, Clause>() };
  const warnings = new Set<string>();
  const { tag, rest } = takeTag(text.replace(/(?<!\\)[“”„«»]/g, '"'));
  let tooShort: string | null = null;
  let prefixes = 0;
  let words = 0;
  for (const [, minus, quoted, star, word] of rest.matchAll(part)) {
    const wantsPrefix = star === '*' || word?.endsWith('*') === true;
    const { terms, ending } = readTerms(quoted ?? word ?? '');
    if (terms.length === 0) continue;
    let prefix = ending === 'character' || (wantsPrefix && ending === 'word');
    if (wantsPrefix && ending === 'short') tooShort ??= terms.at(-1) ?? '';
    if (prefix && prefixes === mostPrefixes) {
      prefix = false;
      warnings.add(tooManyPrefixes);
    }
    const sought = terms.slice(0, mostWords - words);
    if (sought.length < terms.length) {
      warnings.add(tooMany);
      prefix = false;
      if (sought.length === 0) break;
    }
    words += sought.length;
    if (prefix) prefixes++;
    const isFixed = [quoted !== undefined, wantsPrefix].includes(true);
    const clause = { terms: sought, prefix, quoted: isFixed, or: otherSpellings(word, isFixed, sought) };
    sides[minus === '-' ? 'none' : 'all'].set(sought.join(' ') + (prefix ? '*' : ''), clause);
  }
  return {
    all: [...sides.all.values()],
    none: [...sides.none.values()],
    tag,
    tooShort,
    warnings: Array.from(warnings, (each) => warning('shortened_search', each)),
  };
}

/** The tag that a query names outside of quotations, and the rest of it; of further ones, the words are left. */
function takeTag(query: string): { tag: string | null; rest: string } {
  let tag: string | null = null;
  const rest = query.replace(
    /"[^"]*"?|(?<!\S)(-?)tag:(?:"((?:[^"\\]|\\.?)*)"?|((?:[^\s"\\]|\\.?)+))/gis,
    (whole, minus?: string, inQuotes?: string, word?: string) => {
      // No tag has a backslash of its own.
      const name = (inQuotes ?? word)?.replace(/\\(.?)/gs, '$1');
      if (name === undefined) return whole;
      if (name.trim() === '') return '';
      if (tag !== null || minus === '-') return `${minus}"${name}"`;
      tag = normalizeTag(name);
      return '';
    },
  );
  return { tag, rest };
}

/** An optional minus, then a quotation (which may lack its end) with an optional star, or a word. */
const part = /(-?)(?:"([^"]*)"?(\*?)|([^\s"]+))/g;

/** What is written as several words as one, and the other way round: `e-mail` and `email`, `gpt4`, `maxRetryCount`. */
function otherSpellings(word: string | undefined, isFixed: boolean, terms: readonly string[]): string[] {
  if (word === undefined || isFixed) return [];
  if (terms.length > 1) {
    const joined = terms.join('');
    return /^[a-z][a-z0-9]*$/.test(joined) && joined.length <= longestTerm ? [joined] : [];
  }
  if (!/^[a-z]+\d*$/i.test(word)) return [];
  const parts = searchTerms(apartAtHumps(word).replace(/(?<=[a-z])(?=\d)/i, ' '));
  return parts.length > 1 ? [parts.join(' ')] : [];
}

function apartAtHumps(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, ' ');
}

/** The words of names that are written as one, each name once: of `getUserById`, not of a brand of two (`GitHub`). */
function wordsWithin(text: string): string[] {
  if (!/[a-z0-9][A-Z]/.test(text)) return [];
  const names = [...new Set(text.match(humps))].slice(0, mostNames);
  return names.flatMap((name) => searchTerms(apartAtHumps(name)));
}

const humps = /\b(?:[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){3,})\b/g;
const mostNames = 200;

const tooManyPrefixes = `only the first ${mostPrefixes} beginnings of words are looked for as such`;
const tooMany = `only the first ${mostWords} words are looked for`;

type Ending = 'word' | 'short' | 'pairs' | 'character';

/** The terms of one part of a query, and what the last of them can match beyond itself. */
function readTerms(text: string): { terms: string[]; ending: Ending } {
  const terms = searchTerms(text);
  const last = terms.at(-1) ?? '';
  if (!isUnspaced.test(last))
    return { terms, ending: Array.from(last).length < leastPrefix ? 'short' : 'word' };
  const before = terms.at(-2) ?? '';
  // A pair before it shows that the last character ended a longer run, which may go on in a text.
  if (before.length > last.length && before.endsWith(last) && isUnspaced.test(before))
    return { terms: terms.slice(0, -1), ending: 'pairs' };
  // Alone, it is the first of a pair wherever it does not end a run.
  return { terms, ending: 'character' };
}

/** A text of such scripts alone. */
export const isUnspaced = new RegExp(`^${unspaced}+$`, 'v');

/** The terms of a post, in their order. A phrase does not reach from one field into the next. */
export type SearchFields = {
  readonly title: readonly string[];
  /** Then {@link agentTerm}, and the terms of its author's name. */
  readonly tags: readonly string[];
  readonly text: readonly string[];
};

/** What is indexed of a post; its tags are as they are stored. */
export type Indexed = {
  readonly title: string;
  readonly tags: string;
  readonly agent_id: string;
  readonly author_name: string;
  readonly author_slug: string | null;
};

/** The term that all posts of an agent have, and no text. */
export function agentTerm(agentId: string): string {
  return `\uE000${agentId.replaceAll('-', '')}`;
}

/** What the index and `search_docs` store about a post. */
export function searchEntry(post: Indexed, plainText: string) {
  const { title, tags, agent_id, author_name, author_slug } = post;
  const author = new Set(searchTerms(`${author_name} ${author_slug ?? ''}`));
  const text = searchTerms(plainText);
  const within = wordsWithin(`${title} ${plainText.slice(0, longestText)}`);
  const fields: SearchFields = {
    title: searchTerms(title),
    tags: [...parseTags(tags).flatMap((tag) => searchTerms(tag)), agentTerm(agent_id), ...author],
    text: within.length === 0 ? text : atMost(mostTerms, [...text, ...within]),
  };
  const digest = [fields.title, fields.tags, frequentTerms(fields.text)]
    .map((terms) => ` ${terms.join(' ')} `)
    .join('\n');
  return { fields, digest };
}

/** How often a term must occur to count as frequent in its text, and how many of a text can. */
const often = 3;
const mostFrequent = 40;

function frequentTerms(terms: readonly string[]): string[] {
  const counted = new Map<string, { readonly term: string; count: number }>();
  for (const term of terms) {
    const known = counted.get(term);
    if (known) known.count++;
    else counted.set(term, { term, count: 1 });
  }
  return [...counted.values()]
    .filter(({ count }) => count >= often)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, mostFrequent)
    .map(({ term }) => term);
}
