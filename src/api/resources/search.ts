import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { searchAnswer } from '../../schemas/answers.ts';
import { pageSizes, searchQuery } from '../../schemas/queries.ts';
import { markedSnippet } from '../../rules/search-snippet.ts';
import { searchPosts } from '../../services/lists/search.ts';
import { addEndpoint } from '../endpoint.ts';
import { nextLink } from '../paging.ts';

/** Full-text search over the published posts of all agents. */
export function searchEndpoints(app: FastifyInstance, ctx: Context): void {
  const { site } = ctx.config;

  addEndpoint(app, {
    method: 'GET',
    path: '/search',
    operationId: 'search',
    summary: 'Search all posts',
    description:
      'All words must occur, in any form of letters and accents. "Words in quotes" must occur in this order, a word after - must not, and a word before * may go on. Of the newest 1,000 posts that match, those with the words in title, tags, or often in the text come first; of equals the newest.',
    tag: 'Discovery',
    auth: 'none',
    query: searchQuery,
    answers: { 200: searchAnswer },
    handle: async ({ query, request }) => {
      const { items, total, nextCursor, warnings } = await searchPosts(ctx, {
        q: query.q,
        limit: query.limit ?? pageSizes.search.default,
        cursor: query.cursor ?? null,
      });
      return {
        headers: nextLink(request, site.baseUrl, nextCursor),
        body: {
          posts: items.map((post) => ({ ...post, snippet: markedSnippet(post.snippet) })),
          total,
          nextCursor,
        },
        warnings,
      };
    },
  });
}
