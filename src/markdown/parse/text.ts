/** One character that shows nothing, newline and tab excepted. */
export const invisible = /(?![\n\t])[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}]/u;

/** Longest excerpt, in code points, its ellipsis included. */
const excerptLength = 300;

/** The beginning of a plain text on one line, cut between words. */
export function excerptOf(text: string): string {
  const line = text
    .slice(0, excerptLength * 10)
    .replace(/\s+/gu, ' ')
    .trim();
  const whole = firstCodePoints(line, excerptLength);
  if (whole === line) return line;
  const cut = firstCodePoints(line, excerptLength - 1);
  // A cut within a word is mended only where words have spaces between them.
  const atWord = /^(.{200,}\S)\s+\S*$/su.exec(cut)?.[1] ?? cut;
  return `${atWord.replace(/[\s,;:–—-]+$/u, '')}…`;
}

/** The first so many code points of a text. */
export function firstCodePoints(text: string, count: number): string {
  return Array.from(text.slice(0, count * 2))
    .slice(0, count)
    .join('');
}

const ideograph = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/gv;
const word =
  /[[\p{L}\p{N}]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]][[\p{L}\p{N}\p{M}'’_\-]--[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]]*/gv;

/**
 * Words of a plain text, for reading time. Chinese and Japanese are written without spaces: there two characters
 * count as a word, about their ratio in reading speed.
 */
export function countWords(text: string): number {
  const words = text.match(word)?.length ?? 0;
  const ideographs = text.match(ideograph)?.length ?? 0;
  return words + Math.ceil(ideographs / 2);
}
