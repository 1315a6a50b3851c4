import { isCommonWord, otherForms } from './english.ts';
import { isUnspaced, leastPrefix, type Clause, type SearchQuery } from './search-terms.ts';

/** How a query can be understood, from the narrowest to the widest. */
export type SearchWay = {
  readonly query: SearchQuery;
  /** What was looked for instead; null for the query as it was written. */
  readonly instead: string | null;
};

/** Words in which the widest ways look for some only, at most. */
const mostChoices = 8;

/**
 * The query as it is written; then its last word as the beginning of one; then its words in any form; then all of them
 * but one; then any. What stands in quotes, and what must not occur, stays as it is.
 */
export function searchWays({ all, none }: SearchQuery): SearchWay[] {
  const ways: SearchWay[] = [{ query: { all, none }, instead: null }];
  const fixed = all.filter(({ quoted }) => quoted);
  const words = all.filter(({ quoted }) => !quoted).flatMap(apart);
  const last = all.at(-1);
  if (last && !last.quoted && !last.prefix && canBegin(last.terms.at(-1) ?? ''))
    ways.push({
      query: { all: [...all.slice(0, -1), { ...last, prefix: true }], none },
      instead: `words that begin with '${last.terms.at(-1)}'`,
    });
  const inForms = words.map(inAnyForm);
  if (words.length > 0)
    ways.push({ query: { all: [...fixed, ...inForms], none }, instead: 'other forms of the words' });
  const telling = inForms.filter(({ terms: [term = ''] }) => !isCommonWord(term)).slice(0, mostChoices);
  for (const but of ['one', 'all'] as const) {
    if (telling.length < (but === 'one' ? 3 : 2)) continue;
    const instead = but === 'one' ? 'all of the words but one' : 'any of the words';
    ways.push({ query: { all: fixed, none, some: { clauses: telling, but } }, instead });
  }
  return ways;
}

function canBegin(term: string): boolean {
  return term.length >= leastPrefix && !isUnspaced.test(term) && !isCommonWord(term);
}

/** The words of what is written as one (`zero-knowledge`), but not the pairs of characters of one. */
function apart(clause: Clause): Clause[] {
  const { terms, prefix } = clause;
  if (
    terms.length === 1 ||
    terms.some((term) => isUnspaced.test(term) || !/^[\p{L}\p{N}\p{M}]+$/u.test(term))
  )
    return [clause];
  return terms.map((term, i) => ({ terms: [term], prefix: prefix && i === terms.length - 1 }));
}

function inAnyForm(clause: Clause): Clause {
  const [term = '', ...more] = clause.terms;
  if (more.length > 0 || clause.prefix) return clause;
  // Umlauts as they are typed without their keys: `Fussgaenger`.
  const plain = term.replace(/(?<=[aou])e/g, '');
  const forms = [...otherForms(term), ...(plain === term ? [] : [plain])];
  return forms.length === 0 ? clause : { ...clause, or: [...(clause.or ?? []), ...forms] };
}
