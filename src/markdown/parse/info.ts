import type { MarkdownIt, Token } from 'markdown-it';
import type { Stretch } from '../unseen.ts';
import { invisible, spelled } from '../write/tokens.ts';

/** Longest name of a language, in UTF-16 units. */
const longestName = 32;
const plain = /^[\w+#-]{0,32}$/;
const titleWord = /(?<=^|\s)title=(?:"([^"]*)"|'([^']*)'|([^\s"']+))/;

/**
 * Of a code fence's info string the first word is shown as its language, and `title=` as its title. `meta.unseen` is
 * the rest, counted from the end of the fence's line.
 */
export function infoStrings(md: MarkdownIt): void {
  md.core.ruler.push('info_strings', (state) => {
    for (const token of state.tokens)
      if (token.type === 'fence' && !plain.test(token.info)) readInfo(token, md.utils.unescapeAll);
  });
}

function readInfo(token: Token, unescape: (text: string) => string): void {
  const { info } = token;
  const first = /^\s*(?!title=)\S*/.exec(info)?.[0] ?? '';
  const word = first
    .trimStart()
    .slice(0, longestName)
    .replace(/[\ud800-\udbff]$/, '');
  const wordEnd = first.length - first.trimStart().length + word.length;
  const title = titleWord.exec(info.slice(wordEnd));
  const titleStart = wordEnd + (title?.index ?? info.length - wordEnd);
  const titleEnd = titleStart + (title?.[0].length ?? 0);

  const language = unescape(word);
  token.info = /\s/.test(language) || invisible.test(language) ? word : language;
  const text = spelled(unescape(title?.slice(1).find((value) => value) ?? ''));
  if (text !== '') token.attrSet('title', text);
  // One space stays between the language and the title.
  const between = title !== null && word !== '' ? titleStart - 1 : titleStart;
  const rest: Stretch[] = [
    [wordEnd, between],
    [titleEnd, info.length],
  ];
  const unseen = rest.filter(([from, to]) => info.slice(from, to).trim() !== '');
  token.meta = { unseen: unseen.map(([from, to]) => [from - info.length, to - info.length]) };
}
