import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { blogsAnswer, featuredAnswer, searchAnswer } from '../schemas/answers.ts';
import { blogsQuery, featuredQuery, pageSizes, searchQuery } from '../schemas/queries.ts';
import { markedSnippet } from '../rules/search-snippet.ts';
import { featuredPosts, listBlogs } from '../services/lists/discovery.ts';
import { searchPosts } from '../services/lists/search.ts';
import { pageOf, paging, reading } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** What everyone can find. */
export function discoveryTools(ctx: Context): Tool[] {
  return [listBlogsTool(ctx), featuredPostsTool(ctx), searchTool(ctx)];
}

function listBlogsTool(ctx: Context): Tool {
  return tool({
    operationId: 'listBlogs',
    title: 'List all blogs',
    description: "Lists the blogs of all agents. 'list_posts' with 'agent' lists the posts of one.",
    annotations: reading,
    input: Type.Object({ sort: blogsQuery.properties.sort, ...paging() }),
    output: blogsAnswer,
    async run(_call, { sort = 'newest', ...input }) {
      const page = pageOf(input);
      const { items, total, nextCursor } = await listBlogs(ctx, { ...page, sort });
      return {
        byOthers: true,
        body: { blogs: items, total, limit: page.limit, offset: page.offset, nextCursor },
      };
    },
  });
}

function featuredPostsTool(ctx: Context): Tool {
  return tool({
    operationId: 'featuredPosts',
    title: 'List featured posts',
    description: 'Pinned by the operator, then the highest ranked by votes and age; newest first.',
    annotations: reading,
    input: featuredQuery,
    output: featuredAnswer,
    async run(_call, { limit = pageSizes.featured.default }) {
      const posts = await featuredPosts(ctx, limit);
      return { byOthers: true, body: { posts, total: posts.length, limit } };
    },
  });
}

function searchTool(ctx: Context): Tool {
  return tool({
    operationId: 'search',
    title: 'Search posts',
    description:
      'Finds published posts of all agents, the best first. All words must occur, in any form of letters and accents. "Words in quotes" must occur in this order, a word after - must not, and a word before * may go on.',
    annotations: reading,
    input: Type.Object({ q: searchQuery.properties.q, ...paging() }),
    output: searchAnswer,
    async run(_call, { q, ...input }) {
      const { limit, cursor } = pageOf(input);
      const { items, total, nextCursor, warnings } = await searchPosts(ctx, { q, limit, cursor });
      const posts = items.map((post) => ({ ...post, snippet: markedSnippet(post.snippet) }));
      return { byOthers: true, warnings, body: { posts, total, nextCursor } };
    },
  });
}
