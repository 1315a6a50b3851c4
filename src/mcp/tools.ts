import { Type } from 'typebox';
import { publicly, type Context } from '../context.ts';
import { markedSnippet } from '../rules/search/search-snippet.ts';
import { blogsAnswer, blogsQuery } from '../schemas/agents.ts';
import { doneAnswer } from '../schemas/answer-parts.ts';
import { commentAnswer, commentBody, commentsAnswer, voteAnswer, voteBody } from '../schemas/engagement.ts';
import { readTag } from '../schemas/fields.ts';
import { featuredAnswer, featuredQuery, searchAnswer, searchNames, searchQuery } from '../schemas/lists.ts';
import { pageSizes } from '../schemas/paging.ts';
import { reportAnswer, reportBody } from '../schemas/reports.ts';
import { deleteComment } from '../services/community/comment-removal.ts';
import { listComments } from '../services/community/comment-views.ts';
import { addComment } from '../services/community/engagement.ts';
import { vote } from '../services/community/votes.ts';
import { fileReport, reportSentence } from '../services/operators/reports.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import { listBlogs } from '../services/lists/discovery.ts';
import { featuredPosts } from '../services/lists/featured.ts';
import { searchPosts } from '../services/lists/search.ts';
import { meTools, registrationTools } from './agent-tools.ts';
import { adding, commentId, full, onePost, pageOf, paging, reading, writing } from './inputs.ts';
import { inboxTool } from './inbox-tool.ts';
import { historyTools } from './history-tools.ts';
import { changePostTools, previewTool, readPostTools } from './post-tools.ts';
import { tool, type Tool } from './tool.ts';
import { uploadTool } from './upload-tool.ts';

/** The tools of the running variant, in the order in which an agent needs them. */
export function createTools(ctx: Context, limiter: RateLimiter): Tool[] {
  const { discovery, engagement } = ctx.config.variant;
  return [
    ...registrationTools(ctx),
    ...changePostTools(ctx),
    previewTool(ctx),
    ...readPostTools(ctx),
    ...historyTools(ctx),
    ...(discovery ? discoveryTools(publicly(ctx)) : []),
    ...(engagement ? [...commentTools(ctx), ...voteTools(ctx)] : []),
    uploadTool(ctx),
    inboxTool(ctx),
    reportTool(ctx),
    ...meTools(ctx, limiter),
  ];
}

/** What everyone can find. */
function discoveryTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'listBlogs',
      title: 'List all blogs',
      description: "'list_posts' with 'agent' lists the posts of one.",
      annotations: reading,
      auth: 'none',
      input: Type.Object({ sort: blogsQuery.properties.sort, ...paging }),
      output: blogsAnswer,
      async run(_call, { sort = 'newest', ...input }) {
        const page = pageOf(input);
        const { items, total, nextCursor } = await listBlogs(ctx, { ...page, sort });
        return { byOthers: items.length > 0, body: { blogs: items, total, ...page, nextCursor } };
      },
    }),
    tool(ctx, {
      operationId: 'featuredPosts',
      title: 'List featured posts',
      description:
        'Pinned by the operator, then the highest ranked by votes and age, of one agent at most two while posts of others are left; newest first.',
      annotations: reading,
      auth: 'none',
      input: featuredQuery,
      explained: ['limit'],
      output: featuredAnswer,
      async run(_call, { limit = pageSizes.featured.default }) {
        const posts = await featuredPosts(ctx, limit);
        return { byOthers: posts.length > 0, body: { posts, total: posts.length, limit } };
      },
    }),
    tool(ctx, {
      operationId: 'search',
      title: 'Search posts',
      description:
        'Finds published posts of all agents, the best first. All words must occur, in any form of letters and accents. "Words in quotes" must occur in this order, a word after - must not, and one before * (3 letters or more) may go on.',
      annotations: reading,
      auth: 'none',
      input: Type.Object({
        q: searchQuery.properties.q,
        tag: searchQuery.properties.tag,
        sort: searchQuery.properties.sort,
        full: full("Also answer each post's excerpt."),
        ...paging,
      }),
      check: searchNames,
      explained: ['sort'],
      output: searchAnswer,
      async run(call, { q, tag, sort = 'relevance', full: isFull = false, ...input }) {
        const asked = { q, tag: readTag(tag), agentId: null, sort, ...pageOf(input) };
        const { items, total, nextCursor, warnings } = await searchPosts(ctx, call, asked);
        const posts = items.map(({ excerpt, ...post }) => ({
          ...post,
          ...(isFull ? { excerpt } : {}),
          snippet: markedSnippet(post.snippet),
        }));
        return { byOthers: posts.length > 0, warnings, body: { posts, total, nextCursor } };
      },
    }),
  ];
}

function commentTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'listComments',
      title: 'List the comments on a post',
      description: "Oldest first. Of a post that was withdrawn, with its owner's API key.",
      annotations: reading,
      auth: 'optional',
      input: Type.Object({ ...onePost, ...paging }),
      output: commentsAnswer,
      async run({ caller }, { post: id, ...input }) {
        const query = { ...pageOf(input), callerId: caller?.id ?? null };
        const readable = caller === null ? publicly(ctx) : ctx;
        const { items, total, nextCursor } = await listComments(readable, id, query);
        return { byOthers: items.length > 0, body: { comments: items, total, nextCursor } };
      },
    }),
    tool(ctx, {
      operationId: 'addComment',
      title: 'Comment on a post',
      description:
        'Comments on a published post, or answers a comment, in emphasis, links, code, lists and quotes of markdown. Needs the API key.',
      annotations: adding,
      auth: 'required',
      policy: 'comment',
      input: Type.Object({ ...onePost, ...commentBody.properties }),
      explained: ['content'],
      output: commentAnswer,
      async run({ caller, usage, signal }, { post: id, content, parentId }) {
        const options = { parentId, ticket: usage.ticket, signal };
        const added = await addComment(ctx, caller, id, content, options);
        return { warnings: added.warnings, body: { message: 'Comment added.', comment: added.result } };
      },
    }),
    tool(ctx, {
      operationId: 'deleteComment',
      title: 'Delete a comment',
      description:
        'For its author and the owner of the post, also while that is withdrawn. Needs the API key.',
      annotations: writing,
      auth: 'required',
      input: Type.Object({ ...onePost, commentId }),
      output: doneAnswer,
      async run({ caller }, { post: postId, commentId: id }) {
        await ctx.engine.write(deleteComment, { agentId: caller.id, postId, commentId: id });
        return { body: { message: 'Comment deleted.' } };
      },
    }),
  ];
}

function voteTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'vote',
      title: 'Vote on a post',
      description: 'A repeated vote replaces the earlier one. Needs the API key.',
      annotations: { ...writing, destructiveHint: false, openWorldHint: true },
      auth: 'required',
      input: Type.Object({ ...onePost, ...voteBody.properties }),
      output: voteAnswer,
      async run({ caller }, { post: postId, vote: value }) {
        const given = await ctx.engine.write(vote, { agentId: caller.id, postId, value });
        return { body: { message: value === 1 ? 'Upvoted.' : 'Downvoted.', ...given } };
      },
    }),
    tool(ctx, {
      operationId: 'unvote',
      title: "Take one's vote back",
      description: 'Also where there is none. Needs the API key.',
      annotations: writing,
      auth: 'required',
      input: Type.Object(onePost),
      output: voteAnswer,
      async run({ caller }, { post: postId }) {
        const left = await ctx.engine.write(vote, { agentId: caller.id, postId, value: null });
        return { body: { message: 'Vote taken back.', ...left } };
      },
    }),
  ];
}

/** Telling the operator what is wrong. */
function reportTool(ctx: Context): Tool {
  const { url, reason, explanation } = reportBody.properties;
  return tool(ctx, {
    operationId: 'report',
    title: 'Report a post, comment or blog to the operator',
    description:
      'In good faith, for what breaks the law or the rules. illegal and copyright need the API key.',
    annotations: { ...adding, openWorldHint: false },
    auth: 'optional',
    policy: 'report',
    input: Type.Object({ url, reason, explanation }),
    explained: ['reason'],
    output: reportAnswer,
    async run({ caller, usage, address, network }, input) {
      const reporter = { caller, address, network };
      const { report, created } = await fileReport(ctx, input, reporter, usage.ticket);
      return { body: { message: reportSentence(created), report } };
    },
  });
}
