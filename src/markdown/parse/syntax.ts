import type { Delimiter, Env, MarkdownIt, StateBlock, StateInline, Token } from 'markdown-it';

/** `info` of a tag that has its partner; one without is shown as the text that it is. */
export const paired = 'paired';

/** Deepest nesting of our own tags; what is deeper stays text. */
const deepest = 16;

const inlineTag = /<(?:(br)[ \t]*\/?|(\/?)(kbd|sub|sup))>/iy;
const detailsLine =
  /^(?:(?<head><details(?<open>[ \t]+open)?[ \t]*>)[ \t]*(?:<summary>(?<title>.*)<\/summary>)?|<summary>(?<alone>.*)<\/summary>|<\/details>)[ \t]*$/i;
/** What is HTML to its author, and not a type parameter or a placeholder. */
const foreignTag =
  /<(?:!--|\/?(?:a|abbr|article|b|big|blockquote|br|button|center|code|dd|del|details|div|dl|dt|em|embed|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|li|link|mark|meta|nav|object|ol|p|picture|pre|s|script|section|small|source|span|strong|style|sub|summary|sup|svg|table|tbody|td|th|thead|title|tr|u|ul|video)(?=[\s/>]))/iy;

/**
 * The harmless HTML that people miss in markdown: `<br>`, `<kbd>`, `<sub>`, `<sup>`, and `<details>`, `<summary>` on
 * lines of their own. The author's HTML is never passed on: the writer spells a token, if it is closed in its container.
 */
export function tags(md: MarkdownIt): void {
  md.inline.ruler.at('html_inline', readTag);
  md.inline.ruler2.push('pair_tags', (state) => pair(state.tokens, 'tag_open', 'tag_close'));
  md.block.ruler.at('html_block', readDetails, { alt: ['paragraph', 'reference', 'blockquote'] });
  md.core.ruler.after('block', 'pair_details', (state) =>
    pair(state.tokens, 'details_open', 'details_close'),
  );
}

function readTag(state: StateInline, silent: boolean): boolean {
  inlineTag.lastIndex = state.pos;
  const match = inlineTag.exec(state.src);
  if (match === null || inlineTag.lastIndex > state.posMax) return noticeForeignTag(state);
  const [source, lineBreak, slash, name = 'br'] = match;
  if (!silent) {
    const type = lineBreak === undefined ? (slash === '' ? 'tag_open' : 'tag_close') : 'tag_break';
    const token = state.push(type, name.toLowerCase(), 0);
    token.content = source;
  }
  state.pos += source.length;
  return true;
}

/** Leaves the first HTML of the author that is shown as text in `env.rawHtml`, for a warning. */
export function noticeForeignTag(state: StateInline): false {
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
    if (open !== undefined) token.attrs = [['open', '']];
  }
  const summary = alone ?? title;
  if (summary !== undefined) {
    state.push('summary_open', 'summary', 1);
    const inline = state.push('inline', '', 0);
    inline.content = summary.trim();
    inline.children = [];
    state.push('summary_close', 'summary', -1);
  }
  state.line = startLine + 1;
  return true;
}

/** Marks tokens that open and close each other in one container, innermost first. Each is pushed and popped once. */
function pair(tokens: readonly Token[], openType: string, closeType: string): void {
  const open: Token[] = [];
  for (const token of tokens) {
    if (token.nesting < 0) while ((open.at(-1)?.level ?? -1) > token.level) open.pop();
    if (token.type === openType && open.length < deepest) open.push(token);
    if (token.type !== closeType) continue;
    const opener = open.at(-1);
    if (opener?.tag !== token.tag || opener.level !== token.level) continue;
    opener.info = token.info = paired;
    open.pop();
  }
}

/** Labels that the document defines; references are known only once all blocks are read. */
const definedLabels = new WeakMap<Env, Set<string>>();

/** `[^label]`: no whitespace or brackets in it, and bounded, so that a run of openers is read in linear time. */
const reference = /\[\^([^\s[\]]{1,100})\]/y;
const definition = /\[\^([^\s[\]]{1,100})\]:[ \t]*/y;

/**
 * GitHub's footnotes: `[^label]` refers to a block `[^label]: text`, further paragraphs indented by four. Leaves
 * `footnote_*` tokens, the label in `info`, where they stand: the writer numbers and moves them. (markdown-it-footnote
 * copies the whole document per footnote and reads unclosed references to the end of the text.)
 */
