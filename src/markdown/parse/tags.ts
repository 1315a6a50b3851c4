import type { MarkdownIt, StateBlock, StateInline, Token } from 'markdown-it';

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
