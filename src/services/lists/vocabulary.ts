import type { Context } from '../../context.ts';
import { longWork } from '../../platform/slices.ts';
import { editDistance } from '../../rules/suggest.ts';
import { otherForms } from '../../rules/search/english.ts';

/** Newest posts whose words are read, how many at once, and how many words are kept. */
const mostPosts = 12_000;
const postsAtOnce = 200;
const mostWords = 50_000;
/** How long the words are used, ms. */
const usedFor = 60_000;
/** Letters of a word that may be misspelt, and from how many on it may be so twice. */
const leastLetters = 5;
const mostLetters = 30;
const longWord = 8;
/**
 * What the near words of one search may cost, and how much of that comes before the event loop looks at what else has
 * come in, some ms. A word that is looked at costs 1, one that is compared letter by letter 100: sixteen misspelt words,
 * looked for in 25,000 of documents, cost 470,000.
 */
const mostCost = 2_000_000;
const costATurn = 20_000;
const costOfComparing = 100;

type Vocabulary = {
  readonly at: number;
  readonly counts: Map<string, number>;
  /** Number of the newest entry of the index that was read. */
  newest: number;
  /** The last reading, so that there is one at a time. */
  reading: Promise<void>;
};

const read = new WeakMap<object, Vocabulary>();

/** Near words of titles, tags, names and texts of public posts for words that none of them has. Empty if all are known. */
export async function nearWords(ctx: Context, sought: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const unsure = sought.filter((word) => mayBeMisspelt.test(word));
  if (unsure.length === 0) return found;
  const words = await vocabulary(ctx);
  const cost: Cost = { inAll: 0, inTurn: 0, nextTurn: longWork() };
  for (const word of unsure) {
    if ([word, ...otherForms(word)].some((form) => words.has(form))) continue;
    const near = (await nearest(word, words, cost)) ?? inTwo(word, words);
    if (near !== null) found.set(word, near);
  }
  return found;
}

const mayBeMisspelt = new RegExp(`^[a-z]{${leastLetters},${mostLetters}}$`);

/** What was spent on the near words of a search, in all and in this turn of the event loop. */
export type Cost = { inAll: number; inTurn: number; readonly nextTurn: () => Promise<void> };

/**
 * The commonest of the nearest words, of those that are looked at within the cost. Few letters are misspelt at the
 * beginning, so only words that begin alike count.
 */
export async function nearest(
  word: string,
  words: ReadonlyMap<string, number>,
  cost: Cost,
): Promise<string | null> {
  const most = word.length >= longWord ? 2 : 1;
  const letters = lettersOf(word);
  let best: { word: string; distance: number; count: number } | null = null;
  for (const [known, count] of words) {
    if (cost.inAll >= mostCost) break;
    if (endsTurn(cost, 1)) await cost.nextTurn();
    if (known[0] !== word[0]) continue;
    for (const form of known.endsWith('ies') ? [known, known.replace(/ies$/, 'y')] : [known]) {
      if (Math.abs(form.length - word.length) > most) continue;
      // One letter in place of another makes two of them differ, any other edit one or none.
      if (countBits(letters ^ lettersOf(form)) > 2 * most) continue;
      if (endsTurn(cost, costOfComparing)) await cost.nextTurn();
      const distance = editDistance(word, form, most);
      if (distance > most) continue;
      if (!best || distance < best.distance || (distance === best.distance && count > best.count))
        best = { word: form, distance, count };
    }
  }
  return best?.word ?? null;
}

/** Notes what is done next, and tells whether it is for another turn of the event loop. */
function endsTurn(cost: Cost, more: number): boolean {
  cost.inAll += more;
  cost.inTurn += more;
  if (cost.inTurn < costATurn) return false;
  cost.inTurn = 0;
  return true;
}

/** Which letters a word of a to z has, a bit for each. */
function lettersOf(word: string): number {
  let letters = 0;
  for (let at = 0; at < word.length; at++) letters |= 1 << (word.charCodeAt(at) - 97);
  return letters;
}

function countBits(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count++;
  return count;
}

/** Two words that were written as one. */
function inTwo(word: string, words: ReadonlyMap<string, number>): string | null {
  for (let at = 1; at < word.length; at++)
    if (words.has(word.slice(0, at)) && words.has(word.slice(at)))
      return `${word.slice(0, at)} ${word.slice(at)}`;
  return null;
}

/** How often public posts have which words: the newest of them are always read, and all of them once a minute. */
async function vocabulary(ctx: Context): Promise<ReadonlyMap<string, number>> {
  const now = performance.now();
  let known = read.get(ctx.engine);
  if (!known || now - known.at >= usedFor)
    known = { at: now, counts: new Map(), newest: 0, reading: Promise.resolve() };
  read.set(ctx.engine, known);
  const words = known;
  words.reading = words.reading.then(async () => readNewer(ctx, words));
  try {
    await words.reading;
  } catch (error) {
    read.delete(ctx.engine);
    throw error;
  }
  return words.counts;
}

async function readNewer({ db }: Context, words: Vocabulary): Promise<void> {
  const { counts, newest } = words;
  const nextTurn = longWork();
  let before = Number.MAX_SAFE_INTEGER;
  for (let posts = 0; posts < mostPosts && counts.size < mostWords; posts += postsAtOnce) {
    const rows = await db
      .selectFrom('search_docs')
      .innerJoin('posts', 'posts.id', 'search_docs.post_id')
      .select(['search_docs.doc', 'search_docs.digest', 'posts.listed_at'])
      .where('search_docs.doc', '<', before)
      .where('search_docs.doc', '>', newest)
      .orderBy('search_docs.doc', 'desc')
      .limit(postsAtOnce)
      .execute();
    for (const { digest, listed_at } of rows) if (listed_at !== null) countWords(counts, digest);
    words.newest = Math.max(words.newest, rows[0]?.doc ?? 0);
    if (rows.length < postsAtOnce) break;
    before = rows.at(-1)?.doc ?? 0;
    await nextTurn();
  }
}

function countWords(counts: Map<string, number>, digest: string): void {
  for (const word of new Set(digest.split(/\s+/)))
    if (word.length >= leastLetters - 1 && /^[a-z]+$/.test(word))
      counts.set(word, (counts.get(word) ?? 0) + 1);
}