export function footnotes(md: MarkdownIt): void {
  md.block.ruler.before('reference', 'footnote', define, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });
  md.inline.ruler.before('link', 'footnote', refer);
}

function define(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const lineStart = state.bMarks[startLine] ?? 0;
  const indent = state.tShift[startLine] ?? 0;
  const column = state.sCount[startLine] ?? 0;
  if (column - state.blkIndent >= 4) return false;
  definition.lastIndex = lineStart + indent;
  const match = definition.exec(state.src);
  if (match === null) return false;
  const [marker, label = ''] = match;
  if (silent) return true;

  const labels = definedLabels.get(state.env) ?? new Set();
  definedLabels.set(state.env, labels.add(normalize(label)));

  const open = state.push('footnote_open', '', 1);
  open.info = normalize(label);
  const { parentType, blkIndent } = state;
  const bsCount = state.bsCount[startLine] ?? 0;
  // The rest of the first line is content indented by exactly four, whatever space stands before it.
  state.bMarks[startLine] = lineStart + indent + marker.length;
  state.tShift[startLine] = 0;
  state.sCount[startLine] = blkIndent + 4;
  state.blkIndent = blkIndent + 4;
  state.parentType = 'footnote';
  state.md.block.tokenize(state, startLine, endLine);
  state.parentType = parentType;
  state.blkIndent = blkIndent;
  state.bMarks[startLine] = lineStart;
  state.tShift[startLine] = indent;
  state.sCount[startLine] = column;
  state.bsCount[startLine] = bsCount;
  state.push('footnote_close', '', -1).info = normalize(label);
  return true;
}

function refer(state: StateInline, silent: boolean): boolean {
  // A reference is itself a link, and links do not nest.
  if (state.linkLevel > 0) return false;
  reference.lastIndex = state.pos;
  const match = reference.exec(state.src);
  if (match === null || reference.lastIndex > state.posMax) return false;
  const label = normalize(match[1] ?? '');
  if (definedLabels.get(state.env)?.has(label) !== true) return false;
  if (!silent) state.push('footnote_reference', '', 0).info = label;
  state.pos += match[0].length;
  return true;
}

function normalize(label: string): string {
  return label.toLowerCase().toUpperCase();
}

const tilde = 0x7e;
/** Delimiters pair only when their markers are equal, so a single tilde needs one that no character has. */
const markers = { single: -1, double: -2 } as const;

/** GFM strikethrough (6.5): pairs of one or two tildes. markdown-it's rule knows two only, and splits longer runs. */
export function strikethrough(md: MarkdownIt): void {
  md.inline.ruler.at('strikethrough', openOrClose);
  md.inline.ruler2.at('strikethrough', (state) => {
    mark(state, state.delimiters);
    for (const meta of state.tokens_meta) if (meta?.delimiters) mark(state, meta.delimiters);
  });
}

function openOrClose(state: StateInline, silent: boolean): boolean {
  if (silent || state.src.charCodeAt(state.pos) !== tilde) return false;
  const run = state.scanDelims(state.pos, true);
  const token = state.push('text', '', 0);
  token.content = '~'.repeat(run.length);
  state.pos += run.length;
  if (run.length <= 2) {
    state.delimiters.push({
      marker: run.length === 1 ? markers.single : markers.double,
      length: 0,
      token: state.tokens.length - 1,
      end: -1,
      open: run.can_open,
      close: run.can_close,
    });
  }
  return true;
}

/** Turns the text tokens of paired delimiters into tags; the pairing itself is markdown-it's. */
function mark(state: StateInline, delimiters: readonly Delimiter[]): void {
  for (const opener of delimiters) {
    const isOurs = opener.marker === markers.single || opener.marker === markers.double;
    const closer = isOurs ? delimiters[opener.end] : undefined;
    const [open, close] = [state.tokens[opener.token], closer && state.tokens[closer.token]];
    if (!open || !close) continue;
    Object.assign(open, { type: 'del_open', tag: 'del', nesting: 1, content: '' });
    Object.assign(close, { type: 'del_close', tag: 'del', nesting: -1, content: '' });
  }
}
