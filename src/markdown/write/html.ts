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

/** Elements without attributes: inside text, on lines of their own, and those of which only the end is so. */
const marks = new Set(['em', 'strong', 'del']);
const rows = new Set(['thead', 'tbody', 'tr']);
const blocks = new Set(['p', 'blockquote', 'ul', 'ol', 'li', 'th', 'td']);

const fixed: Readonly<Record<string, string>> = {
  link_close: '</a>',
  table_close: '</table>\n</div>\n',
  hr: '<hr>\n',
  hardbreak: '<br>\n',
  tag_break: '<br>',
};

/** The HTML of a token that depends on nothing else; undefined for other tokens. */
export function htmlOf(token: Token): string | undefined {
  const { type, tag, nesting } = token;
  if (marks.has(tag)) return nesting === 1 ? `<${tag}>` : `</${tag}>`;
  if (rows.has(tag)) return nesting === 1 ? `<${tag}>\n` : `</${tag}>\n`;
  if (nesting === -1 && blocks.has(tag)) return `</${tag}>\n`;
  switch (type) {
    case 'paragraph_open':
      return `<p${direction(token)}>`;
    case 'blockquote_open':
    case 'bullet_list_open':
      return `<${tag}${direction(token)}>\n`;
    case 'ordered_list_open': {
      const start = token.attrGet('start');
      return `<ol${start === null ? '' : ` start="${Number(start)}"`}${direction(token)}>\n`;
    }
    case 'th_open':
    case 'td_open': {
      const align = /left|center|right/.exec(String(token.attrGet('style')))?.[0];
      return align === undefined ? `<${tag}>` : `<${tag} class="${align}">`;
    }
    default:
      return fixed[type];
  }
}

const lineEnds = /^(?:(?:paragraph|heading|summary|tr)_close|hardbreak|tag_break)$/;

/** What separates the words before and after a token in plain text. */
export function separatorOf({ type }: Token): string {
  if (lineEnds.test(type)) return '\n';
  return type === 'th_close' || type === 'td_close' ? '\t' : '';
}
