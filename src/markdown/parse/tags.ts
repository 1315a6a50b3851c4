import type { MarkdownIt, StateBlock, StateInline, Token } from 'markdown-it';
import { paired, spelled } from '../write/tokens.ts';

/** Deepest nesting of our own tags; what is deeper stays text. */
const deepest = 16;

const inlineTag = /<(?:(br)[ \t]*\/?|(\/?)(kbd|sub|sup|mark|ins|s|u|small|ruby|rt|abbr))>/iy;
const abbreviation = /<abbr\s+title\s*=\s*(?:"([^"<]{1,200})"|'([^'<]{1,200})')\s*>/iy;
/** Parentheses around a reading, which browsers leave out. */
const rubyParenthesis = /<rp>([()（）[\]【】《》]?)<\/rp>/iy;
const imageTag =
  /<img((?:\s+(?:src|alt|title|width|height)\s*=\s*(?:"[^"<]*"|'[^'<]*'|[^\s"'<>=`]+))+)\s*\/?>/iy;
const attribute = /\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+))/g;
const pixels = /^(\d{1,5})(?:px)?$/;
/** A size that depends on the page, where all images are as wide as they can be. */
const share = /^(?:\d{1,3}%|auto)$/;

const detailsLine =
  /^(?:(?<head><details(?<open>[ \t]+open)?[ \t]*>)[ \t]*(?:<summary>(?<title>.*)<\/summary>)?|<summary>(?<alone>.*)<\/summary>|<\/details>)[ \t]*$/i;
/** What is HTML to its author, and not a type parameter or a placeholder. */
const foreignTag =
  /<(?:!--|\/?(?:a|abbr|article|b|big|blockquote|br|button|center|code|dd|del|details|div|dl|dt|em|embed|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|li|link|mark|meta|nav|object|ol|p|picture|pre|rp|rt|ruby|s|script|section|small|source|span|strong|style|sub|summary|sup|svg|table|tbody|td|th|thead|title|tr|u|ul|video)(?=[\s/>]))/iy;

/**
 * The harmless HTML that people miss in markdown: `<br>`, `<kbd>`, `<sub>`, `<sup>`, `<mark>`, `<ins>`, `<s>`, `<u>`,
 * `<small>`, `<abbr>`, `<ruby>` and `<img>`, and `<details>`, `<summary>` on lines of their own. The author's HTML is
 * never passed on: the writer spells a token, if it is closed in its container.
 */
export function tags(md: MarkdownIt): void {
  md.inline.ruler.at('html_inline', readTag);
  md.inline.ruler2.push('pair_tags', (state) => pair(state.tokens, 'tag_open', 'tag_close'));
  md.block.ruler.at('html_block', readDetails, { alt: ['paragraph', 'reference', 'blockquote'] });
  md.core.ruler.after('block', 'pair_details', (state) =>
    pair(state.tokens, 'details_open', 'details_close'),
  );
}

/** Raw HTML is text; the first of it is noted for a warning. */
export function noForeignTags(md: MarkdownIt): void {
  md.inline.ruler.at('html_inline', noticeForeignTag);
}

function readTag(state: StateInline, silent: boolean): boolean {
  return (
    readPlainTag(state, silent) ||
    readAbbreviation(state, silent) ||
    readRubyParenthesis(state, silent) ||
    readImage(state, silent) ||
    noticeForeignTag(state)
  );
}

/** The match of a sticky pattern here, if it ends within the text that is read. */
function matchAt(pattern: RegExp, { src, pos, posMax }: StateInline): RegExpExecArray | null {
  pattern.lastIndex = pos;
  const match = pattern.exec(src);
  return pattern.lastIndex > posMax ? null : match;
}

function readPlainTag(state: StateInline, silent: boolean): boolean {
  const match = matchAt(inlineTag, state);
  if (match === null) return false;
  const [source, lineBreak, slash, name = 'br'] = match;
  if (!silent) {
    const type = lineBreak === undefined ? (slash === '' ? 'tag_open' : 'tag_close') : 'tag_break';
    state.push(type, name.toLowerCase(), 0).content = source;
  }
  state.pos += source.length;
  return true;
}

function readAbbreviation(state: StateInline, silent: boolean): boolean {
  const match = matchAt(abbreviation, state);
  if (match === null) return false;
  if (!silent) {
    const token = state.push('tag_open', 'abbr', 0);
    token.content = match[0];
    token.attrSet('title', unescaped(state.md, match[1] ?? match[2] ?? ''));
  }
  state.pos += match[0].length;
  return true;
}

