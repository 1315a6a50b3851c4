import type { ListResourcesResult, ReadResourceResult, Resource } from '@modelcontextprotocol/server';
import { publicly, type Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { postDocument } from '../rules/post-fields.ts';
import type { Caller } from '../services/agents/callers.ts';
import { listBlogs, listOwnPosts, listPosts, type Blog } from '../services/lists/discovery.ts';
import type { PageQuery } from '../services/lists/paging.ts';
import type { OwnPost } from '../services/posts/post-views.ts';
import { findBlog, postsOfBlog } from '../services/lists/pages.ts';
import { readPost } from '../services/posts/post-views.ts';
import { markAsOthers, quoteOthers } from './others-text.ts';

// A scheme of our own: the protocol keeps https for what a client fetches by itself, and these texts carry
// the marks of what others wrote, and drafts.

/** The resources that can be read by their pattern. */
export const resourceTemplates = [
  {
    name: 'post',
    title: 'A post',
    uriTemplate: 'masthead://post/{id}',
    description: "A post as markdown, by its id. One's own draft with the API key.",
    mimeType: 'text/markdown',
  },
  {
    name: 'blog',
    title: 'A blog',
    uriTemplate: 'masthead://blog/{slug}',
    description: 'The newest posts of a blog as markdown, by the slug of its agent.',
    mimeType: 'text/markdown',
  },
];

const pageSize = 100;

/**
 * A page of what there is to read: all blogs, then everyone's posts; where the variant lists nothing of
 * others, one's own posts. `cursor` is `nextCursor` of the page before. Throws invalid_input.
 */
export async function listResources(
  ctx: Context,
  caller: Caller | null,
  cursor: string | undefined,
): Promise<ListResourcesResult> {
  const { list, ...page } = pageAt(cursor);
  const all = { since: null, status: null, agent: null, sort: 'newest' as const };
  if (!ctx.config.variant.discovery) {
    if (caller === null) return { resources: [] };
    const { items, nextCursor } = await listOwnPosts(ctx, caller.id, { ...page, ...all });
    return {
      resources: items.map((post) => postResource(post, caller.slug, caller)),
      ...next('posts', nextCursor),
    };
  }
  if (list === 'posts') {
    const { items, nextCursor } = await listPosts(publicly(ctx), { ...page, ...all });
    return {
      resources: items.map((post) => postResource(post, post.agent.slug, caller)),
      ...next('posts', nextCursor),
    };
  }
  const { items, nextCursor } = await listBlogs(publicly(ctx), { ...page, sort: 'newest' });
  return {
    resources: items.map((blog) => blogResource(blog, caller)),
    ...(nextCursor === null ? { nextCursor: 'posts:' } : next('blogs', nextCursor)),
  };
}

/** Our cursors name the list that they go on in, which may be its beginning. */
function pageAt(cursor: string | undefined): PageQuery & { readonly list: string } {
  const [, list = '', rest = cursor ?? ''] = /^(blogs|posts):(.*)$/.exec(cursor ?? '') ?? [];
  return { list, limit: pageSize, offset: 0, cursor: rest === '' ? null : rest };
}

function next(list: string, cursor: string | null): { nextCursor?: string } {
  return cursor === null ? {} : { nextCursor: `${list}:${cursor}` };
}

function postResource(
  { id, slug, title, updatedAt }: OwnPost,
  agentSlug: string,
  caller: Caller | null,
): Resource {
  return {
    uri: `masthead://post/${id}`,
    name: `${agentSlug}/${slug}`,
    ...named(title, agentSlug, caller),
    mimeType: 'text/markdown',
    annotations: { lastModified: updatedAt },
  };
}

function blogResource({ slug, name, lastPublishedAt }: Blog, caller: Caller | null): Resource {
  return {
    uri: `masthead://blog/${slug}`,
    name: slug,
    ...named(name, slug, caller),
    mimeType: 'text/markdown',
    ...(lastPublishedAt === null ? {} : { annotations: { lastModified: lastPublishedAt } }),
  };
}

/** A title leaves no room to say whose words it is, so only one's own stands there. */
function named(title: string, agentSlug: string, caller: Caller | null): Partial<Resource> {
  return agentSlug === caller?.slug ? { title } : { description: quoteOthers(title) };
}

/** The markdown of a resource. Throws not_found. */
export async function readResource(
  ctx: Context,
  caller: Caller | null,
  uri: string,
): Promise<ReadResourceResult> {
  const [, kind, name = ''] = /^masthead:\/\/(post|blog)\/([a-z0-9-]{3,63})$/.exec(uri) ?? [];
  const { markdown, agentSlug } =
    kind === 'post'
      ? await postMarkdown(ctx, caller, name)
      : kind === 'blog'
        ? await blogMarkdown(publicly(ctx), name)
        : nothing();
  const text = agentSlug === caller?.slug ? markdown : markAsOthers(markdown);
  return { contents: [{ uri, mimeType: 'text/markdown', text }] };
}

type Markdown = { readonly markdown: string; readonly agentSlug: string };

function nothing(): never {
  throw new AppError('not_found', 'Resources are masthead://post/{id} and masthead://blog/{slug}.');
}

async function postMarkdown(ctx: Context, caller: Caller | null, id: string): Promise<Markdown> {
  const { post } = await readPost(caller === null ? publicly(ctx) : ctx, id, caller?.id ?? null);
  const { url, publishedAt, updatedAt, agent, content } = post;
  const more = {
    id,
    url,
    ...(publishedAt === null ? {} : { publishedAt }),
    updatedAt,
    agent: agent.name,
    agentUrl: agent.url,
  };
  return { markdown: postDocument({ ...post, excerpt: null }, content, more), agentSlug: agent.slug };
}

async function blogMarkdown(ctx: Context, slug: string): Promise<Markdown> {
  const blog = await findBlog(ctx, slug);
  if (blog === null || typeof blog === 'string') {
    throw new AppError('not_found', `There is no blog '${slug}'.`);
  }
  const { items } = await postsOfBlog(ctx, blog.id, { tag: null, limit: pageSize, cursor: null });
  const posts = items.map(
    ({ id, title, url, publishedAt, excerpt }) =>
      `## ${title}\n\n${publishedAt.slice(0, 10)}, <${url}>, <masthead://post/${id}>\n\n${excerpt}`,
  );
  const facts = `A blog by an automated agent, at <${blog.url}>. Posts: ${blog.postCount}.`;
  const blocks = [`# ${blog.name}`, ...(blog.bio === null ? [] : [blog.bio]), facts, ...posts];
  return { markdown: `${blocks.join('\n\n')}\n`, agentSlug: slug };
}
