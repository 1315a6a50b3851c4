import { timestamp, type ReadContext } from '../../context.ts';
import { isErrorCode } from '../../errors.ts';
import { readTotal } from '../../services/counts.ts';
import { listBlogs, type BlogsQuery } from '../../services/lists/discovery.ts';
import { blogsForSitemap, instanceId, postsForFeed } from '../../services/lists/feeds.ts';
import { featuredOnPage, newestPosts } from '../../services/lists/pages.ts';
import { twinOf } from '../routes/addresses.ts';
import { feedPage } from './blog-pages.ts';
import type { FeedType } from '../routes/blog-path.ts';
import { opml } from '../feeds/opml.ts';
import { sitemap, sitemapIndex, sitemapLength } from '../feeds/sitemap.ts';
import { siteLlms } from '../documents/llms.ts';
import { link } from '../cache/page-headers.ts';
import type { Page, PageTag } from '../cache/page.ts';
import { blogsPage } from '../templates/blogs.ts';
import { homePage } from '../templates/home.ts';
import { problemPage } from '../templates/problem.ts';
import { homeTwin } from '../documents/twin.ts';
import type { Chrome, HomePage } from './views.ts';

/** How much the front page shows. */
const newestShown = 10;
const featuredShown = 6;
const blogsShown = 8;

/** Blogs on one page of `/blogs`, in llms.txt (those with the most posts) and in the OPML file. */
const blogsPageLength = 50;
const llmsLength = 100;
const opmlLength = 10_000;

/** When the first feed of all blogs can have begun: `updated` while there is no post. */
const epoch = '2025-01-01T00:00:00.000Z';

/** How long a security.txt is valid, in whole days; RFC 9116 wants less than a year. */
const day = 24 * 3_600_000;
const securityTextValid = 180 * day;

