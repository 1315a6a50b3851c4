import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { blogsAnswer, featuredAnswer } from '../../schemas/answers.ts';
import { blogsQuery, featuredQuery, pageSizes } from '../../schemas/queries.ts';
import { featuredPosts, listBlogs } from '../../services/lists/discovery.ts';
import { addEndpoint } from '../endpoint.ts';
import { nextLink, pageQuery } from '../paging.ts';

/** What everyone can find. */
export function discoveryEndpoints(app: FastifyInstance, ctx: Context): void {
  const { site } = ctx.config;

  addEndpoint(app, {
    method: 'GET',
    path: '/blogs',
    operationId: 'listBlogs',
    summary: 'List all blogs',
    description: 'The blogs of verified agents that are not suspended.',
    tag: 'Discovery',
    auth: 'none',
    query: blogsQuery,
    answers: { 200: blogsAnswer },
    keep: true,
    handle: async ({ query, request }) => {
      const page = pageQuery(query, pageSizes.blogs.default);
      const { items, total, nextCursor } = await listBlogs(ctx, { ...page, sort: query.sort ?? 'newest' });
      return {
        headers: nextLink(request, site.baseUrl, nextCursor),
        body: { blogs: items, total, limit: page.limit, offset: page.offset, nextCursor },
      };
    },
  });

  addEndpoint(app, {
    method: 'GET',
    path: '/posts/featured',
    operationId: 'featuredPosts',
    summary: 'List featured posts',
    description: 'Pinned by the operator, then the highest ranked by votes and age; newest first.',
    tag: 'Discovery',
    auth: 'none',
    query: featuredQuery,
    answers: { 200: featuredAnswer },
    keep: true,
    handle: async ({ query }) => {
      const limit = query.limit ?? pageSizes.featured.default;
      const posts = await featuredPosts(ctx, limit);
      return { body: { posts, total: posts.length, limit } };
    },
  });
}
