import type { Token } from 'markdown-it';
import { isBlank } from '../../rules/text.ts';
import { paired, plainText } from './tokens.ts';

/**
 * What is to be written behind a link or abbreviation that opens here, because nothing else would show it: the address
 * of a link whose text shows nothing, and a title that cannot be pointed at. Empty for all else.
 */
export function nameToShow(tokens: readonly Token[], at: number): string {
  const opener = tokens[at];
  if (opener === undefined || !opensName(opener)) return '';
  const title = String(opener.attrGet('title') ?? '');
  const texts = textsWithin(tokens, at);
  if (texts.length === 0) return String(opener.attrGet('href') || title || '[]()');
  return texts.every(({ isCovered }) => isCovered) ? title : '';
}

/** What shows something within a link or abbreviation, and whether another title covers its own. */
function textsWithin(tokens: readonly Token[], at: number): { readonly isCovered: boolean }[] {
  const texts: { isCovered: boolean }[] = [];
  /** Of each link and abbreviation that is open, whether it has a title. */
  const open: boolean[] = [];
  for (let next = at + 1; next < tokens.length; next++) {
    const token = tokens[next];
    if (token === undefined) break;
    const hasTitle = Boolean(token.attrGet('title'));
    if (opensName(token)) open.push(hasTitle);
    else if (closesName(token) && open.pop() === undefined) break;
    else if (token.type === 'image' || !isBlank(plainText([token])))
      texts.push({ isCovered: hasTitle || open.includes(true) });
  }
  return texts;
}

function opensName({ type, tag, info }: Token): boolean {
  return type === 'link_open' || (type === 'tag_open' && tag === 'abbr' && info === paired);
}

function closesName({ type, tag, info }: Token): boolean {
  return type === 'link_close' || (type === 'tag_close' && tag === 'abbr' && info === paired);
}
