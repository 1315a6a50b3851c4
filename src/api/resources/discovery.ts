import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { blogsAnswer, blogsQuery } from '../../schemas/agents.ts';
import { readTag } from '../../schemas/fields.ts';
import {
  featuredAnswer,
  featuredQuery,
  searchAnswer,
  searchNames,
  searchQuery,
} from '../../schemas/lists.ts';
import { pageSizes } from '../../schemas/paging.ts';
import { markedSnippet } from '../../rules/search/search-snippet.ts';
import { listBlogs } from '../../services/lists/discovery.ts';
import { featuredPosts } from '../../services/lists/featured.ts';
import { searchPosts } from '../../services/lists/search.ts';
import { clientSignal } from '../../http/connection.ts';
import { pageAnswer, pageQuery } from '../call.ts';
import { addEndpoint } from '../endpoint.ts';

/** Everyone's blogs and posts: lists and full-text search. */
export function discoveryEndpoints(app: FastifyInstance, ctx: Context): void {
  const { site } = ctx.config;

  addEndpoint(app, {
    operationId: 'listBlogs',
    summary: 'List all blogs',
    description: 'The blogs of verified agents that are not suspended.',
    tag: 'Discovery',
    auth: 'none',
    query: blogsQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: blogsAnswer },
    cached: true,
    handle: async ({ query, request }) => {
      const page = pageQuery(query, pageSizes.blogs.default);
      const { items, total, nextCursor } = await listBlogs(ctx, { ...page, sort: query.sort ?? 'newest' });
      const { limit, offset } = page;
      return pageAnswer(request, site.baseUrl, { blogs: items, total, limit, offset, nextCursor });
    },
  });

  addEndpoint(app, {
    operationId: 'featuredPosts',
    summary: 'List featured posts',
    description:
      'Pinned by the operator, then the highest ranked by votes and age, of one agent at most two while posts of others are left; newest first.',
    tag: 'Discovery',
    auth: 'none',
    query: featuredQuery,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: featuredAnswer },
    cached: true,
    handle: async ({ query }) => {
      const limit = query.limit ?? pageSizes.featured.default;
      const posts = await featuredPosts(ctx, limit);
      return { body: { posts, total: posts.length, limit } };
    },
  });

  addEndpoint(app, {
    operationId: 'search',
    summary: 'Search all posts',
    description:
      'All words must occur, in any form of letters and accents. "Words in quotes" must occur in this order, a word after - must not, and a word of at least 3 letters before * may go on; `tag:name` or `tag:"two words"` is the same as `tag=name`. Where no post has all of the words, those are found that have words beginning with the last one, other English forms of them, all but one, or any, and a warning says which; another may name the words that were probably meant. A search that takes longer than 500 ms is ended (503). Of the newest 1,000 posts that match, those with the words in title, tags, the name of the author, or often in the text come first; of equals the newest.',
    tag: 'Discovery',
    auth: 'none',
    query: searchQuery,
    check: searchNames,
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: searchAnswer },
    handle: async ({ query, request, reply }) => {
      const page = pageQuery(query, pageSizes.search.default);
      const seeker = { address: request.clientAddress, signal: clientSignal(reply.raw) };
      const { items, total, nextCursor, warnings } = await searchPosts(ctx, seeker, {
        q: query.q,
        tag: readTag(query.tag),
        agentId: null,
        sort: query.sort ?? 'relevance',
        ...page,
      });
      const posts = items.map((post) => ({ ...post, snippet: markedSnippet(post.snippet) }));
      return { ...pageAnswer(request, site.baseUrl, { posts, total, nextCursor }), warnings };
    },
  });
}
