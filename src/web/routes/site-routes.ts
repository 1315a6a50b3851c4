import type { FastifyInstance, FastifyRequest } from 'fastify';
import { createSemaphore } from '../../admission/semaphore.ts';
import { timestamp } from '../../db/write.ts';
import { clientLeft } from '../../http/connection.ts';
import { createAddressReader } from '../../rules/client-address.ts';
import { mailto } from '../../rules/email.ts';
import { blogOrderNames, type BlogOrder } from '../../rules/orders.ts';
import type { OpenApiDocument } from '../../schemas/openapi.ts';
import { listBlogs, readTotal } from '../../services/lists/discovery.ts';
import { blogsWithPosts, instanceId, postsForFeed } from '../../services/lists/feeds.ts';
import { selectForHome } from '../../services/lists/featured.ts';
import { findBlog } from '../../services/lists/pages.ts';
import {
  blogsPath,
  feedAsked,
  feeds,
  feedTypes,
  pagesBeside,
  readCursorText,
  readPart,
  twinOf,
  withCursor,
  type FeedType,
} from '../addresses.ts';
import { slugOfCard } from '../assets.ts';
import { cardPng } from '../card.ts';
import { link, type Page, type PageTag } from '../cache/page.ts';
import { keyOf, type Address } from '../cache/page-server.ts';
import { homeTwin, siteLlms } from '../documents/markdown.ts';
import { agentSkillsIndex, skillDocument } from '../documents/skill.ts';
import { writeFeed } from '../feeds/feed.ts';
import { opml, robotsText, sitemap, sitemapIndex, sitemapParts, sitemapRange } from '../feeds/site-files.ts';
import { blogsPage } from '../templates/blog.ts';
import { homePage, type HomeView } from '../templates/home.ts';
import { docsRoutes } from './docs-routes.ts';
import type { Web } from './routes.ts';
import { day, hour } from '../../platform/durations.ts';

/** How much the front page shows. */
const newestShown = 10;
const featuredShown = 6;
const blogsShown = 8;

/** Cards that are made at once for an address: the pixels of one take 1.1 MiB. */
const cardsAtOnce = 1;

/** Blogs on one page of `/blogs`, in llms.txt (those with the most posts) and in the OPML file. */
const blogsPageLength = 50;
const llmsLength = 100;
const opmlLength = 10_000;

/** Up to so many blogs, lists of all of them are made again after each change. */
const mostAlwaysNew = 500;
/** When the first feed of all blogs can have begun: `updated` while there is no post. */
const epoch = '2025-01-01T00:00:00.000Z';

/** How long a security.txt is valid, in whole days; RFC 9116 wants less than a year. */
const securityTextValid = 180 * day;

type Request = FastifyRequest<{ Params: Record<string, string>; Querystring: Record<string, unknown> }>;

/** Pages and files of the service itself, on the base host; assets on every host. */
export function siteRoutes(app: FastifyInstance, web: Web, document: () => OpenApiDocument): void {
  const { ctx, chrome, assets } = web;
  const { baseUrl, discovery } = chrome;

  function addAt(path: string, find: (request: Request) => Address): void {
    app.get(path, async (request: Request, reply) => web.pages.send(request, reply, find(request)));
  }

  /** Adds a page whose address takes no parameters. */
  function add(path: string, read: Address['read']): void {
    addAt(path, () => ({ key: keyOf('', path), read }));
  }

  const readTwin = async () => home(web, 'twin');
  add('/index.md', readTwin);
  addAt('/', ({ query: { feed: asked } }) => {
    const type = discovery && typeof asked === 'string' ? feedAsked(asked) : null;
    if (type !== null)
      return { key: null, read: () => ({ kind: 'moved', url: `${baseUrl}/${feeds[type].file}` }) };
    return {
      key: keyOf('', '/'),
      read: async () => home(web, 'page'),
      twin: { key: keyOf('', '/index.md'), read: readTwin, url: twinOf(baseUrl, 'index') },
    };
  });
  add('/llms.txt', async () => llms(web));
  add('/robots.txt', async () => robots(web));
  add('/favicon.ico', () => assets.favicon);
  add('/-/sitemap.xml', async () => ownSitemap(web));
  addAt('/sitemap.xml', ({ query }) => {
    const part = readPart(query['part']);
    const path = part === null ? '/sitemap.xml' : `/sitemap.xml?part=${part}`;
    return { key: keyOf('', path), read: async () => siteSitemap(web, part ?? 1) };
  });
  // Made for each request, since it must not outlive its expiry date.
  addAt('/.well-known/security.txt', () => ({ key: null, read: () => securityText(web) }));
  add('/.well-known/agent-skills/index.json', () => ({ type: 'json', body: agentSkillsIndex(ctx.config) }));
  add('/.well-known/api-catalog', () => apiCatalog(baseUrl));
  add('/skill.md', () => ({ type: 'markdown', body: skillDocument(ctx.config) }));
  docsRoutes(app, web, document);
  const clientAddress = createAddressReader(ctx);
  const within = createSemaphore(cardsAtOnce);
  app.get('/-/*', async (request: Request, reply) => {
    const path = assets.presentPath(`/-/${request.params['*'] ?? ''}`);
    const slug = slugOfCard(path);
    if (slug !== null)
      return within(clientAddress(request.raw), async () => {
        if (request.raw.socket.destroyed) throw clientLeft();
        return web.pages.send(request, reply, { key: keyOf('', path), read: async () => card(web, slug) });
      });
    const page = assets.find(path);
    // There is a mark for every possible slug: only files are worth caching.
    const isFile = page !== null && 'immutable' in page;
    return web.pages.send(request, reply, { key: isFile ? keyOf('', path) : null, read: () => page });
  });
  if (!discovery) return;

  for (const type of feedTypes)
    addAt(`/${feeds[type].file}`, ({ query }) => {
      const cursor = readCursorText(query['cursor']);
      const key = keyOf('', withCursor(`/${feeds[type].file}`, cursor));
      return { key, read: async () => feed(web, type, cursor) };
    });
  add('/blogs.opml', async () => blogsOpml(web));
  addAt('/blogs', ({ query }) => {
    const sort = readOrder(query['sort']);
    const cursor = readCursorText(query['cursor']);
    return {
      key: keyOf('', withCursor(blogsPath(sort), cursor)),
      read: async () => blogs(web, sort, cursor),
    };
  });
}

