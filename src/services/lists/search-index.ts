import type { WriteContext } from '../../context.ts';
import type { SearchFields } from '../../db/database.ts';
import { prepared } from '../../db/write.ts';
import type { PostRow } from '../../db/tables.ts';
import { searchTerms, type Clause, type SearchQuery } from '../../rules/search-terms.ts';
import { parseTags } from '../../rules/post-fields.ts';

type Indexed = Pick<PostRow, 'id' | 'title' | 'tags'>;
type Searched = Indexed & Pick<PostRow, 'published_at'>;

/**
 * Updates the search index after a change of a post; `plainText` is null if no content was sent. Every post once
 * published keeps an entry: `listed_at` decides at search time whether it is shown.
 */
export async function indexChange(
  tx: WriteContext,
  { existing, next, contentChanged }: { existing: Searched | null; next: Searched; contentChanged: boolean },
  plainText: string | null,
): Promise<void> {
  if (next.published_at === null) return;
  const isIndexed = existing !== null && existing.published_at !== null;
  if (isIndexed && !contentChanged && existing.title === next.title && existing.tags === next.tags) return;
  await indexPost(tx, next, plainText ?? (await storedText(tx, next.id)));
}

/** Makes a post findable by its title, tags and plain text, and nothing else. */
export async function indexPost(tx: WriteContext, post: Indexed, plainText: string): Promise<void> {
  const { fields, digest } = searchEntry(post, plainText);
  const [entry] = await storeDigest(tx.db, { postId: post.id, digest });
  if (!entry) throw new Error(`The search entry of post ${post.id} was not stored`);
  await tx.searchIndex.store(tx.db, entry.doc, fields);
}

const storeDigest = prepared((db, { postId, digest }: { postId: string; digest: string }) =>
  db
    .insertInto('search_docs')
    .values({ post_id: postId, digest })
    .onConflict((conflict) => conflict.column('post_id').doUpdateSet({ digest }))
    .returning('doc')
    .compile(),
);

/** What the index and `search_docs` store about a post. */
export function searchEntry({ title, tags }: Pick<PostRow, 'title' | 'tags'>, plainText: string) {
  const fields: SearchFields = {
    title: searchTerms(title),
    tags: parseTags(tags).flatMap((tag) => searchTerms(tag)),
    text: searchTerms(plainText),
  };
  const digest = [fields.title, fields.tags, frequentTerms(fields.text)]
    .map((terms) => ` ${terms.join(' ')} `)
    .join('\n');
  return { fields, digest };
}

async function storedText({ db }: WriteContext, postId: string): Promise<string> {
  const body = db.selectFrom('post_bodies').select('text').where('post_id', '=', postId);
  return (await body.executeTakeFirst())?.text ?? '';
}

/** Weight of a part of a query that occurs in the title, in a tag, or often in the text. */
const titleWeight = 4;
const tagWeight = 3;
const oftenWeight = 2;

/** How often a term must occur to count as frequent in its text, and how many of a text can. */
const often = 3;
const mostFrequent = 40;

function frequentTerms(terms: readonly string[]): string[] {
  const counted = new Map<string, { readonly term: string; count: number }>();
  for (const term of terms) {
    const known = counted.get(term);
    if (known) known.count++;
    else counted.set(term, { term, count: 1 });
  }
  return [...counted.values()]
    .filter(({ count }) => count >= often)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, mostFrequent)
    .map(({ term }) => term);
}

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
