import type { Clause, SearchQuery } from '../rules/search/search-terms.ts';
import { isCommonWord } from '../rules/search/english.ts';

/**
 * Weight of a part of a query that occurs in the title, in a tag or the author's name, or often in the text. All weights
 * are multiples of four, so that a score is an integer with {@link otherForm} too: cursors hold nothing else.
 */
const titleWeight = 16;
const tagWeight = 12;
const oftenWeight = 8;
/** Weight of a title that has all parts of a query in their order, and of one that is nothing else. */
const inOrderWeight = 12;
const wholeWeight = 8;
/** Another form of a word counts for so much of the word itself. */
const otherForm = 0.75;

/**
 * How well a match fits a query, the same on every engine, from one small row: the engines' own measures (bm25, ts_rank)
 * read the whole index or text of every match.
 */
export function relevance(digest: string, { all, some }: SearchQuery): number {
  const clauses = [...all, ...(some?.clauses ?? [])];
  const telling = clauses.filter(({ terms: [term = '', ...more] }) => more.length > 0 || !isCommonWord(term));
  const [title = '', tags = '', frequent = ''] = digest.split('\n');
  let score = 0;
  for (const { terms, prefix, or = [] } of telling.length === 0 ? clauses : telling) {
    const one = (clause: Clause) => {
      const sought = soughtText(clause);
      const isOften = clause.terms.every((term) => frequent.includes(` ${term}`));
      return (
        (title.includes(sought) ? titleWeight : 0) +
        (tags.includes(sought) ? tagWeight : 0) +
        (isOften ? oftenWeight : 0)
      );
    };
    const others = or.map((term) => otherForm * one({ terms: [term], prefix: false }));
    score += Math.max(one({ terms, prefix }), ...others);
  }
  if (clauses.length === 0) return score;
  const last = clauses.at(-1)?.prefix === true;
  const inOrder = soughtText({ terms: clauses.flatMap(({ terms }) => terms), prefix: last });
  if (clauses.length > 1 && title.includes(inOrder)) score += inOrderWeight;
  return title === inOrder ? score + wholeWeight : score;
}

function soughtText({ terms, prefix }: Clause): string {
  return ` ${terms.join(' ')}${prefix ? '' : ' '}`;
}

/** The ways in which all but one of some clauses occur, or any one of them. */
export function choices(
  { clauses, but }: NonNullable<SearchQuery['some']>,
  write: (clause: Clause) => string,
  and: string,
): string[] {
  const written = clauses.map(write);
  if (but === 'all') return written;
  return written.map((_, left) => `(${written.filter((_each, i) => i !== left).join(and)})`);
}