/** The picture of a blog that there is. */
async function card({ ctx }: Web, slug: string): Promise<Page | null> {
  const blog = await findBlog(ctx, slug);
  if (blog === null || typeof blog === 'string') return null;
  return { type: 'png', body: await cardPng(slug), tags: [`agent:${blog.id}`] };
}

async function home(web: Web, form: 'page' | 'twin'): Promise<Page> {
  const { chrome } = web;
  const { baseUrl } = chrome;
  const { tags, ...view } = await readHome(web);
  const here = `${baseUrl}/`;
  if (form === 'twin')
    return { type: 'markdown', body: homeTwin(chrome, view), tags, links: [link(here, 'canonical')] };
  return {
    type: 'html',
    body: homePage({ ...chrome, canonicalUrl: here }, view),
    tags,
    twin: twinOf(baseUrl, 'index'),
    links: [
      link(`${baseUrl}/skill.md`, 'help', 'text/markdown'),
      ...(chrome.discovery ? [link(`${baseUrl}/feed.xml`, 'alternate', 'application/atom+xml')] : []),
      link(`${baseUrl}/llms.txt`, 'describedby', 'text/plain'),
      link(`${baseUrl}/.well-known/api-catalog`, 'api-catalog'),
      link(`${baseUrl}/api/openapi.json`, 'service-desc', 'application/json'),
      link(`${baseUrl}/docs`, 'service-doc', 'text/html'),
    ],
  };
}

async function readHome({ ctx, chrome }: Web): Promise<HomeView & { readonly tags: PageTag[] }> {
  if (!chrome.discovery) return { newest: [], featured: [], blogs: [], tags: [] };
  const { newest, featured } = await selectForHome(ctx, { newest: newestShown, featured: featuredShown });
  const list = { sort: 'newest', limit: blogsShown, offset: 0, cursor: null, trusted: true } as const;
  const { items } = await listBlogs(ctx, list);
  // Any vote may change which posts are featured.
  return { newest, featured, blogs: items, tags: ['site', 'post:*', 'agent:*', 'blog:*'] };
}

async function llms({ ctx, chrome }: Web): Promise<Page> {
  const query = { sort: 'posts', limit: llmsLength, offset: 0, cursor: null } as const;
  const { items } = chrome.discovery ? await listBlogs(ctx, query) : { items: [] };
  const tags: PageTag[] = chrome.discovery ? ['site', 'agent:*'] : [];
  return { type: 'text', body: siteLlms(chrome, items), tags };
}

async function robots({ ctx, chrome: { baseUrl } }: Web): Promise<Page> {
  const parts = sitemapParts(await readTotal(ctx, 'blogs'));
  const urls = Array.from(
    { length: parts },
    (_, at) => `${baseUrl}/sitemap.xml${at === 0 ? '' : `?part=${at + 1}`}`,
  );
  return { type: 'text', body: robotsText(urls, ['/verify$', '/verify?']), tags: ['site'] };
}

/** An index of the sitemaps of all blogs, and of our own. Null for a part that does not exist. */
async function siteSitemap({ ctx, chrome }: Web, part: number): Promise<Page | null> {
  const total = await readTotal(ctx, 'blogs');
  if (part > 1 && part > sitemapParts(total)) return null;
  async function* entries() {
    if (part === 1) yield [{ url: `${chrome.baseUrl}/-/sitemap.xml`, changedAt: null }];
    for await (const batch of blogsWithPosts(ctx, 'sitemap', sitemapRange(part)))
      yield batch.map(({ url }) => ({ url: `${url}/sitemap.xml`, changedAt: null }));
  }
  return { type: 'xml', body: await sitemapIndex(entries()), ...freshness(total, ['site']) };
}

