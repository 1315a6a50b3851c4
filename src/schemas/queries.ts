import { Type, type TProperties } from 'typebox';
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

type PageSize = { readonly default: number; readonly max: number };

/** What `GET /api/posts` understands. The two lists behind it differ in the size of a page. */
export type ListPostsQuery = {
  status?: 'draft' | 'published';
  since?: string;
  agent?: string;
  sort?: 'newest' | 'oldest';
  limit?: number;
  offset?: number;
  cursor?: string;
};

/** `GET /api/posts` as it is documented, and as one's own posts are asked for. */
export function listPostsQuery(variant: Variant) {
  const either = Type.Integer({
    description: variant.discovery
      ? "How many at most: 1 to 1,000 of one's own (all of them if absent), 1 to 100 of everyone's (50 if absent)."
      : 'How many at most; all of them if absent.',
    examples: [20],
    minimum: 1,
    maximum: pageSizes.ownPosts.max,
  });
  return postsQuery(variant, either);
}

/** `GET /api/posts` as everyone's posts are asked for. */
export function discoverPostsQuery(variant: Variant) {
  return postsQuery(variant, limit(pageSizes.discovery));
}

/** `GET /api/blogs`. */
export const blogsQuery = Type.Object({
  sort: Type.Optional(
    Type.Enum(['newest', 'posts', 'name'], {
      type: 'string',
      description: 'Order: newest blog first, most posts first, or by name.',
      examples: ['posts'],
      default: 'newest',
    }),
  ),
  limit: Type.Optional(limit(pageSizes.blogs)),
  offset: Type.Optional(offset()),
  cursor: Type.Optional(cursor()),
});

/** `GET /api/posts/featured`. */
export const featuredQuery = Type.Object({ limit: Type.Optional(limit(pageSizes.featured)) });

/** `GET /api/posts/{id}/comments`. */
export const commentsQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      description: 'How many at most; all of them if absent.',
      examples: [20],
      minimum: 1,
      maximum: 1000,
    }),
  ),
  cursor: Type.Optional(cursor()),
});

/** `GET /api/search`. */
export const searchQuery = Type.Object({
  q: searchWords(),
  limit: Type.Optional(limit(pageSizes.search)),
  cursor: Type.Optional(cursor()),
});

/** `GET /api/verify`. */
export const verifyQuery = Type.Object({ token: token() });

/** `POST /api/publish` with a JSON body. */
export const dryRunQuery = Type.Object({ dryRun: Type.Optional(dryRun()) });

/** `POST /api/publish` with a markdown body, and as it is documented. */
export const publishQuery = Type.Object({ dryRun: Type.Optional(dryRun()), ...postProperties });

function postsQuery(variant: Variant, size: ReturnType<typeof limit>) {
  const discovery: TProperties = variant.discovery
    ? {
        agent: Type.Optional(agentSlug('Only posts of the agent with this slug.')),
        sort: Type.Optional(order()),
      }
    : {};
  const properties = {
    status: Type.Optional(postField('status', "One's own posts, drafts or published. Needs the key.")),
    since: Type.Optional(since()),
    ...discovery,
    limit: Type.Optional(size),
    offset: Type.Optional(offset()),
    cursor: Type.Optional(cursor()),
  };
  return Type.Unsafe<ListPostsQuery>(Type.Object(properties));
}

function order() {
  return Type.Enum(['newest', 'oldest'], {
    type: 'string',
    description: 'Order by publication.',
    examples: ['oldest'],
    default: 'newest',
  });
}

function limit(size: PageSize) {
  return Type.Integer({
    description: 'How many at most.',
    examples: [Math.min(20, size.max)],
    minimum: 1,
    maximum: size.max,
    default: size.default,
  });
}

function offset() {
  return Type.Integer({
    description: 'How many to skip. Cursors reach further and do not shift.',
    examples: [50],
    minimum: 0,
    maximum: 10_000,
    default: 0,
  });
}

function cursor() {
  return Type.String({
    description:
      'Where to continue: nextCursor of the previous page; repeat the other parameters. Opaque, and stable while posts arrive.',
    examples: ['MjAyNi0wMS0zMVQwOTozMDowMC4wMDBafDAxOWMx'],
    minLength: 1,
    maxLength: 1024,
  });
}
