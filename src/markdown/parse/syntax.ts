import type { Delimiter, Env, MarkdownIt, StateBlock, StateCore, StateInline, Token } from 'markdown-it';
import { textStart } from './places.ts';

const linkSchemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);
/** What markdown-it leaves of an address whose host has more than 255 characters; browsers would take its path for one. */
const withoutHost = /^(?:https?:)?\/\/\//i;
/** What relative references are resolved against when they are judged; nothing is ever fetched from it. */
const anywhere = 'https://relative.invalid/';

/** Whether a link may go there. Read by the WHATWG parser, as browsers do: no spelling of a scheme gets past it. */
export function isAllowedLink(href: string): boolean {
  if (withoutHost.test(href)) return false;
  const scheme = URL.parse(href, anywhere)?.protocol;
  return scheme !== undefined && linkSchemes.has(scheme);
}

/** Whether an allowed link leads to the host that it stands on, wherever that is. */
export function isRelativeLink(href: string): boolean {
  return URL.parse(href) === null && URL.parse(href, anywhere)?.host === new URL(anywhere).host;
}

/** Whether an image may come from there: an absolute https address without credentials, and nothing else. */
export function isAllowedImage(src: string): boolean {
  if (!/^https:\/\/[^/]/i.test(src)) return false;
  const url = URL.parse(src);
  return url !== null && url.username === '' && url.password === '';
}

/** Host and port. Bounded, so that a try that fails costs little however long the text is. */
const host =
  /(?:[\p{L}\p{N}\p{M}\p{So}_-]{1,63}\.){0,10}[\p{L}\p{N}\p{M}\p{So}_-]{1,63}(?::\d{1,5}(?!\d))?/uy;