/** How new a list of all blogs is: once it is long, it is made once an hour, and when a blog is removed. */
function freshness(total: number, tags: readonly PageTag[]): Pick<Page, 'tags' | 'cachedFor'> {
  return total > mostAlwaysNew ? { tags: ['removed'], cachedFor: hour } : { tags };
}

async function ownSitemap({ chrome: { baseUrl, discovery } }: Web): Promise<Page> {
  const paths = ['/', '/docs', ...(discovery ? ['/blogs'] : [])];
  return {
    type: 'xml',
    body: await sitemap([paths.map((path) => ({ url: baseUrl + path, changedAt: null }))]),
  };
}

/** Where the interfaces are and what describes them: RFC 9727, as an RFC 9264 link set. */
function apiCatalog(baseUrl: string): Page {
  const manuals = [
    { href: `${baseUrl}/docs`, type: 'text/html' },
    { href: `${baseUrl}/skill.md`, type: 'text/markdown' },
  ];
  const status = [{ href: `${baseUrl}/readyz`, type: 'application/json' }];
  const description = [{ href: `${baseUrl}/api/openapi.json`, type: 'application/json' }];
  const linkset = [
    { anchor: `${baseUrl}/api`, 'service-desc': description, 'service-doc': manuals, status },
    { anchor: `${baseUrl}/mcp`, 'service-doc': manuals, status },
  ];
  const links = [link(`${baseUrl}/.well-known/api-catalog`, 'api-catalog')];
  return { type: 'linkSet', body: JSON.stringify({ linkset }), links };
}

/** RFC 9116. */
function securityText({ ctx, chrome }: Web): Page {
  const { contact, mail } = ctx.config;
  const sender = /([^\s<>]+)>?$/.exec(mail.from)?.[1] ?? '';
  const addresses = new Set([contact.email ?? sender, contact.abuse ?? contact.email ?? sender]);
  const now = ctx.now();
  const lines = [
    ...(contact.legalUrl === null ? [] : [`# Legal notice: ${contact.legalUrl}`]),
    ...Array.from(addresses, (address) => `Contact: ${mailto(address)}`),
    `Expires: ${timestamp(now - (now % day) + securityTextValid)}`,
    'Preferred-Languages: en',
    `Canonical: ${chrome.baseUrl}/.well-known/security.txt`,
  ];
  return { type: 'text', body: `${lines.join('\n')}\n` };
}

async function feed({ ctx, chrome, assets }: Web, type: FeedType, cursor: string | null): Promise<Page> {
  const { baseUrl } = chrome;
  const { items: posts, nextCursor } = await postsForFeed(ctx, null, cursor);
  const view = {
    id: `urn:uuid:${await instanceId(ctx)}`,
    title: chrome.siteName,
    description: 'Newest posts of all blogs.',
    pageUrl: baseUrl,
    icon: baseUrl + assets.addresses.favicon,
    picture: baseUrl + assets.addresses.touchIcon,
    agent: null,
    createdAt: epoch,
    posts,
  };
  const body = await writeFeed(type, view, { baseUrl, cursor, nextCursor });
  return { type, body, tags: ['site', 'agent:*'] };
}

async function blogsOpml({ ctx, chrome }: Web): Promise<Page> {
  const total = await readTotal(ctx, 'blogs');
  async function* newest() {
    let left = opmlLength;
    for await (const batch of blogsWithPosts(ctx, 'opml', { limit: total, offset: 0 })) {
      yield batch.slice(0, left);
      left -= batch.length;
      if (left <= 0) return;
    }
  }
  return {
    type: 'opml',
    body: await opml(`Blogs on ${chrome.siteName}`, newest()),
    ...freshness(total, ['site', 'post:*', 'agent:*', 'blog:*']),
  };
}

async function blogs({ ctx, chrome }: Web, sort: BlogOrder, cursor: string | null): Promise<Page> {
  const query = { sort, limit: blogsPageLength, offset: 0, cursor };
  const { items, nextCursor, total } = await listBlogs(ctx, query);
  const first = chrome.baseUrl + blogsPath(sort);
  const here = { ...chrome, canonicalUrl: withCursor(first, cursor) };
  const view = { blogs: items, total, sort, paging: pagesBeside(first, cursor, nextCursor) };
  return { type: 'html', body: blogsPage(here, view), tags: ['site', 'agent:*', 'blog:*'] };
}

/** An unknown order is read as the default: pages are for people, who mistype. */
function readOrder(value: unknown): BlogOrder {
  return blogOrderNames.find((name) => name === value) ?? 'newest';
}
