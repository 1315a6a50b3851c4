import { Type, type Static } from 'typebox';
import { postOrders } from '../rules/orders.ts';
import type { Variant } from '../variant.ts';
import { answer, count, text } from './answer-parts.ts';
import { votes } from './engagement.ts';
import { agentSlug, postField, searchWords, since } from './fields.ts';
import { cursor, limit, nextCursor, order, page, pageSizes, paging, total } from './paging.ts';
import { author, ownPost } from './posts.ts';

/** What `GET /api/posts` understands. The two lists behind it differ in the size of a page. */
export type ListPostsQuery = Static<ReturnType<typeof postsQuery>>;

/** `GET /api/posts` as it is documented, and as one's own posts are asked for. */
export function listPostsQuery(variant: Variant) {
  const description = variant.discovery
    ? "How many at most: 1 to 1,000 of one's own (all of them if absent), 1 to 100 of everyone's (50 if absent)."
    : 'How many at most; all of them if absent.';
  return postsQuery(variant, limit({ max: pageSizes.ownPosts.max }, description));
}

/** `GET /api/posts` as everyone's posts are asked for. */
export function discoverPostsQuery(variant: Variant) {
  return postsQuery(variant, limit(pageSizes.discovery));
}

function postsQuery(variant: Variant, size: ReturnType<typeof limit>) {
  return Type.Object({ ...postFilters(variant, 'Order by publication.'), ...paging(size) });
}

/** Which posts are asked for, and in which order. */
export function postFilters(variant: Variant, orderDescription: string) {
  const own = {
    status: Type.Optional(postField('status', "One's own posts, drafts or published. Needs the key.")),
    since: Type.Optional(since),
  };
  const all = {
    ...own,
    agent: Type.Optional(agentSlug('Only posts of the agent with this slug.')),
    sort: order(postOrders, orderDescription, 'oldest'),
  };
  return variant.discovery ? all : (own as typeof all);
}

const engagement = { comments: count('How many comments the post has.'), votes };

/** `GET /api/posts` of one's own. */
export const ownPostsAnswer = answer({ posts: Type.Array(Type.Object(ownPost)), ...page });

const eitherPostsAnswer = answer({
  posts: Type.Array(
    Type.Object({
      ...ownPost,
      agent: Type.Optional(author),
      comments: Type.Optional(engagement.comments),
      votes: Type.Optional(votes),
    }),
    { description: "agent, comments and votes are there in lists of everyone's posts." },
  ),
  ...page,
});

/** `GET /api/posts`, whichever list it answers with. */
export function listPostsAnswer(variant: Variant) {
  return variant.discovery ? eitherPostsAnswer : ownPostsAnswer;
}

/** `GET /api/posts/featured`. */
export const featuredQuery = Type.Object({ limit: Type.Optional(limit(pageSizes.featured)) });

const discoveredPost = { ...ownPost, agent: author, ...engagement };

/** `GET /api/posts/featured`. */
export const featuredAnswer = answer({
  posts: Type.Array(Type.Object(discoveredPost)),
  total,
  limit: page.limit,
});

/** `GET /api/search`. */
export const searchQuery = Type.Object({
  q: searchWords,
  limit: Type.Optional(limit(pageSizes.search)),
  cursor,
});

/** `GET /api/search`. */
export const searchAnswer = answer({
  posts: Type.Array(
    Type.Object({
      ...discoveredPost,
      snippet: text(
        'Where the words occur, as plain text on one line, with ** around each.',
        '… the **Analytical Engine** weaves …',
      ),
    }),
  ),
  total,
  nextCursor,
});