function readRubyParenthesis(state: StateInline, silent: boolean): boolean {
  const match = matchAt(rubyParenthesis, state);
  if (match === null) return false;
  if (!silent) state.push('ruby_parenthesis', 'rp', 0).content = match[1] ?? '';
  state.pos += match[0].length;
  return true;
}

/** An image as markdown's own, with the size that the tag gives it. */
function readImage(state: StateInline, silent: boolean): boolean {
  const match = matchAt(imageTag, state);
  if (match === null) return false;
  const sent = new Map<string, string>();
  for (const [, name = '', ...values] of (match[1] ?? '').matchAll(attribute)) {
    // A browser would take the first and drop what the second says.
    if (sent.has(name.toLowerCase())) return false;
    sent.set(name.toLowerCase(), unescaped(state.md, values.find((value) => value !== undefined) ?? ''));
  }
  const sizes = ['width', 'height'].map(
    (name) => [name, pixels.exec((sent.get(name) ?? '0').replace(share, '0'))?.[1]] as const,
  );
  const src = state.md.normalizeLink(sent.get('src') ?? '');
  if (src === '' || sizes.some(([, size]) => size === undefined) || !state.md.validateLink(src)) return false;
  if (!silent) {
    const token = state.push('image', 'img', 0);
    const alt = new state.Token('text', '', 0);
    alt.content = token.content = sent.get('alt') ?? '';
    token.children = [alt];
    token.attrs = [['src', src]];
    for (const [name, size] of [...sizes, ['title', sent.get('title')] as const])
      if (size !== undefined && Number(size) !== 0) token.attrSet(name, size);
    token.map = [state.pos, state.pos + match[0].length];
  }
  state.pos += match[0].length;
  return true;
}

/** The value of an attribute: entities are read, but for what they would hide, and a backslash is no escape. */
function unescaped(md: MarkdownIt, value: string): string {
  return spelled(md.utils.unescapeAll(value.replaceAll('\\', '\\\\')));
}

/** Leaves the first HTML of the author that is shown as text in `env.rawHtml`, for a warning. */
function noticeForeignTag(state: StateInline): false {
  foreignTag.lastIndex = state.pos;
  const match = foreignTag.exec(state.src);
  if (match !== null) state.env['rawHtml'] ??= match[0];
  return false;
}

function readDetails(state: StateBlock, startLine: number, _endLine: number, silent: boolean): boolean {
  const start = (state.bMarks[startLine] ?? 0) + (state.tShift[startLine] ?? 0);
  if (state.src.charCodeAt(start) !== 0x3c || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4)
    return false;
  const source = state.src.slice(start, state.eMarks[startLine]);
  const match = detailsLine.exec(source);
  if (match === null) return false;
  const { head, open, title, alone } = match.groups ?? {};
  if (alone !== undefined && (silent || state.tokens.at(-1)?.type !== 'details_open')) return false;
  if (silent) return true;

  if (alone === undefined) {
    const token = state.push(head === undefined ? 'details_close' : 'details_open', 'details', 0);
    token.content = head ?? source;
    token.map = [startLine, startLine + 1];
    if (open !== undefined) token.attrs = [['open', '']];
  }
  const summary = alone ?? title;
  if (summary !== undefined) {
    state.push('summary_open', 'summary', 1);
    const inline = state.push('inline', '', 0);
    inline.content = summary.trim();
    inline.map = [startLine, startLine + 1];
    inline.children = [];
    state.push('summary_close', 'summary', -1);
  }
  state.line = startLine + 1;
  return true;
}

/** Tags that make text smaller, and by how much: what is smaller still nobody could read, so it stays text. */
const shrinking = new Map([
  ['sub', 1],
  ['sup', 1],
  ['small', 1],
  ['kbd', 1],
  ['rt', 2],
]);
const mostShrinking = 2;

/** Marks tokens that open and close each other in one container, innermost first. Each is pushed and popped once. */
function pair(tokens: readonly Token[], openType: string, closeType: string): void {
  const open: Token[] = [];
  for (const token of tokens) {
    if (token.nesting < 0) while ((open.at(-1)?.level ?? -1) > token.level) open.pop();
    if (token.type === openType && open.length < deepest && shrinkOf([...open, token]) <= mostShrinking)
      open.push(token);
    if (token.type !== closeType) continue;
    const opener = open.at(-1);
    if (opener?.tag !== token.tag || opener.level !== token.level) continue;
    opener.info = token.info = paired;
    open.pop();
  }
}

/** How often tags make what is in them smaller. */
export function shrinkOf(tokens: readonly Token[]): number {
  return tokens.reduce((sum, { tag }) => sum + (shrinking.get(tag) ?? 0), 0);
}
