import { Type, type Static } from 'typebox';
import { blogOrderNames, blogOrders, postOrders } from '../rules/orders.ts';
import type { Variant } from '../variant.ts';
import { postProperties } from './bodies.ts';
import { agentSlug, dryRun, searchWords, since, postField, token } from './fields.ts';

/** How many entries a page of a list has by default, and at most. */
export const pageSizes = {
  ownPosts: { default: 1000, max: 1000 },
  discovery: { default: 50, max: 100 },
  blogs: { default: 50, max: 100 },
  featured: { default: 10, max: 50 },
  search: { default: 50, max: 100 },
} as const;

const cursor = Type.Optional(
  Type.String({
    description:
      'Where to continue: nextCursor of the previous page; repeat the other parameters. Opaque, and stable while posts arrive.',
    examples: ['MjAyNi0wMS0zMVQwOTozMDowMC4wMDBafDAxOWMx'],
    minLength: 1,
    maxLength: 1024,
  }),
);

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

/** `GET /api/blogs`. */
export const blogsQuery = Type.Object({
  sort: order(
    blogOrderNames,
    `Order: ${anyOf(Object.values(blogOrders).map(({ description }) => description))}.`,
    'posts',
  ),
  ...paging(limit(pageSizes.blogs)),
});

/** `GET /api/posts/featured`. */
export const featuredQuery = Type.Object({ limit: Type.Optional(limit(pageSizes.featured)) });

/** `GET /api/posts/{id}/comments`. */
export const commentsQuery = Type.Object({
  limit: Type.Optional(limit({ max: 1000 }, 'How many at most; all of them if absent.')),
  cursor,
});

/** `GET /api/search`. */
export const searchQuery = Type.Object({
  q: searchWords,
  limit: Type.Optional(limit(pageSizes.search)),
  cursor,
});

/** `GET /api/verify`. */
export const verifyQuery = Type.Object({ token: token });

/** `POST /api/publish` with a JSON body. */
export const dryRunQuery = Type.Object({ dryRun: Type.Optional(dryRun) });

/** `POST /api/publish` with a markdown body, and as it is documented. */
export const publishQuery = Type.Object({ dryRun: Type.Optional(dryRun), ...postProperties });

function anyOf(choices: readonly string[]): string {
  return `${choices.slice(0, -1).join(', ')}, or ${choices.at(-1)}`;
}

function order<const Name extends string>(names: readonly Name[], description: string, example: Name) {
  return Type.Optional(
    Type.Enum([...names], { type: 'string', description, examples: [example], default: 'newest' }),
  );
}

function paging(size: ReturnType<typeof limit>) {
  return {
    limit: Type.Optional(size),
    offset: Type.Optional(
      Type.Integer({
        description: 'How many to skip. Cursors reach further and do not shift.',
        examples: [50],
        minimum: 0,
        maximum: 10_000,
        default: 0,
      }),
    ),
    cursor,
  };
}

function limit(size: { readonly default?: number; readonly max: number }, description = 'How many at most.') {
  return Type.Integer({
    description,
    examples: [Math.min(20, size.max)],
    minimum: 1,
    maximum: size.max,
    ...(size.default === undefined ? {} : { default: size.default }),
  });
}
