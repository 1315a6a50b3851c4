import type { Token } from 'markdown-it';
import { hiddenText } from '../../rules/text.ts';
import { sentenceEnd } from '../../rules/text/sentences.ts';
import type { Stretch } from '../unseen.ts';

/** `info` of a tag that has its partner; one without is shown as the text that it is. */
export const paired = 'paired';

/** One character that shows nothing, newline and tab excepted. */
export const invisible = /(?![\n\t])[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}]/u;

const special = /[&<>"]/g;
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text for an element's content or a double-quoted attribute. */
export function escape(text: string): string {
  return text.replace(special, (char) => entities[char] ?? char);
}

/** Attribute `title` of a link, image or code block, if it has one. */
export function titleOf(token: Token): string {
  const title = spelled(String(token.attrGet('title') ?? ''));
  return title === '' ? '' : ` title="${escape(title)}"`;
}

/** What is hidden in a text as the entities that brought it there: others were removed from the content already. */
export function spelled(text: string): string {
  if (!invisible.test(text) || hiddenText(text).length === 0) return text;
  return text.replace(invisibles, (char) => `&#x${char.codePointAt(0)?.toString(16)};`);
}

const invisibles = new RegExp(invisible, 'gu');

/** Each outermost block takes its direction from its text; what is inside follows, so that bullets line up. */
export function direction(token: Token): string {
  return token.level === 0 ? ' dir="auto"' : '';
}

/** Elements without attributes: inside text, on lines of their own, and those of which only the end is so. */
const marks = new Set(['em', 'strong', 'del']);
const rows = new Set(['thead', 'tbody', 'tr']);
const blocks = new Set(['p', 'blockquote', 'ul', 'ol', 'li', 'th', 'td', 'dl', 'dt', 'dd']);

const fixed: Readonly<Record<string, string>> = {
  link_close: '</a>',
  table_close: '</table>\n</div>\n',
  hr: '<hr>\n',
  hardbreak: '<br>\n',
  tag_break: '<br>',
  callout_close: '</div>\n',
  callout_title_open: '<p class="callout-title">',
  callout_kind_open: '<p class="callout-title"><bdi lang="en">',
  callout_kind_close: '</bdi></p>\n',
  dt_open: '<dt>',
  dd_open: '<dd>',
  html_comment: '',
};

/** The HTML of a token that depends on nothing else; undefined for other tokens. */
export function htmlOf(token: Token): string | undefined {
  const { type, tag, nesting } = token;
  if (marks.has(tag)) return nesting === 1 ? `<${tag}>` : `</${tag}>`;
  if (rows.has(tag)) return nesting === 1 ? `<${tag}>\n` : `</${tag}>\n`;
  if (nesting === -1 && type !== 'callout_close' && blocks.has(tag)) return `</${tag}>\n`;
  switch (type) {
    case 'paragraph_open':
      return `<p${direction(token)}>`;
    case 'blockquote_open':
    case 'bullet_list_open':
    case 'dl_open':
      return `<${tag}${direction(token)}>\n`;
    case 'callout_open':
      return `<div class="callout ${token.info}" role="note"${direction(token)}>\n`;
    case 'ruby_parenthesis':
      return `<rp>${escape(token.content)}</rp>`;
    case 'th_open':
    case 'td_open': {
      const align = /left|center|right/.exec(String(token.attrGet('style')))?.[0];
      return align === undefined ? `<${tag}>` : `<${tag} class="${align}">`;
    }
    default:
      return fixed[type];
  }
}

const lineEnds =
  /^(?:(?:paragraph|heading|summary|callout_title|callout_kind|dt|dd|tr)_close|hardbreak|tag_break)$/;

/** What separates the words before and after a token in plain text. */
export function separatorOf({ type }: Token): string {
  if (lineEnds.test(type)) return '\n';
  return type === 'th_close' || type === 'td_close' ? '\t' : '';
}

/** What stands for an image: its text without marks, but as it was written where that would lose an address or title. */
export function alternativeText({ children, content }: Token): string {
  return losesNames(children) ? content : plainText(children ?? []);
}

function losesNames(children: readonly Token[] | null): boolean {
  // Of tags only abbreviations have a title.
  const hasName = ({ type, attrs }: Token) =>
    /^(?:link_open|image)$/.test(type) || (type === 'tag_open' && attrs !== null);
  return children?.some(hasName) === true;
}

/** HTML comments in the text of an image that does not show them, by their places in it. */
export function commentsIn({ children }: Token): Stretch[] {
  if (losesNames(children)) return [];
  return (children ?? []).flatMap(({ type, map }) => (type === 'html_comment' && map ? [map] : []));
}

/** The text of inline tokens as it is read aloud: images by their alternative text, no markup. */
export function plainText(tokens: readonly Token[]): string {
  return tokens.map(textOf).join('');
}

function textOf(token: Token): string {
  const { type, info, content } = token;
  if (/^(?:text|code_inline|formula|tag_(?:open|close))$/.test(type)) return info === paired ? '' : content;
  if (/^(?:softbreak|hardbreak|tag_break)$/.test(type)) return '\n';
  return type === 'image' ? alternativeText(token) : '';
}

/** A heading of a rendered post, for a table of contents. */
export type Heading = {
  /** Its `id` in the HTML, always beginning `h-`, so that none can stand for an element of the page around it. */
  readonly id: string;
  /** Level in the HTML, 2 to 6. */
  readonly level: number;
  /** Plain text, at most 200 code points. */
  readonly text: string;
};

/** Headings by their opening token, and what links within the post may call them. */
export type Outline = {
  readonly headings: ReadonlyMap<Token, Heading>;
  readonly names: ReadonlyMap<string, HeadingName>;
};

/** The id of a heading, and the longest fragment that stands for it, in UTF-16 units. */
type HeadingName = { readonly id: string; readonly longest: number };

/** Longest slug and longest text of a heading, in code points. */
const longestSlug = 100;
const longestText = 200;

/**
 * Levels, ids and texts of all headings. The highest level used becomes h2, since the page has its title as its
 * one h1, and the others keep their distance to it. Ids are GitHub's slugs behind a prefix.
 */
export function outline(tokens: readonly Token[]): Outline {
  const headings = new Map<Token, Heading>();
  const names = new Map<string, HeadingName>();
  const ids = new Set<string>();
  const next = new Map<string, number>();
  const opens = tokens.flatMap((token, at) => (token.type === 'heading_open' ? [{ token, at }] : []));
  const levelOf = ({ tag }: Token) => Number(tag.slice(1));
  const highest = opens.reduce((least, { token }) => Math.min(least, levelOf(token)), 6);
  for (const { token, at } of opens) {
    const text = onOneLine(plainText(tokens[at + 1]?.children ?? []));
    const id = uniqueId(prefix + (slugOf(text) || 'section'), ids, next);
    const level = Math.min(6, levelOf(token) - highest + 2);
    headings.set(token, { id, level, text: firstCodePoints(text, longestText) });
    const name = { id, longest: Math.max(text.length, id.length - prefix.length) };
    const uncut = trimHyphens(githubSlug(text));
    if (uncut !== '' && !names.has(prefix + uncut)) names.set(prefix + uncut, name);
    names.set(id, name);
  }
  return { headings, names };
}

/**
 * The `id` here of a fragment written for GitHub's ids, if the post has it: `Install-it` is `h-install-it`. Readers see
 * only the id, so a fragment that says more than the heading stands for none.
 */
export function resolveFragment(fragment: string, names: Outline['names']): string | undefined {
  const name = decode(fragment);
  if (names.has(name)) return name;
  const { id, longest = 0 } = names.get(prefix + trimHyphens(githubSlug(name))) ?? {};
  return name.length <= longest ? id : undefined;
}

const prefix = 'h-';

function slugOf(text: string): string {
  return trimHyphens(firstCodePoints(githubSlug(text.slice(0, longestSlug * 4)), longestSlug));
}

/** GitHub's rule: lower case, letters, digits, hyphens and underscores kept, spaces to hyphens. */
function githubSlug(text: string): string {
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(/\p{Default_Ignorable_Code_Point}|[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/gu, '-');
}

function trimHyphens(slug: string): string {
  return slug.replace(/^-+|-+$/g, '');
}

/** The id, or the first free of `-1`, `-2`, …: each try uses up one taken id, so all together are linear. */
function uniqueId(wanted: string, taken: Set<string>, next: Map<string, number>): string {
  let id = wanted;
  for (let n = next.get(wanted) ?? 1; taken.has(id); n++) {
    id = `${wanted}-${n}`;
    next.set(wanted, n + 1);
  }
  taken.add(id);
  return id;
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** Longest excerpt, in code points, its ellipsis included. */
const excerptLength = 300;

/** Longest excerpt in lists and previews of pages. */
const previewLength = 160;

/** The beginning of an excerpt, for lists and previews. */
export function previewOf(excerpt: string): string {
  return excerptOf(excerpt, previewLength);
}

/** The beginning of a plain text on one line, at most so many code points: whole sentences, or else cut between words. */
export function excerptOf(text: string, length = excerptLength): string {
  // Few texts have so many blanks that their beginning gives no more than is wanted.
  const near = onOneLine(text.slice(0, length * 4));
  const line = near.length > length * 3 ? near : onOneLine(text.slice(0, length * 10));
  const whole = firstCodePoints(line, length);
  if (whole === line) return line;
  const end = sentenceEnd(line, whole.length);
  if (end >= length / 2) return line.slice(0, end);
  const cut = firstCodePoints(line, length - 1);
  // A cut within a word is mended only where words have spaces between them.
  const words = /^(.*\S)\s+\S*$/su.exec(cut)?.[1] ?? '';
  const atWord = words.length >= (length * 2) / 3 ? words : cut;
  return `${atWord.replace(/[\s,;:–—-]+$/u, '')}…`;
}

const ideograph = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/gv;
const word =
  /[[\p{L}\p{N}]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]][[\p{L}\p{N}\p{M}'’_\-]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]]*/gv;

/** Words of a plain text, for reading time; two Chinese or Japanese characters count as one, about their ratio. */
export function countWords(text: string): number {
  const words = text.match(word)?.length ?? 0;
  const ideographs = text.match(ideograph)?.length ?? 0;
  return words + Math.ceil(ideographs / 2);
}

const otherThanBlanks = /\s\s|[^\S ]|^ | $/u;

function onOneLine(text: string): string {
  // To look is a tenth of the work, and what was stored is on one line.
  return otherThanBlanks.test(text) ? text.replace(/\s+/gu, ' ').trim() : text;
}

/** The first so many code points of a text. */
function firstCodePoints(text: string, count: number): string {
  if (text.length <= count) return text;
  const units = text.slice(0, count);
  if (!/[\ud800-\udfff]/.test(units)) return units;
  const codePoints = Array.from(text.slice(0, count * 2));
  return codePoints.slice(0, count).join('');
}
