/** Words that say little about a text. */
const common = new Set(
  'a an and are as at be but by can do does for from had has have how i if in into is it its me my no not of on or our so than that the their then there these they this to was we were what when where which who why will with you your'.split(
    ' ',
  ),
);

export function isCommonWord(term: string): boolean {
  return common.has(term);
}

/** Other forms that an English word may have in a text: plural, past, British or American. Lightly: no irregular ones. */
export function otherForms(word: string): string[] {
  if (!/^[a-z]{3,20}$/.test(word) || isCommonWord(word)) return [];
  const forms = new Set(stems(word).flatMap(formsOf));
  for (const form of [word, ...forms]) forms.add(overseas(form));
  forms.delete(word);
  return [...forms].slice(0, mostForms);
}

const mostForms = 24;

/** The other spelling of `-ise` and `-ize`, `-our` and `-or`; mostly of no word. */
function overseas(word: string): string {
  return word
    .replace(/([iy])([sz])(?=(?:e|ed|es|er|ers|ing|ation|ations)$)/, (_, vowel: string, sign: string) => {
      return vowel + (sign === 's' ? 'z' : 's');
    })
    .replace(/(?<=[a-z]{2})(ou?r)(?=(?:s|ed|ing|al|ful)?$)/, (ending) => (ending === 'or' ? 'our' : 'or'));
}

/** What the word may have been made of; it may itself be a stem. */
function stems(word: string): string[] {
  const found = [word];
  const without = (ending: string) => word.slice(0, -ending.length);
  if (/[^aeiou]ies$/.test(word)) found.push(`${without('ies')}y`);
  else if (/(?:s|x|z|ch|sh|o)es$/.test(word)) found.push(without('es'), without('s'));
  else if (/[^su]s$/.test(word) || /[aeo]us$/.test(word)) found.push(without('s'));
  if (/[^aeiou]ied$/.test(word)) found.push(`${without('ied')}y`);
  for (const ending of ['ing', 'ed', 'er', 'ers']) {
    if (!word.endsWith(ending)) continue;
    const stem = without(ending);
    if (!/[aeiouy]/.test(stem) || stem.length < 2) continue;
    found.push(stem, `${stem}e`);
    if (/([^aeiouy])\1$/.test(stem)) found.push(stem.slice(0, -1));
  }
  return found.filter((stem) => stem.length >= 2);
}

function formsOf(stem: string): string[] {
  if (stem.endsWith('e')) return [stem, `${stem}s`, `${stem}d`, `${stem.slice(0, -1)}ing`, `${stem}r`];
  if (/[^aeiou]y$/.test(stem)) {
    const root = stem.slice(0, -1);
    return [stem, `${root}ies`, `${root}ied`, `${stem}ing`];
  }
  const plural = /(?:s|x|z|ch|sh)$/.test(stem) ? `${stem}es` : `${stem}s`;
  // A short vowel before one consonant doubles that: run, running.
  const doubled = /^[^aeiou]*[aeiou][^aeiouwxy]$/.test(stem) ? stem + stem.at(-1) : stem;
  const british = /[^aeiou][aeiou]l$/.test(stem) && doubled === stem ? [`${stem}led`, `${stem}ling`] : [];
  return [stem, plural, `${doubled}ed`, `${doubled}ing`, `${doubled}er`, ...british];
}
