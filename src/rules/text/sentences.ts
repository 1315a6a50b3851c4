import { beyondLatin } from './scripts.ts';

const spacedStop = (terminals: string) => String.raw`(?<spaced>[${terminals}]+)["'”’»)\]]*(?=\s)`;
/** What can end a sentence, with the quotation marks and brackets behind it. */
const stops = new RegExp(
  [
    spacedStop(String.raw`\p{Sentence_Terminal}…`),
    // A particle behind 「…。」 goes on with the sentence.
    String.raw`[。！？｡]+(?:[」』”’）》】]+(?![\p{sc=Hiragana}」』”’）》】])|(?![」』”’）》】。！？｡]))`,
  ].join('|'),
  'gu',
);

/** The same of a text without what is {@link beyondLatin}: of the long table of terminals, those that it can have. */
const stopsOfLatin = new RegExp(spacedStop(String.raw`.!?\u2024\u203c\u203d\u2047-\u2049…`), 'g');

/** What a name, or a word of the same sentence, stands behind. */
const beforeName = new Set(
  'Mr Mrs Ms Mx Dr Drs Prof Rev Hon Gen Col Capt Cmdr Adm Maj Lt Sgt Gov Pres Sen Rep St Mt Ft Messrs vs viz cf al approx MM Mlle Mme Hr Hrn Fr Sr Sra Srta Dra Sig Dott Ing Dipl bzw ca vgl ggf sog inkl exkl evtl zzgl Mio Mrd EE UU ex'.split(
    ' ',
  ),
);
/** What a number stands behind. */
const beforeNumber = new Set(
  'no nos nr fig figs eq eqs sec ch chap vol art p pp pt par ver v jan feb mar apr jun jul aug sep sept oct nov dec abb abs bd kap tab tel str pos pág núm'.split(
    ' ',
  ),
);

/** More than the longest of these has: a longer word is none of them, also where its end alone is looked at. */
const longestWord = 12;

/** The end of the last sentence of a text on one line that has ended by that place; 0 where none has. */
export function sentenceEnd(line: string, place: number): number {
  const found: RegExpExecArray[] = [];
  for (const stop of line.matchAll(beyondLatin.test(line) ? stops : stopsOfLatin)) {
    if (stop.index + stop[0].length > place) break;
    found.push(stop);
  }
  // From behind, where the first that ends a sentence is the last.
  for (let stop = found.pop(); stop; stop = found.pop()) {
    const end = stop.index + stop[0].length;
    const spaced = stop.groups?.['spaced'];
    if (spaced === undefined || ends(line.slice(0, stop.index), spaced, line.slice(end))) return end;
  }
  return 0;
}

/** Whether a sentence ends with this stop: not with one of an abbreviation, initial, ordinal or ellipsis within it. */
function ends(before: string, stop: string, after: string): boolean {
  if (/^\s+["'“‘«([]*\p{Ll}/u.test(after)) return false;
  if (stop !== '.') return true;
  const near = before.slice(-longestWord);
  if (/(?<![\p{L}\p{N}\p{M}])\p{L}\p{M}*$|(?<![\p{L}\p{N}.,:/-])\d{1,2}$/u.test(near)) return false;
  const word = /[\p{L}\p{M}]*$/u.exec(near)?.[0] ?? '';
  if (beforeName.has(word)) return false;
  return !(beforeNumber.has(word.toLowerCase()) && /^\s+\d/.test(after));
}
