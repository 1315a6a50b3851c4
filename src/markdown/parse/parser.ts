import MarkdownIt from 'markdown-it';
import type { Env, MarkdownIt as Markdown, StateBlock, StateInline, Token } from 'markdown-it';
import { warning, type Warning } from '../../rules/warnings.ts';
import { unrenderable } from '../rendered.ts';
import { invisible, paired } from '../write/tokens.ts';
import { infoStrings } from './info.ts';
import { notePlaces, placesIn, type Places } from './places.ts';
import { autolinks, footnotes, isAllowedLink, strikethrough } from './syntax.ts';

/** Deepest nesting of blocks and inline marks; deeper marks are text, deeper blocks are refused. */
const deepestNesting = 50;

/** Most tokens in a document: about four times those of 512 KiB of ordinary text. */
const mostTokens = 1_000_000;

/** Throws `unrenderable` for a document that is nested too deep or has too many parts. */
export type Parse = (markdown: string) => Parsed;

type Parsed = {
  readonly tokens: Token[];
  readonly places: Places;
  readonly warnings: readonly Warning[];
};

/** Parser of posts: CommonMark, GFM, footnotes, and a few tags of our own. Raw HTML is text. */
export function postParser(): Parse {
  const md = strictParser();
  md.use(tags).use(footnotes);
  md.block.ruler.before('table', 'bound', refuseMany);
  return parseWith(md);
}

/** Parser of comments: paragraphs, emphasis, links, code, lists and quotes. */
export function commentParser(): Parse {
  const md = strictParser();
  md.disable(['table', 'code', 'hr']);
  md.inline.ruler.at('html_inline', noticeForeignTag);
  return parseWith(md);
}

function strictParser(): Markdown {
  const md = new MarkdownIt({ html: false, typographer: false, maxNesting: deepestNesting });
  // An address is shown as it was written: decoding it could make one host look like another.
  md.normalizeLinkText = (text) => text;
  md.inline.ruler2.push('visible_entities', keepEntitiesVisible);
  resolveNothingInAlternativeText(md);
  return md.use(autolinks).use(strikethrough).use(infoStrings).use(notePlaces);
}

/** What an image's alternative text referred to would show nowhere: there, a reference is text. */
function resolveNothingInAlternativeText(md: Markdown): void {
  const parse = md.inline.parse.bind(md.inline);
  let isWithin = false;
  md.inline.parse = (text, parser, env, tokens) => {
    const isOuter = !isWithin;
    isWithin = true;
    try {
      parse(text, parser, isOuter ? env : {}, tokens);
    } finally {
      if (isOuter) isWithin = false;
    }
  };
}

function parseWith(md: Markdown): Parse {
  let refusedLinks = new Set<string>();
  md.validateLink = (href) => {
    if (isAllowedLink(href)) return true;
    if (refusedLinks.size < 5) refusedLinks.add(href.slice(0, 80));
    return false;
  };
  return (markdown) => {
    refusedLinks = new Set();
    const env: Env = {};
    const tokens = md.parse(markdown, env);
    tokens.forEach(refuseDepth);
    const warnings = Array.from(refusedLinks, (href) =>
      warning('refused_link', `'${href}' is not made a link: a link may be http, https, mailto or relative`),
    );
    const rawHtml = env['rawHtml'];
    if (typeof rawHtml === 'string')
      warnings.push(
        warning('raw_html', `raw HTML is shown as text, beginning with '${rawHtml}'; write markdown instead`),
      );
    return { tokens, places: placesIn(env), warnings };
  };
}

/** Invisible text was removed from the content already; an entity such as `&#x202e;` must not bring it back. */
function keepEntitiesVisible(state: StateInline): void {
  for (const token of state.tokens) {
    if (token.info === 'entity' && invisible.test(token.content)) token.content = token.markup;
  }
}

/** The parser drops what is nested too deep, and in a list all that follows: better no post than half of one. */
function refuseDepth(token: Token): void {
  const holdsBlocks = /^(?:blockquote|list_item|footnote)_open$/.test(token.type);
  if (holdsBlocks && token.level >= deepestNesting - 1) {
    throw unrenderable(`nests lists or quotes deeper than ${deepestNesting} levels`, 'Nest them less deep.');
  }
}

/** Missing table cells are filled in, so many short tables could ask for millions: all are counted before the next. */
function refuseMany(state: StateBlock): boolean {
  if (state.tokens.length <= mostTokens) return false;
  throw unrenderable(
    `has more than ${mostTokens} parts, most of them table cells`,
    'Split it, or use fewer cells.',
  );
}

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
function tags(md: Markdown): void {
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
