/** Scripts by their ISO 15924 code: what their letters are, and the language most often written in them. */
const scripts = [
  ['Arab', /\p{Script=Arabic}/gu, 'ar'],
  ['Armn', /\p{Script=Armenian}/gu, 'hy'],
  ['Beng', /\p{Script=Bengali}/gu, 'bn'],
  ['Cyrl', /\p{Script=Cyrillic}/gu, 'ru'],
  ['Deva', /\p{Script=Devanagari}/gu, 'hi'],
  ['Ethi', /\p{Script=Ethiopic}/gu, 'am'],
  ['Geor', /\p{Script=Georgian}/gu, 'ka'],
  ['Grek', /\p{Script=Greek}/gu, 'el'],
  ['Gujr', /\p{Script=Gujarati}/gu, 'gu'],
  ['Guru', /\p{Script=Gurmukhi}/gu, 'pa'],
  ['Hani', /\p{Script=Han}/gu, 'zh'],
  ['Hebr', /\p{Script=Hebrew}/gu, 'he'],
  ['Jpan', /[\p{Script=Hiragana}\p{Script=Katakana}]/gu, 'ja'],
  ['Khmr', /\p{Script=Khmer}/gu, 'km'],
  ['Knda', /\p{Script=Kannada}/gu, 'kn'],
  ['Kore', /\p{Script=Hangul}/gu, 'ko'],
  ['Laoo', /\p{Script=Lao}/gu, 'lo'],
  ['Mlym', /\p{Script=Malayalam}/gu, 'ml'],
  ['Mymr', /\p{Script=Myanmar}/gu, 'my'],
  ['Sinh', /\p{Script=Sinhala}/gu, 'si'],
  ['Taml', /\p{Script=Tamil}/gu, 'ta'],
  ['Telu', /\p{Script=Telugu}/gu, 'te'],
  ['Thai', /\p{Script=Thai}/gu, 'th'],
  ['Tibt', /\p{Script=Tibetan}/gu, 'bo'],
] as const;

/** A script, and the language that a text in it is most often in: not a claim, but a tag to offer. */
export type Script = { readonly code: (typeof scripts)[number][0]; readonly language: string };

/** Characters that are looked at. */
const enough = 500;
/** What Latin letters, their marks and usual punctuation are not: a few ranges, where scripts have tables of many. */
export const beyondLatin = /[^\s!-\u036f\u1e00-\u1eff\u2000-\u20cf]/;
/** Letters beyond those of Latin alphabets. */
const otherLetters = /[^\P{L}\p{Script=Latin}]/u;
/** A Chinese character says about as much as two Latin letters. */
const weightOfHan = 2;
/** Japanese has at least one syllable beside the weight of ten Chinese characters. */
const hanForKana = 20;

/** The script that most of a text is written in, other than the Latin; null if that or none. */
export function scriptOf(text: string): Script | null {
  const start = text.slice(0, enough);
  // Nearly all texts.
  if (!beyondLatin.test(start) || !otherLetters.test(start)) return null;
  const count = (letters: RegExp) => start.match(letters)?.length ?? 0;
  const counts = new Map<string, number>(scripts.map(([code, letters]) => [code, count(letters)]));
  const [han, kana] = [(counts.get('Hani') ?? 0) * weightOfHan, counts.get('Jpan') ?? 0];
  const isJapanese = kana > 0 && kana * hanForKana >= han;
  counts.set('Hani', isJapanese ? 0 : han).set('Jpan', isJapanese ? kana + han : kana);
  const [best] = scripts.toSorted(([a], [b]) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const latin = count(/\p{Script=Latin}/gu);
  if (best === undefined || (counts.get(best[0]) ?? 0) <= latin) return null;
  return { code: best[0], language: best[2] };
}
