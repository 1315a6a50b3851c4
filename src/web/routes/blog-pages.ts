import type { Blog } from '../../services/lists/discovery.ts';
import { postsForFeed, postsForSitemap } from '../../services/lists/feeds.ts';
import {
  commentsOnPage,
  neighboursOf,
  postAtAddress,
  postsOfBlog,
  tagsOfBlog,
} from '../../services/lists/pages.ts';
import { blogPath, tagUrl, twinOf, withCursor, type BlogPath, type FeedType } from '../addresses.ts';
import { link, type Outcome, type Page, type PageTag } from '../cache/page.ts';
import { blogLlms, blogTwin, postTwin, tagTwin } from '../documents/markdown.ts';
import { tagFeedId, writeFeed } from '../feeds/feed.ts';
import { robotsText, sitemap, sitemapIndex, sitemapParts, sitemapRange } from '../feeds/site-files.ts';
import { gone, notFound } from '../templates/failure.ts';
import { blogPage, tagPage } from '../templates/blog.ts';
import { postPage } from '../templates/post.ts';
import type { Web } from './routes.ts';

/** Posts on one page of a blog, and tags that it lists. */
const postsShown = 20;
const tagsShown = 50;

/** Posts that a blog's llms.txt names. */
const llmsLength = 100;

/** Query parameters that pages of a blog understand. */
export type BlogQuery = {
  /** Where a list continues. */
  readonly cursor: string | null;
  /** Number of a part of a sitemap too long for one, from 1. */
  readonly part: number | null;
};

/** The page or file at a path of a blog. */
export async function readBlogPage(
  web: Web,
  blog: Blog,
  path: BlogPath,
  { cursor, part }: BlogQuery,
): Promise<Outcome> {
  if (path.kind === 'post') return readPost(web, blog, path);
  if (path.kind === 'file') return readFile(web, blog, path.name, part);
  const { form } = path;
  const tag = path.kind === 'tag' ? path.tag : null;
  return form === 'page' || form === 'twin'
    ? readList(web, blog, { tag, form, cursor })
    : readFeed(web, blog, tag, form);
}

/** The posts of a blog, or of one tag of it. */
async function readList(
  { ctx, chrome }: Web,
  blog: Blog,
  { tag, form, cursor }: { tag: string | null; form: 'page' | 'twin'; cursor: string | null },
): Promise<Outcome> {
  const { items: posts, nextCursor } = await postsOfBlog(ctx, blog.id, { tag, limit: postsShown, cursor });
  if (tag !== null && posts.length === 0) return notFound(chrome, blog);
  const url = tag === null ? blog.url : tagUrl(blog.url, tag);
  const twin = twinOf(url, tag === null ? 'index' : 'page');
  const first = form === 'twin' ? twin : url;
  const paging = {
    newest: cursor === null ? null : first,
    older: nextCursor === null ? null : withCursor(first, nextCursor),
  };
  const view = { blog, posts, paging };
  const tags = tagsOf(blog, posts);
  if (form === 'twin') return twinPage(tag === null ? blogTwin(view) : tagTwin({ ...view, tag }), url, tags);
  const here = { ...chrome, canonicalUrl: withCursor(url, cursor) };
  return {
    type: 'html',
    body:
      tag === null
        ? blogPage(here, { ...view, tags: cursor === null ? await tagsOfBlog(ctx, blog.id, tagsShown) : [] })
        : tagPage(here, { ...view, tag }),
    tags,
    ...pageHeaders(blog, withCursor(twin, cursor), url),
  };
}