/** Pages and files of the service itself. `chromeAt` returns what surrounds a page at an absolute address. */
export function createSitePages(ctx: ReadContext, chromeAt: (url: string | null) => Chrome) {
  const { site, variant, mail } = ctx.config;
  const { baseUrl } = site;

  async function home(): Promise<Page> {
    const { view, tags } = await readHome();
    return {
      type: 'html',
      body: homePage(chromeAt(`${baseUrl}/`), view).toString(),
      tags,
      twin: twinOf(baseUrl, 'index'),
      links: [
        ...(variant.discovery ? [link(`${baseUrl}/feed.xml`, 'alternate', 'application/atom+xml')] : []),
        link(`${baseUrl}/llms.txt`, 'describedby', 'text/plain'),
        link(`${baseUrl}/.well-known/api-catalog`, 'api-catalog'),
        link(`${baseUrl}/api/openapi.json`, 'service-desc', 'application/json'),
        link(`${baseUrl}/docs`, 'service-doc', 'text/html'),
      ],
    };
  }

  async function homeMarkdown(): Promise<Page> {
    const { view, tags } = await readHome();
    const body = homeTwin(chromeAt(null), view);
    return { type: 'markdown', body, tags, links: [link(`${baseUrl}/`, 'canonical')] };
  }

  async function readHome(): Promise<{ view: HomePage; tags: PageTag[] }> {
    const example = { slugSource: variant.slugSource, exampleBlogUrl: variant.blogUrl(site, 'ada') };
    if (!variant.discovery) return { view: { ...example, newest: [], featured: [], blogs: [] }, tags: [] };
    const newest = await newestPosts(ctx, newestShown);
    const featured = await featuredOnPage(ctx, featuredShown);
    const { items } = await listBlogs(ctx, { sort: 'newest', limit: blogsShown, offset: 0, cursor: null });
    // Any vote may change which posts are featured.
    return { view: { ...example, newest, featured, blogs: items }, tags: ['site', 'post:*', 'agent:*'] };
  }

  async function blogs(sort: BlogsQuery['sort'], cursor: string | null): Promise<Page> {
    const { items, nextCursor, total } = await listBlogs(ctx, {
      sort,
      limit: blogsPageLength,
      offset: 0,
      cursor,
    });
    const paging = {
      newest: cursor === null ? null : baseUrl + blogsPath(sort, null),
      older: nextCursor === null ? null : baseUrl + blogsPath(sort, nextCursor),
    };
    const chrome = chromeAt(baseUrl + blogsPath(sort, cursor));
    const body = blogsPage(chrome, { blogs: items, total, sort, paging }).toString();
    return { type: 'html', body, tags: ['site', 'agent:*'] };
  }

  function blogsPath(sort: BlogsQuery['sort'], cursor: string | null): string {
    const query = [
      ...(sort === 'newest' ? [] : [`sort=${sort}`]),
      ...(cursor === null ? [] : [`cursor=${cursor}`]),
    ];
    return query.length > 0 ? `/blogs?${query.join('&')}` : '/blogs';
  }

  async function feed(type: FeedType): Promise<Page> {
    const view = {
      id: `urn:uuid:${await instanceId(ctx)}`,
      title: chromeAt(null).siteName,
      description: 'Newest posts of all blogs.',
      pageUrl: baseUrl,
      agent: null,
      createdAt: epoch,
      posts: await postsForFeed(ctx, null),
    };
    return feedPage(type, ['site', 'agent:*'], view, chromeAt(null));
  }

  async function llms(): Promise<Page> {
    const page = { sort: 'posts', limit: llmsLength, offset: 0, cursor: null } as const;
    const { items } = variant.discovery ? await listBlogs(ctx, page) : { items: [] };
    const tags: PageTag[] = variant.discovery ? ['site', 'agent:*'] : [];
    return { type: 'text', body: siteLlms(chromeAt(null), items), tags };
  }

  async function blogsOpml(): Promise<Page> {
    const { items } = await listBlogs(ctx, { sort: 'newest', limit: opmlLength, offset: 0, cursor: null });
    const { siteName } = chromeAt(null);
    return { type: 'opml', body: opml(`Blogs on ${siteName}`, items), tags: ['site', 'agent:*'] };
  }

  /** Parts of the index of sitemaps: of all blogs, and our own. */
  async function sitemapParts(): Promise<number> {
    return Math.ceil(((await readTotal(ctx, 'blogs')) + 1) / sitemapLength);
  }

  /** An index of the sitemaps of all blogs, and of our own. Null for a part that does not exist. */
  async function siteSitemap(part: number | null): Promise<Page | null> {
    const number = part ?? 1;
    if (number > 1 && number > (await sitemapParts())) return null;
    const own = number === 1 ? [{ url: `${baseUrl}/-/sitemap.xml`, changedAt: null }] : [];
    const listed = await blogsForSitemap(ctx, {
      limit: sitemapLength - own.length,
      offset: number === 1 ? 0 : (number - 1) * sitemapLength - 1,
    });
    if (number > 1 && listed.length === 0) return null;
    const entries = listed.map(({ url }) => ({ url: `${url}/sitemap.xml`, changedAt: null }));
    return { type: 'xml', body: sitemapIndex([...own, ...entries]), tags: ['site'] };
  }

  function ownSitemap(): Page {
    const paths = ['/', '/docs', ...(variant.discovery ? ['/blogs'] : [])];
    const body = sitemap(paths.map((path) => ({ url: baseUrl + path, changedAt: null })));
    return { type: 'xml', body, tags: [] };
  }

  async function robots(): Promise<Page> {
    const parts = await sitemapParts();
    const more = Array.from({ length: parts - 1 }, (_, index) => `${baseUrl}/sitemap.xml?part=${index + 2}`);
    return { type: 'text', body: robotsText([`${baseUrl}/sitemap.xml`, ...more]), tags: ['site'] };
  }

  /** RFC 9116. Made for each request, since it must not outlive its expiry date. */
  function securityText(): Page {
    const contact = /([^\s<>]+)>?$/.exec(mail.from)?.[1] ?? '';
    const now = ctx.now();
    const lines = [
      `Contact: mailto:${contact}`,
      `Expires: ${timestamp(now - (now % day) + securityTextValid)}`,
      'Preferred-Languages: en',
      `Canonical: ${baseUrl}/.well-known/security.txt`,
    ];
    return { type: 'text', body: `${lines.join('\n')}\n`, tags: [] };
  }

  /** The page of an error code; null if there is no such code. */
  function problem(code: string): Page | null {
    if (!isErrorCode(code)) return null;
    const body = problemPage(chromeAt(`${baseUrl}/problems/${code}`), code).toString();
    return { type: 'html', body, tags: [] };
  }

  return {
    home,
    homeMarkdown,
    blogs,
    blogsPath,
    feed,
    llms,
    blogsOpml,
    siteSitemap,
    ownSitemap,
    robots,
    securityText,
    problem,
  };
}

/** robots.txt: everything may be read, searched, and used as input by AI (contentsignals.org). */
export function robotsText(sitemaps: readonly string[]): string {
  const lines = [
    'User-agent: *',
    'Content-Signal: search=yes, ai-input=yes',
    'Allow: /',
    'Disallow: /verify',
    '',
    ...sitemaps.map((url) => `Sitemap: ${url}`),
  ];
  return `${lines.join('\n')}\n`;
}
