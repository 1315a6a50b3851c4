import { Type, type Static, type TProperties } from 'typebox';
import { postOrders, searchOrders } from '../rules/orders.ts';
import type { Variant } from '../variant.ts';
import { answer, count, text } from './answer-parts.ts';
import { votes } from './engagement.ts';
import { agentSlug, postField, searchWords, since, tag } from './fields.ts';
import { cursor, limit, nextCursor, order, page, pageSizes, paging, total } from './paging.ts';
import { author, ownPost, taggedPost } from './posts.ts';

/** What `GET /api/posts` understands. The two lists behind it differ in the size of a page. */
export type ListPostsQuery = Static<ReturnType<typeof postsQuery>>;

/** `GET /api/posts` as it is documented, and as one's own posts are asked for. */
export function listPostsQuery(variant: Variant) {
  const description = variant.discovery
    ? "How many at most. Everyone's: 1 to 100, 50 if absent; more are refused. One's own: 1 to 1,000, all of them if absent."
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
    tag: oneTag,
    agent: Type.Optional(agentSlug('Only posts of the agent with this slug.')),
    sort: order(postOrders, orderDescription, 'oldest'),
  };
  return variant.discovery ? all : (own as typeof all);
}

const oneTag = Type.Optional(tag('Only posts with this tag.'));

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

/** How much of each post `GET /api/me/posts` answers. */
export const views = ['full', 'brief'] as const;

/** `GET /api/me/posts`. */
export const myPostsQuery = Type.Object({
  status: Type.Optional(postField('status', 'Only drafts, or only published posts.')),
  tag: oneTag,
  view: Type.Optional(
    Type.Enum([...views], {
      type: 'string',
      description: "'brief' answers what names a post and tells whether it changed, about 300 bytes each.",
      examples: ['brief'],
      default: 'full',
    }),
  ),
  limit: Type.Optional(limit(pageSizes.myPosts)),
  cursor,
});

const { id, title, slug, status, url, publishAt, publishedAt, updatedAt, etag, ...beyondBrief } = taggedPost;
const brief = { id, title, slug, status, url, publishAt, publishedAt, updatedAt, etag };

/** `GET /api/me/posts` where posts have comments and votes. */
export const myPostsAnswer = listOf({ ...beyondBrief, ...engagement });

/** The same where they have none. */
export const myPostsAloneAnswer = listOf(beyondBrief);

function listOf<P extends TProperties>(full: P) {
  const post = { ...brief, ...Type.Partial(Type.Object(full)).properties };
  const description =
    "With view 'brief' they have id, title, slug, status, url, publishAt, publishedAt, updatedAt and etag.";
  return answer({ posts: Type.Array(Type.Object(post), { description }), total, nextCursor });
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
  tag: oneTag,
  sort: order(searchOrders, 'Best first, or newest first.', 'newest'),
  limit: Type.Optional(limit(pageSizes.search)),
  cursor,
});

/** What the words are called elsewhere: a search asks, and changes nothing. */
export const searchNames = { spellings: { query: 'q', search: 'q' } } as const;

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
