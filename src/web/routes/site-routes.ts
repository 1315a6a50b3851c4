import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import type { BlogsQuery } from '../../services/lists/discovery.ts';
import { twinOf } from './addresses.ts';
import type { AssetFiles } from '../assets.ts';
import { feedFile, feedTypes } from './blog-path.ts';
import type { Page } from '../cache/page.ts';
import { keyOf, type Address, type PageServer } from '../cache/page-server.ts';
import { readCursorText, readPart } from './query.ts';
import { createSitePages } from '../pages/site-pages.ts';
import type { Chrome } from '../pages/views.ts';

/** What a request for a page says besides its path. */
type Asked = {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
};

/** Pages and files of the service itself, on the base host; assets on every host. */
export function siteRoutes(
  app: FastifyInstance,
  ctx: Context,
  pages: PageServer,
  chromeAt: (url: string | null) => Chrome,
  assets: AssetFiles,
): void {
  const { discovery } = ctx.config.variant;
  const { baseUrl } = ctx.config.site;
  const site = createSitePages(ctx, chromeAt);

  /** Adds a page whose address takes no parameters. */
  function add(url: string, read: () => Promise<Page> | Page): void {
    addAt(url, () => at(url, read));
  }

  function addAt(url: string, find: (asked: Asked) => Address): void {
    app.get(
      url,
      async (request: FastifyRequest<{ Params: Asked['params']; Querystring: Asked['query'] }>, reply) =>
        pages.send(request, reply, find(request)),
    );
  }

  addAt('/', () => ({
    ...at('/', site.home),
    twin: { ...at('/index.md', site.homeMarkdown), url: twinOf(baseUrl, 'index') },
  }));
  add('/index.md', site.homeMarkdown);
  add('/llms.txt', site.llms);
  add('/robots.txt', site.robots);
  add('/favicon.ico', () => assets.favicon);
  add('/-/sitemap.xml', site.ownSitemap);
  addAt('/.well-known/security.txt', () => uncached(site.securityText));
  addAt('/problems/:code', ({ params: { code = '' } }) => at(`/problems/${code}`, () => site.problem(code)));
  addAt('/sitemap.xml', ({ query }) => {
    const part = readPart(query['part']);
    return at(part === null ? '/sitemap.xml' : `/sitemap.xml?part=${part}`, () => site.siteSitemap(part));
  });
  addAt('/-/*', ({ params: { '*': name = '' } }) => {
    const path = `/-/${name}`;
    const page = assets.find(path);
    // There is a mark for every possible slug: only files are worth caching.
    return page?.immutable ? at(path, () => page) : uncached(() => page);
  });
  if (!discovery) return;

  for (const type of feedTypes) add(`/${feedFile(type)}`, () => site.feed(type));
  add('/blogs.opml', site.blogsOpml);
  addAt('/blogs', ({ query }) => {
    const sort = readSort(query['sort']);
    const cursor = readCursorText(query['cursor']);
    return at(site.blogsPath(sort, cursor), () => site.blogs(sort, cursor));
  });
}

function at(path: string, read: () => Promise<Page | null> | Page | null): Address {
  return { ...uncached(read), key: keyOf('', path) };
}

function uncached(read: () => Promise<Page | null> | Page | null): Address {
  return {
    key: null,
    async read() {
      const page = await read();
      if (page === null) throw new AppError('not_found', 'There is nothing at this address.');
      return { kind: 'page', page };
    },
  };
}

/** An unknown order is read as the default: pages are for people, who mistype. */
function readSort(value: unknown): BlogsQuery['sort'] {
  return value === 'posts' || value === 'name' ? value : 'newest';
}
