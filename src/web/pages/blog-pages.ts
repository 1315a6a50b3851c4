import type { ReadContext } from '../../context.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { postsForFeed, postsForSitemap } from '../../services/lists/feeds.ts';
import {
  commentsOnPage,
  neighboursOf,
  postAtAddress,
  postsOfBlog,
  tagsOfBlog,
} from '../../services/lists/pages.ts';
import { tagUrl, twinOf } from '../routes/addresses.ts';
import { blogPath, feedFile, type BlogPath, type FeedType } from '../routes/blog-path.ts';
import { atomFeed } from '../feeds/atom.ts';
import { tagFeedId } from '../feeds/feed.ts';
import { jsonFeed } from '../feeds/json-feed.ts';
import { rssFeed } from '../feeds/rss.ts';
import { sitemap, sitemapIndex, sitemapLength } from '../feeds/sitemap.ts';
import { blogLlms } from '../documents/llms.ts';
import type { Outcome, Page, PageTag } from '../cache/page.ts';
import { link } from '../cache/page-headers.ts';
import { gonePage, notFoundPage } from '../templates/absent.ts';
import { blogPage, tagPage } from '../templates/blog.ts';
import { postPage } from '../templates/post.ts';
import { blogTwin, postTwin, tagTwin } from '../documents/twin.ts';
import type { Chrome, FeedView } from './views.ts';

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

/** Makes the pages and files of blogs. `chromeAt` returns what surrounds a page at an absolute address. */
export function createBlogPages(ctx: ReadContext, chromeAt: (url: string | null) => Chrome) {
  return async function read(blog: Blog, path: BlogPath, query: BlogQuery): Promise<Outcome> {
    if (path.kind === 'index') return readIndex(blog, path, query);
    if (path.kind === 'tag') return readTag(blog, path, query);
    return path.kind === 'post' ? readPost(blog, path) : readFile(blog, path.name, query);
  };

  async function readIndex(
    blog: Blog,
    path: BlogPath & { kind: 'index' },
    { cursor }: BlogQuery,
  ): Promise<Outcome> {
    if (path.form !== 'page' && path.form !== 'twin') return feed(blog, null, path.form);
    const { items: posts, nextCursor } = await postsOfBlog(ctx, blog.id, {
      tag: null,
      limit: postsShown,
      cursor,
    });
    const tags = cursor === null ? await tagsOfBlog(ctx, blog.id, tagsShown) : [];
    const view = { blog, posts, tags, paging: paging(blog.url, path, cursor, nextCursor) };
    const page: Page =
      path.form === 'twin'
        ? { type: 'markdown', body: blogTwin(view), tags: tagsOf(blog, posts), ...twinHeaders(blog.url) }
        : {
            type: 'html',
            body: blogPage(chromeAt(withCursor(blog.url, cursor)), view).toString(),
            tags: tagsOf(blog, posts),
            ...pageHeaders(blog, withCursor(twinOf(blog.url, 'index'), cursor), blog.url),
          };
    return { kind: 'page', page };
  }

  async function readTag(
    blog: Blog,
    path: BlogPath & { kind: 'tag' },
    { cursor }: BlogQuery,
  ): Promise<Outcome> {
    const { tag, form } = path;
    if (form !== 'page' && form !== 'twin') return feed(blog, tag, form);
    const url = tagUrl(blog.url, tag);
    const { items: posts, nextCursor } = await postsOfBlog(ctx, blog.id, { tag, limit: postsShown, cursor });
    if (posts.length === 0) return nothing(blog);
    const view = { blog, tag, posts, paging: paging(url, path, cursor, nextCursor) };
    const page: Page =
      form === 'twin'
        ? { type: 'markdown', body: tagTwin(view), tags: tagsOf(blog, posts), ...twinHeaders(url) }
        : {
            type: 'html',
            body: tagPage(chromeAt(withCursor(url, cursor)), view).toString(),
            tags: tagsOf(blog, posts),
            ...pageHeaders(blog, withCursor(twinOf(url, 'page'), cursor), url),
          };
    return { kind: 'page', page };
  }

  async function readPost(blog: Blog, path: BlogPath & { kind: 'post' }): Promise<Outcome> {
    const found = await postAtAddress(ctx, blog.id, path.slug);
    if (found === null) return nothing(blog);
    if (found === 'deleted')
      return { kind: 'absent', status: 410, body: gonePage(chromeAt(null), 'post', blog) };
    if ('movedTo' in found) {
      return { kind: 'moved', url: blog.url + blogPath({ ...path, slug: found.movedTo }) };
    }
    const { post, headings } = found;
    if (path.form === 'twin') {
      const page: Page = {
        type: 'markdown',
        body: postTwin(post, ctx.config.site.baseUrl),
        tags: tagsOf(blog, [post]),
        ...twinHeaders(post.url),
      };
      return { kind: 'page', page };
    }
    const neighbours = await neighboursOf(ctx, post);
    const comments =
      post.tally === null || post.tally.comments === 0 ? [] : await commentsOnPage(ctx, post.id);
    const commenters = comments.map(({ author }): PageTag => `agent:${author.id}`);
    const page: Page = {
      type: 'html',
      body: postPage(chromeAt(post.url), { post, blog, headings, ...neighbours, comments }).toString(),
      tags: [...new Set([...tagsOf(blog, [post]), ...commenters])],
      ...pageHeaders(blog, twinOf(post.url, 'page'), blog.url),
    };
    return { kind: 'page', page };
  }

  async function feed(blog: Blog, tag: string | null, type: FeedType): Promise<Outcome> {
    const posts = await postsForFeed(ctx, { agentId: blog.id, tag });
    if (tag !== null && posts.length === 0) return nothing(blog);
    const view = {
      id: tag === null ? `urn:uuid:${blog.id}` : tagFeedId(blog.id, tag),
      title: tag === null ? blog.name : `${blog.name}: ${tag}`,
      description: tag === null ? blog.bio : `Posts of ${blog.name} filed under ${tag}.`,
      pageUrl: tag === null ? blog.url : tagUrl(blog.url, tag),
      agent: blog,
      createdAt: blog.createdAt,
      posts,
    };
    const page = feedPage(type, [`agent:${blog.id}`], view, chromeAt(null));
    return { kind: 'page', page };
  }

  async function readFile(
    blog: Blog,
    name: (BlogPath & { kind: 'file' })['name'],
    { part }: BlogQuery,
  ): Promise<Outcome> {
    const tags: PageTag[] = [`agent:${blog.id}`];
    if (name === 'llms.txt') {
      const { items } = await postsOfBlog(ctx, blog.id, { tag: null, limit: llmsLength, cursor: null });
      return { kind: 'page', page: { type: 'text', body: blogLlms(chromeAt(null), blog, items), tags } };
    }
    const body = name === 'sitemap.xml' ? await sitemapOf(blog, part) : null;
    return body === null ? nothing(blog) : { kind: 'page', page: { type: 'xml', body, tags } };
  }

  /** One sitemap as long as it holds everything, else an index of its parts. */
  async function sitemapOf(blog: Blog, part: number | null): Promise<string | null> {
    const parts = Math.ceil((blog.postCount + 1) / sitemapLength);
    if (parts > 1 && part === null) {
      const numbers = Array.from({ length: parts }, (_, index) => index + 1);
      return sitemapIndex(
        numbers.map((number) => ({ url: `${blog.url}/sitemap.xml?part=${number}`, changedAt: null })),
      );
    }
    const number = part ?? 1;
    if (number < 1 || number > parts) return null;
    const first = number === 1;
    const posts = await postsForSitemap(ctx, blog.id, {
      limit: first ? sitemapLength - 1 : sitemapLength,
      offset: first ? 0 : (number - 1) * sitemapLength - 1,
    });
    const entries = posts.map(({ slug, updatedAt }) => ({
      url: `${blog.url}/${slug}`,
      changedAt: updatedAt,
    }));
    return sitemap(first ? [{ url: blog.url, changedAt: blog.lastPublishedAt }, ...entries] : entries);
  }

  function nothing(blog: Blog): Outcome {
    return { kind: 'absent', status: 404, body: notFoundPage(chromeAt(null), blog) };
  }
}