/** Quotation marks end an address too, and full-width punctuation: Chinese and Japanese put no space there. */
const stop = /[\s<"“”„«»\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]/;
const trailingPunctuation = /[?!.,:;*_~'"‘’‹›…]/;
const webOrMail = /(?<![\p{L}\p{N}/@.-])www\.|@/giu;
const localPart = /[A-Za-z0-9.+_-]/;
const mailDomain = /[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){1,10}(?![A-Za-z0-9_-])/y;

/**
 * GFM's extended autolinks (6.9), in linear time. Our own, since linkify-it, which markdown-it brings, ends addresses
 * elsewhere than four examples of GFM's specification do.
 */
export function autolinks(md: MarkdownIt): void {
  // At the colon, before emphasis is read: `/__init__.py` in an address is no strong text.
  md.inline.ruler.at('linkify', linkAtColon);
  md.core.ruler.at('linkify', linkInText);
}

function linkAtColon(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (src.charCodeAt(pos) !== 0x3a || !src.startsWith('://', pos) || state.linkLevel > 0) return false;
  const scheme = /(?<![A-Za-z0-9\\])https?$/i.exec(src.slice(Math.max(0, pos - 6), pos))?.[0];
  if (scheme === undefined) return false;
  const end = addressEnd(src, pos + 3, state.posMax);
  if (end < 0) return false;
  if (!silent) {
    if (!state.pending.endsWith(scheme)) return false;
    state.pending = state.pending.slice(0, -scheme.length);
    const text = src.slice(pos - scheme.length, end);
    state.push('link_open', 'a', 1).attrs = [['href', state.md.normalizeLink(text)]];
    state.push('text', '', 0).content = text;
    state.push('link_close', 'a', -1);
  }
  state.pos = end;
  return true;
}

function linkInText(state: StateCore): void {
  for (const block of state.tokens) {
    if (block.type !== 'inline' || !/www\.|@/i.test(block.content)) continue;
    let depth = 0;
    block.children = (block.children ?? []).flatMap((token) => {
      depth += token.type === 'link_open' ? 1 : token.type === 'link_close' ? -1 : 0;
      return token.type === 'text' && depth === 0 ? splitText(state, token) : token;
    });
  }
}

/** The text as it was, or in pieces with links between them. */
function splitText(state: StateCore, token: Token): Token | Token[] {
  const text = token.content;
  const pieces: Token[] = [];
  let done = 0;
  const add = (type: string, nesting: -1 | 0 | 1, content: string): Token => {
    const piece = new state.Token(type, nesting === 0 ? '' : 'a', nesting);
    piece.content = content;
    pieces.push(piece);
    return piece;
  };
  for (const match of text.matchAll(webOrMail)) {
    if (match.index < done) continue;
    const found = match[0] === '@' ? mailAddress(text, match.index, done) : webAddress(text, match.index);
    if (found === undefined) continue;
    if (found.start > done) add('text', 0, text.slice(done, found.start));
    add('link_open', 1, '').attrs = [['href', state.md.normalizeLink(found.href)]];
    add('text', 0, text.slice(found.start, found.end));
    add('link_close', -1, '');
    done = found.end;
  }
  if (done === 0) return token;
  if (done < text.length) add('text', 0, text.slice(done));
  return pieces;
}

function webAddress(text: string, start: number) {
  const end = addressEnd(text, start, text.length);
  return end < 0 ? undefined : { start, end, href: `http://${text.slice(start, end)}` };
}

function mailAddress(text: string, at: number, from: number) {
  let start = at;
  while (start > from && localPart.test(text.charAt(start - 1))) start--;
  mailDomain.lastIndex = at + 1;
  const domain = mailDomain.exec(text)?.[0];
  if (start === at || domain === undefined || /[-_]$/.test(domain)) return undefined;
  const address = text.slice(start, at + 1 + domain.length);
  if (start - 7 >= from && text.slice(start - 7, start).toLowerCase() === 'mailto:') start -= 7;
  return { start, end: at + 1 + domain.length, href: `mailto:${address}` };
}

/** Where the address ends whose host begins at `start`, or -1 when there is no such address. */
function addressEnd(text: string, start: number, max: number): number {
  host.lastIndex = start;
  const name = host.exec(text)?.[0];
  if (name === undefined || start + name.length > max) return -1;
  // GFM: no underscore in the last two labels. The path can't make an address invalid, so it isn't judged.
  if (/_[^.]*(?:\.[^.]*)?$/.test(name) || !isAllowedLink(`http://${name}`)) return -1;
  let end = start + name.length;
  if (!/[/?#]/.test(text.charAt(end))) return end;
  const open = { round: 0, square: 0 };
  for (; end < max; end++) {
    const char = text.charAt(end);
    if (stop.test(char)) break;
    if (char === '(') open.round++;
    else if (char === ')') open.round--;
    else if (char === '[') open.square++;
    else if (char === ']' && --open.square < 0) break;
  }
  return trimEnd(text, start + name.length, end, open.round);
}

/** Leaves punctuation at the end out, a closing parenthesis without its opener, and an entity. */
function trimEnd(text: string, start: number, from: number, openParentheses: number): number {
  let end = from;
  let open = openParentheses;
  for (; end > start; end--) {
    const last = text.charAt(end - 1);
    if (last === ')' && open < 0) open++;
    else if (!trailingPunctuation.test(last)) break;
    if (last === ';') {
      let entity = end - 1;
      while (entity > start && /[A-Za-z0-9]/.test(text.charAt(entity - 1))) entity--;
      if (entity < end - 1 && text.charAt(entity - 1) === '&') end = entity;
    }
  }
  return end;
}

/** Labels that the document defines; references are known only once all blocks are read. */
function labelsIn(env: Env): Set<string> | undefined {
  return env['footnotes'] as Set<string> | undefined;
}

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

  state.env['footnotes'] = (labelsIn(state.env) ?? new Set()).add(normalize(label));

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
  open.map = [startLine, state.line];
  const lines = Array.from({ length: state.line - startLine }, (_, at) => startLine + at);
  open.meta = { starts: lines.map((line) => textStart(state, line)) };
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
  if (labelsIn(state.env)?.has(label) !== true) return false;
  if (!silent) {
    const token = state.push('footnote_reference', '', 0);
    token.info = label;
    token.map = [state.pos, state.pos + match[0].length];
  }
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
