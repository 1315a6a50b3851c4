import type { ReadContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { listedPost, type ListedPost } from '../posts/post-views.ts';
import { listedPosts, newestFirst, type ListedRow } from './discovery.ts';
import { pagePost, type PagePost } from './pages.ts';
import { inOrder } from './paging.ts';
import { isByTrusted } from '../trust/probation.ts';
import { keptPosts } from '../posts/find-post.ts';

/** Posts that are considered for a selection: the highest ranked, or the newest. */
const considered = 200;

/** Places that one agent gets in a selection while posts of others are left. */
const placesEach = 2;

/** Posts that the home page must have to feature, for it to feature any. */
const leastFeatured = 3;

/** The posts that the operator pinned, then the highest ranked, of all agents in turn; newest first. */
export async function featuredPosts(ctx: ReadContext, limit: number): Promise<ListedPost[]> {
  const { pinned, ranked } = await candidates(ctx, limit);
  const rows = await inPlaces(ctx, [...pinned, ...spread(ranked, limit - pinned.length)]);
  return rows.map((row) => listedPost(ctx, row));
}

/** What the home page shows of everyone's posts, none of them twice; newest first. */
export async function selectForHome(
  ctx: ReadContext,
  places: { readonly newest: number; readonly featured: number },
): Promise<{ newest: PagePost[]; featured: PagePost[] }> {
  const { pinned, ranked } = await candidates(ctx, places.featured);
  // Above zero as shown, and also without an upvote of the author's own.
  const liked = ranked.filter((post) => post.upvotes - post.downvotes > Math.max(0, post.own ?? 0));
  const chosen = [...pinned, ...spread(liked, places.featured - pinned.length)];
  const featured = chosen.length < leastFeatured ? [] : chosen;
  const newest = await inOrder(publicPosts(ctx), newestFirst, null).limit(considered).execute();
  const others = newest.filter(({ id }) => !featured.some((post) => post.id === id));
  const [newestRows, featuredRows] = [
    await inPlaces(ctx, spread(others, places.newest)),
    await inPlaces(ctx, featured),
  ];
  return {
    newest: newestRows.map((row) => pagePost(ctx, row)),
    featured: featuredRows.map((row) => pagePost(ctx, row)),
  };
}

type Candidate = Pick<PostRow, 'id' | 'agent_id'>;

/** What may be featured: what the operator pinned last, and the highest ranked of the rest. */
async function candidates(ctx: ReadContext, limit: number) {
  const pinned = await publicPosts(ctx)
    .where('posts.featured_at', 'is not', null)
    .orderBy('posts.featured_at', 'desc')
    .limit(limit)
    .execute();
  const ranked = await publicPosts(ctx)
    .select(['posts.upvotes', 'posts.downvotes'])
    // The vote of the author, which is for nobody else to see.
    .select((post) =>
      post
        .selectFrom('votes')
        .select('vote')
        .whereRef('votes.post_id', '=', 'posts.id')
        .whereRef('votes.agent_id', '=', 'posts.agent_id')
        .as('own'),
    )
    .where('posts.featured_at', 'is', null)
    .orderBy('posts.hot_rank', 'desc')
    .orderBy('posts.id', 'desc')
    .limit(considered)
    .execute();
  return { pinned, ranked };
}

/** Public posts of agents that are not on probation. */
function publicPosts({ db }: ReadContext) {
  return keptPosts(db)
    .select(['posts.id', 'posts.agent_id'])
    .where('posts.listed_at', 'is not', null)
    .where(isByTrusted);
}

/** The first posts that fill so many places: of each agent at most two as long as there are others', then the rest. */
function spread<Row extends Candidate>(rows: readonly Row[], places: number): Row[] {
  const held = new Map<string, number>();
  const isWithin = ({ agent_id }: Row) => {
    const place = (held.get(agent_id) ?? 0) + 1;
    held.set(agent_id, place);
    return place <= placesEach;
  };
  const { first = [], rest = [] } = Object.groupBy(rows, (row) => (isWithin(row) ? 'first' : 'rest'));
  return [...first, ...rest].slice(0, Math.max(0, places));
}

/** The posts with all that lists show of them, newest first. */
async function inPlaces(ctx: ReadContext, posts: readonly Candidate[]): Promise<ListedRow[]> {
  if (posts.length === 0) return [];
  const ids = posts.map(({ id }) => id);
  return inOrder(listedPosts(ctx).where('posts.id', 'in', ids), newestFirst, null).execute();
}
