import { quoted } from './text.ts';

/** Most characters of an unknown name that a message repeats. */
export const longestName = 64;

/** A warning of an unknown name, cut and escaped, with the known one that was meant. */
export function unknownFieldWarning(
  kind: 'field' | 'query parameter',
  name: string,
  known: readonly string[],
): string {
  const advice = kind === 'query parameter' ? adviceOnList(name, known) : null;
  return `unknown ${kind} ${quoted(name, longestName)} ignored${advice ?? didYouMean(name, known) ?? ''}`;
}

/** What is wrong with an unknown name where none may be ignored, as a predicate. */
export function unknownFieldFault(name: string, known: readonly string[], reason: string | null): string {
  const told = reason === null ? (didYouMean(name, known) ?? takes(known)) : `: ${reason}`;
  return `is not a field of this call${told}`;
}

function takes(known: readonly string[]): string {
  return known.length === 0 ? '' : `, which takes ${known.map((each) => `'${each}'`).join(', ')}`;
}

function didYouMean(name: string, known: readonly string[]): string | null {
  const plain = name.length > longestName ? '' : plainForm(name);
  const synonym = known.find((candidate) => otherNames[candidate]?.split(' ').includes(plain));
  const near = synonym ?? nearest(name, known);
  return near === null ? null : `; did you mean '${near}'?`;
}

/** Of a name that a list does not take and none is near to: what it does take. */
function adviceOnList(name: string, known: readonly string[]): string | null {
  if (!known.includes('cursor')) return null;
  if (['page', 'pagenumber', 'pageno'].includes(plainForm(name)))
    return `: there are no numbered pages; use ${known.includes('offset') ? "'cursor' or 'offset'" : "'cursor'"}`;
  return (
    didYouMean(name, known) ??
    `: this list takes ${known.map((each) => `'${each}'`).join(', ')} and nothing else`
  );
}

/** Names that other services, and language models from memory, use for ours, in plain form, likeliest first. */
const otherNames: Readonly<Record<string, string>> = {
  content: 'body text markdown md html contentmarkdown bodymarkdown message comment',
  title: 'heading headline subject name',
  status: 'draft isdraft published ispublished publish public state visibility',
  slug: 'username handle permalink subdomain urlname',
  tags: 'categories category labels keywords topics',
  lang: 'language locale',
  excerpt: 'summary abstract description subtitle',
  name: 'displayname agentname fullname username author',
  bio: 'description about biography summary',
  avatarUrl: 'avatar picture image imageurl photo icon',
  email: 'mail emailaddress address',
  token: 'code verificationtoken verificationcode verifytoken',
  vote: 'value score direction rating type',
  q: 'query search term keywords keyword text',
  agent: 'author blog user username slug',
  limit: 'count size pagesize perpage max maxresults first',
  offset: 'skip start',
  cursor: 'pagetoken next nextcursor continuation after',
  since: 'from after publishedafter startdate date',
  sort: 'order orderby sortby',
  postId: 'id post slug',
};

/**
 * The known word that `word` was probably meant to be: one that differs only in case, hyphens and
 * underscores, else the nearest within two edits and less than half of the word's length. Null if none.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  if (word.length > 2 * longestName) return null;
  const plain = plainForm(word);
  const same = known.find((candidate) => plainForm(candidate) === plain);
  if (same !== undefined) return same;

  let best: string | null = null;
  let bestDistance = Math.min(3, word.length / 2);
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** A name without what people write it in: case, hyphens, underscores. */
export function plainForm(word: string): string {
  return word.toLowerCase().replace(/[_-]/g, '');
}

/**
 * Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, each letter once. Infinity may
 * stand for what is more than `most`.
 */
export function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return Infinity;
  const at = (row: readonly number[], index: number) => row[index] ?? Infinity;
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? at(older, j - 2) + 1 : Infinity;
      current[j] = Math.min(at(previous, j) + 1, at(current, j - 1) + 1, substitution, swap);
    }
    if (current.every((distance) => distance > most)) return Infinity;
    [older, previous] = [previous, current];
  }
  return at(previous, b.length);
}
