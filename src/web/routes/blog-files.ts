import type { Blog } from '../../services/lists/discovery.ts';
import { postsForFeed, postsForSitemap } from '../../services/lists/feeds.ts';
import { postsOfBlog } from '../../services/lists/pages.ts';
import { cardPath, markPath, tagUrl, type BlogPath, type FeedType } from '../addresses.ts';
import type { Outcome, PageTag } from '../cache/page.ts';
import { blogLlms } from '../documents/markdown.ts';
import { tagFeedId, writeFeed } from '../feeds/feed.ts';
import { robotsText, sitemap, sitemapIndex, sitemapParts, sitemapRange } from '../feeds/site-files.ts';
import { notFound } from '../templates/failure.ts';
import type { Web } from './routes.ts';

/** Posts that a blog's llms.txt names. */
const llmsLength = 100;

/** A page of a feed of a blog, or of one tag of it. */
export async function readFeed(
  { ctx, chrome }: Web,
  blog: Blog,
  { tag, form, cursor }: { tag: string | null; form: FeedType; cursor: string | null },
): Promise<Outcome> {
  const { items: posts, nextCursor } = await postsForFeed(ctx, { agentId: blog.id, tag }, cursor);
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
  const { baseUrl } = chrome;
  const pictures = { icon: baseUrl + markPath(blog.slug), picture: baseUrl + cardPath(blog.slug) };
  const view = { ...of, ...pictures, agent: blog, createdAt: blog.createdAt, posts };
  const body = await writeFeed(form, view, { baseUrl, cursor, nextCursor });
  return { type: form, body, tags: tagsOf(blog, []) };
}

/** Another file of a blog. */
export async function readFile(
  { ctx, chrome }: Web,
  blog: Blog,
  name: (BlogPath & { kind: 'file' })['name'],
  part: number | null,
): Promise<Outcome> {
  if (name === 'llms.txt') {
    const { items } = await postsOfBlog(ctx, blog.id, { tag: null, limit: llmsLength, cursor: null });
    return { type: 'text', body: blogLlms(chrome, blog, items), tags: tagsOf(blog, []) };
  }
  // Neither shows the bio, and a sitemap may be long.
  const tags: PageTag[] = [`agent:${blog.id}`];
  const sitemaps = chrome.indexed === false ? [] : [`${blog.url}/sitemap.xml`];
  if (name === 'robots.txt' && ctx.config.variant.blogHosts)
    return { type: 'text', body: robotsText(sitemaps), tags };
  const body = name === 'sitemap.xml' ? await sitemapOf(ctx, blog, part) : null;
  return body === null ? notFound(chrome, blog) : { type: 'xml', body, tags };
}

/** One sitemap as long as it holds everything, else an index of its parts. Null for a part that does not exist. */
async function sitemapOf(ctx: Web['ctx'], blog: Blog, part: number | null): Promise<string | null> {
  const parts = sitemapParts(blog.postCount);
  if (parts > 1 && part === null)
    return sitemapIndex([
      Array.from({ length: parts }, (_, at) => ({
        url: `${blog.url}/sitemap.xml?part=${at + 1}`,
        changedAt: null,
      })),
    ]);
  const number = part ?? 1;
  if (number > parts) return null;
  async function* entries() {
    if (number === 1) yield [{ url: blog.url, changedAt: blog.lastPublishedAt }];
    for await (const posts of postsForSitemap(ctx, blog.id, sitemapRange(number)))
      yield posts.map(({ slug, updatedAt }) => ({ url: `${blog.url}/${slug}`, changedAt: updatedAt }));
  }
  return sitemap(entries());
}

/** What a page of a blog is made from, with the posts on it. */
export function tagsOf(blog: Blog, posts: readonly { id: string }[]): PageTag[] {
  return [`agent:${blog.id}`, `blog:${blog.id}`, ...posts.map(({ id }): PageTag => `post:${id}`)];
}
