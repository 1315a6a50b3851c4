import type { Token } from 'markdown-it';
import { invisible } from '../parse/text.ts';

const special = /[&<>"]/g;
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text for an element's content or a double-quoted attribute. */
export function escape(text: string): string {
  return text.replace(special, (char) => entities[char] ?? char);
}

/** Attribute `title` of a link or image, if it has one; nobody would see invisible characters in it. */
export function titleOf(token: Token): string {
  const title = String(token.attrGet('title') ?? '').replace(new RegExp(invisible, 'gu'), '');
  return title === '' ? '' : ` title="${escape(title)}"`;
}

/** Each outermost block takes its direction from its text; what is inside follows, so that bullets line up. */
export function direction(token: Token): string {
  return token.level === 0 ? ' dir="auto"' : '';
}

/** The tokens whose HTML is always the same. */
export const fixedHtml: ReadonlyMap<string, string> = new Map([
  ['paragraph_close', '</p>\n'],
  ['blockquote_close', '</blockquote>\n'],
  ['bullet_list_close', '</ul>\n'],
  ['ordered_list_close', '</ol>\n'],
  ['list_item_close', '</li>\n'],
  ['hr', '<hr>\n'],
  ['table_close', '</table>\n</div>\n'],
  ['thead_open', '<thead>\n'],
  ['thead_close', '</thead>\n'],
  ['tbody_open', '<tbody>\n'],
  ['tbody_close', '</tbody>\n'],
  ['tr_open', '<tr>\n'],
  ['tr_close', '</tr>\n'],
  ['th_close', '</th>\n'],
  ['td_close', '</td>\n'],
  ['hardbreak', '<br>\n'],
  ['tag_break', '<br>'],
  ['em_open', '<em>'],
  ['em_close', '</em>'],
  ['strong_open', '<strong>'],
  ['strong_close', '</strong>'],
  ['del_open', '<del>'],
  ['del_close', '</del>'],
  ['link_close', '</a>'],
]);

/** What separates the words before and after a token in plain text. */
export const fixedText: ReadonlyMap<string, string> = new Map([
  ['paragraph_close', '\n'],
  ['heading_close', '\n'],
  ['summary_close', '\n'],
  ['tr_close', '\n'],
  ['th_close', '\t'],
  ['td_close', '\t'],
  ['hardbreak', '\n'],
  ['tag_break', '\n'],
]);