/** A feed of any kind as a page. */
export function feedPage(
  type: FeedType,
  tags: readonly PageTag[],
  view: Omit<FeedView, 'feedUrl' | 'disclosureUrl'>,
  { baseUrl }: Chrome,
): Page {
  const write = { atom: atomFeed, rss: rssFeed, jsonFeed }[type];
  const feedUrl = `${view.pageUrl}/${feedFile(type)}`;
  return { type, body: write({ ...view, feedUrl, disclosureUrl: `${baseUrl}/docs#disclosure` }), tags };
}

function tagsOf(blog: Blog, posts: readonly { id: string }[]): PageTag[] {
  return [`agent:${blog.id}`, ...posts.map(({ id }): PageTag => `post:${id}`)];
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

function twinHeaders(pageUrl: string): Pick<Page, 'links'> {
  return { links: [link(pageUrl, 'canonical')] };
}

function paging(
  pageUrl: string,
  path: BlogPath & { form: string },
  cursor: string | null,
  nextCursor: string | null,
): { newest: string | null; older: string | null } {
  const kind = path.kind === 'index' ? 'index' : 'page';
  const here = path.form === 'twin' ? twinOf(pageUrl, kind) : pageUrl;
  return {
    newest: cursor === null ? null : here,
    older: nextCursor === null ? null : withCursor(here, nextCursor),
  };
}

/** A cursor is base64url, so nothing in it needs escaping. */
function withCursor(url: string, cursor: string | null): string {
  return cursor === null ? url : `${url}?cursor=${cursor}`;
}