async function readPost(
  { ctx, chrome }: Web,
  blog: Blog,
  path: BlogPath & { kind: 'post' },
): Promise<Outcome> {
  const found = await postAtAddress(ctx, blog.id, path.slug);
  if (found === null) return notFound(chrome, blog);
  if (found === 'deleted') return gone(chrome, 'post', blog);
  if ('movedTo' in found)
    return { kind: 'moved', url: blog.url + blogPath({ ...path, slug: found.movedTo }) };
  const { post, headings } = found;
  const tags = tagsOf(blog, [post]);
  if (path.form === 'twin') return twinPage(postTwin(post, chrome.baseUrl), post.url, tags);
  const neighbours = await neighboursOf(ctx, post);
  const comments = post.tally?.comments ? await commentsOnPage(ctx, post.id) : [];
  const commenters = comments.map(({ author }): PageTag => `agent:${author.id}`);
  const view = { post, blog, headings, ...neighbours, comments };
  return {
    type: 'html',
    body: postPage({ ...chrome, canonicalUrl: post.url }, view),
    tags: [...new Set([...tags, ...commenters])],
    ...pageHeaders(blog, twinOf(post.url, 'page'), blog.url),
  };
}

async function readFeed(
  { ctx, chrome }: Web,
  blog: Blog,
  tag: string | null,
  type: FeedType,
): Promise<Outcome> {
  const posts = await postsForFeed(ctx, { agentId: blog.id, tag });
  if (tag !== null && posts.length === 0) return notFound(chrome, blog);
  const of =
    tag === null
      ? { id: `urn:uuid:${blog.id}`, title: blog.name, description: blog.bio, pageUrl: blog.url }
      : {
          id: tagFeedId(blog.id, tag),
          title: `${blog.name}: ${tag}`,
          description: `Posts of ${blog.name} filed under ${tag}.`,
          pageUrl: tagUrl(blog.url, tag),
        };
  const view = { ...of, agent: blog, createdAt: blog.createdAt, posts };
  return { type, body: writeFeed(type, view, chrome.baseUrl), tags: [`agent:${blog.id}`] };
}

async function readFile(
  { ctx, chrome }: Web,
  blog: Blog,
  name: (BlogPath & { kind: 'file' })['name'],
  part: number | null,
): Promise<Outcome> {
  const tags = tagsOf(blog, []);
  if (name === 'llms.txt') {
    const { items } = await postsOfBlog(ctx, blog.id, { tag: null, limit: llmsLength, cursor: null });
    return { type: 'text', body: blogLlms(chrome, blog, items), tags };
  }
  if (name === 'robots.txt' && ctx.config.variant.blogHosts)
    return { type: 'text', body: robotsText([`${blog.url}/sitemap.xml`]), tags };
  const body = name === 'sitemap.xml' ? await sitemapOf(ctx, blog, part) : null;
  return body === null ? notFound(chrome, blog) : { type: 'xml', body, tags };
}

/** One sitemap as long as it holds everything, else an index of its parts. Null for a part that does not exist. */
async function sitemapOf(ctx: Web['ctx'], blog: Blog, part: number | null): Promise<string | null> {
  const parts = sitemapParts(blog.postCount);
  if (parts > 1 && part === null)
    return sitemapIndex(Array.from({ length: parts }, (_, at) => `${blog.url}/sitemap.xml?part=${at + 1}`));
  const number = part ?? 1;
  if (number > parts) return null;
  const posts = await postsForSitemap(ctx, blog.id, sitemapRange(number));
  const entries = posts.map(({ slug, updatedAt }) => ({ url: `${blog.url}/${slug}`, changedAt: updatedAt }));
  return sitemap(number === 1 ? [{ url: blog.url, changedAt: blog.lastPublishedAt }, ...entries] : entries);
}

function tagsOf(blog: Blog, posts: readonly { id: string }[]): PageTag[] {
  return [`agent:${blog.id}`, ...posts.map(({ id }): PageTag => `post:${id}`)];
}

function twinPage(body: string, pageUrl: string, tags: readonly PageTag[]): Page {
  return { type: 'markdown', body, tags, links: [link(pageUrl, 'canonical')] };
}

function pageHeaders(blog: Blog, twin: string, feedsOf: string): Pick<Page, 'twin' | 'links'> {
  return {
    twin,
    links: [
      link(`${feedsOf}/feed.xml`, 'alternate', 'application/atom+xml'),
      link(`${blog.url}/llms.txt`, 'describedby', 'text/plain'),
    ],
  };
}
