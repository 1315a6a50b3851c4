import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it';
import { unspaced } from '../../rules/search/search-terms.ts';

/** Longest formula within a text, in UTF-16 units, and most lines of one that stands by itself. */
const longestInline = 1000;
const mostLines = 200;

/** What only formulas have. */
const tex = /\\[A-Za-z]|[\^_={}<>+|]|\\\\/;
/** What brackets that are escaped in prose never hold. */
const texForSure = /\\[A-Za-z]|[\^=]/;
/** A word, as in prose; of the names that formulas spell out, all are shorter or listed. */
const word = /(?<!\p{L})(?!(?:log|exp|sin|cos|tan|max|min|mod|lim|gcd|lcm|det|arg)(?!\p{L}))\p{L}{3}/u;

/** An amount, and a word behind it. */
const money = /^\d[\d.,]*[kKmMbB]?[\s,;:)–-]+\p{L}{2}/u;

/** Letters that stand beside a formula without a space, and within one in commands alone (`\\text{…}`). */
const unspacedLetter = new RegExp(unspaced, 'v');
/** What a formula within a text does not touch: it would be part of a word. */
const wordPart = new RegExp(String.raw`[[\p{L}\p{N}]--${unspaced}]`, 'v');

/** What is written right behind a formula within a text: `$n$th`, `$k$s`. */
const ending = /^(?:th|st|nd|rd|s)(?![\p{L}\p{N}$])/u;

/** Whether a text between the marks of a formula is one, and not money or words: `$5 and $6`, `\(see below\)`. */
function isFormula(text: string): boolean {
  if (text.trim() === '' || text.includes('`')) return false;
  if (unspacedLetter.test(text) && !/\\[A-Za-z]/.test(text)) return false;
  return tex.test(text) || !(word.test(text) || money.test(text));
}

/**
 * Formulas in TeX as language models write them: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, within a text or on lines of
 * their own, where `\begin{align}` needs none of these. Tokens `formula` and `formula_block` hold the TeX; those that
 * are displayed have `display` as their `info`.
 */
export function formulas(md: MarkdownIt): void {
  md.inline.ruler.before('escape', 'formula', readInline);
  md.block.ruler.before('fence', 'formula_block', readBlock, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });
}

function readInline(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  const char = src[pos];
  if (char !== '$' && !(char === '\\' && /[([]/.test(src[pos + 1] ?? ''))) return false;
  const found = char === '$' ? dollars(src, pos, state.posMax) : escapedBrackets(src, pos, state.posMax);
  if (found === undefined) return false;
  if (!silent) {
    const token = state.push('formula', 'math', 0);
    token.content = found.text.trim();
    token.markup = src.slice(pos, pos + found.width);
    if (found.isDisplayed) token.info = 'display';
  }
  state.pos = found.end;
  return true;
}

/** A formula within a text: where it ends, and how wide the mark before it is. */
type Found = { text: string; width: number; end: number; isDisplayed: boolean };

function dollars(src: string, start: number, max: number): Found | undefined {
  const width = src[start + 1] === '$' ? 2 : 1;
  // As GitHub does: a formula begins and ends where a word could.
  if (src[start + width] === '$' || src[start - 1] === '$' || wordPart.test(src[start - 1] ?? ''))
    return undefined;
  // GitHub's other form, in which nothing need be escaped.
  const quoted =
    width === 1 ? /^\$`([^`\n]{1,1000})`\$/.exec(src.slice(start, start + longestInline + 4)) : null;
  if (quoted !== null && start + quoted[0].length <= max)
    return { text: quoted[1] ?? '', width, end: start + quoted[0].length, isDisplayed: false };
  const from = start + width;
  const end = closingDollar(src, from, Math.min(max, from + longestInline), width);
  if (end === undefined || isWithinWord(src, end + width)) return undefined;
  const text = src.slice(from, end);
  if (!isFormula(text) || (width === 1 && /^\s|\s$/.test(text))) return undefined;
  return { text, width, end: end + width, isDisplayed: width === 2 };
}

function isWithinWord(src: string, at: number): boolean {
  return wordPart.test(src[at] ?? '') && !ending.test(src.slice(at, at + 3));
}

/** The next dollar sign that is not escaped, if there are just as many. */
function closingDollar(src: string, from: number, max: number, width: number): number | undefined {
  for (let at = from; at < max; at++) {
    if (src[at] === '\\') at++;
    else if (src[at] === '$') {
      const run = src[at + 1] === '$' ? 2 : 1;
      return run === width && at + width <= max ? at : undefined;
    }
  }
  return undefined;
}

function escapedBrackets(src: string, start: number, max: number): Found | undefined {
  const from = start + 2;
  const opening = src[start + 1];
  const closing = opening === '(' ? ')' : ']';
  for (let at = from; at < Math.min(max - 1, from + longestInline); at++) {
    if (src[at] !== '\\') continue;
    const next = src[++at];
    if (next === opening) return undefined;
    if (next !== closing) continue;
    const text = src.slice(from, at - 1);
    const isOne = isFormula(text) && (opening === '(' || texForSure.test(text));
    return isOne ? { text, width: 2, end: at + 1, isDisplayed: opening === '[' } : undefined;
  }
  return undefined;
}

const closings: Readonly<Record<string, string>> = { $$: '$$', '\\[': '\\]' };
/** What LaTeX displays without other marks. */
const environment = /^\\begin\{((?:equation|align|gather|multline)\*?)\}/;

function readBlock(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const textOf = (line: number): string =>
    state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]).trimEnd();
  const first = textOf(startLine);
  const [, name] = environment.exec(first) ?? [];
  const opening = name === undefined ? first.slice(0, 2) : '';
  const closing = name === undefined ? closings[opening] : `\\end{${name}}`;
  if (closing === undefined || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false;
  const lines: string[] = [];
  for (let line = startLine; line < Math.min(endLine, startLine + mostLines); line++) {
    const isWithin =
      line === startLine || (!state.isEmpty(line) && (state.sCount[line] ?? 0) >= state.blkIndent);
    if (!isWithin) return false;
    const text = line === startLine ? first.slice(opening.length) : textOf(line);
    const close = text.indexOf(closing);
    if (close < 0) {
      lines.push(text);
      continue;
    }
    lines.push(text.slice(0, opening === '' ? text.length : close));
    const formula = lines.join('\n').trim();
    // Brackets that are escaped in prose do not stand alone.
    const isSure = opening === '$$' || first === '\\[';
    if (close + closing.length !== text.length || !(isSure ? isFormula(formula) : tex.test(formula)))
      return false;
    if (silent) return true;
    const token = state.push('formula_block', 'math', 0);
    token.content = formula;
    token.map = [startLine, line + 1];
    state.line = line + 1;
    return true;
  }
  return false;
}
