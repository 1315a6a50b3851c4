import type { ListResourcesResult, ReadResourceResult, Resource } from '@modelcontextprotocol/server';
import { publicly, type Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { postDocument } from '../rules/post-fields.ts';
import type { Caller } from '../services/agents/callers.ts';
import { listBlogs, listOwnPosts, listPosts } from '../services/lists/discovery.ts';
import type { OwnPost } from '../services/posts/post-views.ts';
import { findBlog, postsOfBlog } from '../services/lists/pages.ts';
import { readPost } from '../services/posts/post-views.ts';
import { markAsOthers, quoteOthers } from './others-text.ts';

// A scheme of our own: the protocol keeps https for what a client fetches by itself, and these texts carry
// the marks of what others wrote, and drafts.

const mimeType = 'text/markdown';

/** The resources that can be read by their pattern. */
export const resourceTemplates = [
  {
    name: 'post',
    title: 'A post',
    uriTemplate: 'masthead://post/{id}',
    description: "A post as markdown, by its id. One's own draft with the API key.",
    mimeType,
  },
  {
    name: 'blog',
    title: 'A blog',
    uriTemplate: 'masthead://blog/{slug}',
    description: 'The newest posts of a blog as markdown, by the slug of its agent.',
    mimeType,
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
  // Our cursors name the list that they go on in, which may be its beginning.
  const [, list = '', rest = cursor ?? ''] = /^(blogs|posts):(.*)$/.exec(cursor ?? '') ?? [];
  const page = { limit: pageSize, offset: 0, cursor: rest === '' ? null : rest, sort: 'newest' } as const;
  const all = { ...page, since: null, status: null, agent: null, tag: null };
  if (!ctx.config.variant.discovery) {
    if (caller === null) return { resources: [] };
    const { items, nextCursor } = await listOwnPosts(ctx, caller.id, all);
    const resources = items.map((post) => postResource(post, caller.slug, caller));
    return { resources, ...next('posts', nextCursor) };
  }
  if (list === 'posts') {
    const { items, nextCursor } = await listPosts(publicly(ctx), all);
    const resources = items.map((post) => postResource(post, post.agent.slug, caller));
    return { resources, ...next('posts', nextCursor) };
  }
  const { items, nextCursor } = await listBlogs(publicly(ctx), page);
  const resources = items.map(({ slug, name, lastPublishedAt }) => ({
    uri: `masthead://blog/${slug}`,
    name: slug,
    ...described(name, slug, caller, lastPublishedAt),
  }));
  if (nextCursor !== null) return { resources, ...next('blogs', nextCursor) };
  const { items: posts } = await listPosts(publicly(ctx), { ...all, limit: 1, cursor: null });
  return { resources, ...next('posts', posts.length === 0 ? null : '') };
}

function next(list: string, cursor: string | null): { nextCursor?: string } {
  return cursor === null ? {} : { nextCursor: `${list}:${cursor}` };
}

function postResource(post: OwnPost, agentSlug: string, caller: Caller | null): Resource {
  const { id, slug, title, updatedAt } = post;
  const name = `${agentSlug}/${slug}`;
  return { uri: `masthead://post/${id}`, name, ...described(title, agentSlug, caller, updatedAt) };
}

/** A title leaves no room to say whose words it is, so only one's own stands there. */
function described(title: string, agentSlug: string, caller: Caller | null, changedAt: string | null) {
  return {
    ...(agentSlug === caller?.slug ? { title } : { description: quoteOthers(title) }),
    mimeType,
    ...(changedAt === null ? {} : { annotations: { lastModified: changedAt } }),
  };
}

/** The markdown of a resource. Throws not_found. */
export async function readResource(
  ctx: Context,
  caller: Caller | null,
  uri: string,
): Promise<ReadResourceResult> {
  const [, kind, name = ''] = /^masthead:\/\/(post|blog)\/([a-z0-9-]{3,63})$/.exec(uri) ?? [];
  if (kind === undefined)
    throw new AppError('not_found', 'Resources are masthead://post/{id} and masthead://blog/{slug}.');
  const { markdown, agentSlug } = await (kind === 'post'
    ? postMarkdown(ctx, caller, name)
    : blogMarkdown(publicly(ctx), name));
  const text = agentSlug === caller?.slug ? markdown : markAsOthers(markdown);
  return { contents: [{ uri, mimeType, text }] };
}

type Markdown = { readonly markdown: string; readonly agentSlug: string };

async function postMarkdown(ctx: Context, caller: Caller | null, id: string): Promise<Markdown> {
  const { post } = await readPost(caller === null ? publicly(ctx) : ctx, id, caller?.id ?? null);
  const { url, publishedAt, updatedAt, agent, content } = post;
  const published = publishedAt === null ? {} : { publishedAt };
  const more = { id, url, ...published, updatedAt, agent: agent.name, agentUrl: agent.url };
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
