import type { Clause, SearchQuery } from '../rules/search/search-terms.ts';

/** Weight of a part of a query that occurs in the title, in a tag, or often in the text. */
const titleWeight = 4;
const tagWeight = 3;
const oftenWeight = 2;

/**
 * How well a match fits a query, the same on every engine, from one small row: the engines' own measures (bm25, ts_rank)
 * read the whole index or text of every match.
 */
export function relevance(digest: string, { all }: SearchQuery): number {
  const [title = '', tags = '', frequent = ''] = digest.split('\n');
  let score = 0;
  for (const clause of all) {
    const sought = soughtText(clause);
    if (title.includes(sought)) score += titleWeight;
    if (tags.includes(sought)) score += tagWeight;
    if (clause.terms.every((term) => frequent.includes(` ${term}`))) score += oftenWeight;
  }
  return score;
}

function soughtText({ terms, prefix }: Clause): string {
  return ` ${terms.join(' ')}${prefix ? '' : ' '}`;
}
