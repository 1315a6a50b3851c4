import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { findBlog } from '../../services/lists/pages.ts';
import { blogRoute, type BlogTarget } from '../../http/target.ts';
import { blogPath, parseBlogPath, type BlogPath } from './blog-path.ts';
import { createBlogPages, type BlogQuery } from '../pages/blog-pages.ts';
import type { AssetFiles } from '../assets.ts';
import type { Outcome } from '../cache/page.ts';
import { keyOf, type Address, type PageServer } from '../cache/page-server.ts';
import { readCursorText, readPart } from './query.ts';
import { robotsText } from '../pages/site-pages.ts';
import { gonePage, notFoundPage } from '../templates/absent.ts';
import type { Chrome } from '../pages/views.ts';

/** Addresses of the service that agents ask a blog's host for. */
const elsewhere: Readonly<Record<string, string>> = {
  '/skill.md': '/skill.md',
  '/docs': '/docs',
  '/mcp': '/mcp',
  '/openapi.json': '/api/openapi.json',
};

/** All addresses of all blogs, on the one route that they are rewritten to. */
export function blogRoutes(
  app: FastifyInstance,
  ctx: Context,
  pages: PageServer,
  chromeAt: (url: string | null) => Chrome,
  assets: AssetFiles,
): void {
  const { site, variant } = ctx.config;
  const readPage = createBlogPages(ctx, chromeAt);
  const schemeLength = new URL(site.baseUrl).protocol.length + '//'.length;

  app.get(blogRoute, async (request, reply) => {
    const target = request.raw.blog;
    if (!target) throw new AppError('not_found', 'There is nothing at this address.');
    const [path = '', ...more] = target.rest.split('?');
    const to = address(target, path, more.join('?'));
    const ofService = target.place === 'host' ? elsewhere[path] : undefined;
    return pages.send(
      request,
      reply,
      ofService === undefined ? to : { ...to, read: () => orService(to.read, ofService) },
    );
  });

  /** What the service has at an address where the blog has nothing. */
  async function orService(readOwn: Address['read'], ofService: string): Promise<Outcome> {
    const found = await readOwn();
    const isNone = found.kind === 'absent' && found.status === 404;
    return isNone ? { kind: 'moved', url: site.baseUrl + ofService } : found;
  }

  function address(target: BlogTarget, path: string, rawQuery: string): Address {
    const parsed = parseBlogPath(path);
    if (parsed === null) return { key: null, read: () => absent(target.slug) };
    if (!isCanonical(target, path, parsed)) {
      return { key: null, read: () => redirect(target.slug, parsed, rawQuery) };
    }
    const query = readQuery(parsed, rawQuery);
    const to = addressOf(target.slug, parsed, query);
    if (!('form' in parsed) || parsed.form !== 'page') return to;
    const twin = { ...parsed, form: 'twin' } as const;
    const url = blogUrl(target.slug) + blogPath(twin) + queryOf(query);
    return { ...to, twin: { ...addressOf(target.slug, twin, query), url } };
  }

  function addressOf(slug: string, path: BlogPath, query: BlogQuery): Omit<Address, 'twin'> {
    const key = isFavicon(path)
      ? keyOf('', '/favicon.ico')
      : keyAt(blogUrl(slug), blogPath(path) + queryOf(query));
    return { key, read: () => read(slug, path, query) };
  }

  /** The same on every host, so it is cached once however many hosts are tried. */
  function isFavicon(path: BlogPath): boolean {
    return variant.blogHosts && path.kind === 'file' && path.name === 'favicon.ico';
  }

  async function read(slug: string, path: BlogPath, query: BlogQuery): Promise<Outcome> {
    if (isFavicon(path)) return { kind: 'page', page: assets.favicon };
    const blog = await findBlog(ctx, slug);
    if (blog === null || typeof blog === 'string') return absence(blog);
    if (path.kind === 'file' && path.name === 'robots.txt' && variant.blogHosts) {
      const body = robotsText([`${blog.url}/sitemap.xml`]);
      return { kind: 'page', page: { type: 'text', body, tags: [`agent:${blog.id}`] } };
    }
    return readPage(blog, path, query);
  }

  async function absent(slug: string): Promise<Outcome> {
    const blog = await findBlog(ctx, slug);
    if (blog === null || typeof blog === 'string') return absence(blog);
    return { kind: 'absent', status: 404, body: notFoundPage(chromeAt(null), blog) };
  }

  function absence(why: 'suspended' | 'deleted' | null): Outcome {
    if (why === null) return { kind: 'absent', status: 404, body: notFoundPage(chromeAt(null)) };
    const body = gonePage(chromeAt(null), why === 'deleted' ? 'blog' : why);
    return { kind: 'absent', status: 410, body };
  }

  /** Another form of an address redirects to the canonical one, unless there is no blog. */
  async function redirect(slug: string, path: BlogPath, rawQuery: string): Promise<Outcome> {
    const blog = await findBlog(ctx, slug);
    if (blog === null) return absence(blog);
    const query = rawQuery === '' ? '' : `?${rawQuery}`;
    return { kind: 'moved', url: blogUrl(slug) + blogPath(path) + query };
  }

  function isCanonical({ place }: BlogTarget, path: string, parsed: BlogPath): boolean {
    if (place !== (variant.blogHosts ? 'host' : 'path')) return false;
    const canonical = blogPath(parsed);
    // Percent escapes are compared by what they mean: some proxies decode them on the way.
    return decodeURIComponent(path) === (decodeURIComponent(canonical) || (variant.blogHosts ? '/' : ''));
  }

  function blogUrl(slug: string): string {
    return variant.blogUrl(site, slug);
  }

  function keyAt(url: string, path: string): string {
    if (!variant.blogHosts) return keyOf('', url.slice(site.baseUrl.length) + path);
    return keyOf(url.slice(schemeLength), path.startsWith('/') ? path : `/${path}`);
  }
}

/** The parameters that this path understands; others are ignored. Throws invalid_input. */
function readQuery(path: BlogPath, rawQuery: string): BlogQuery {
  const query = new URLSearchParams(rawQuery);
  const isList =
    path.kind !== 'file' && path.kind !== 'post' && (path.form === 'page' || path.form === 'twin');
  const isSitemap = path.kind === 'file' && path.name === 'sitemap.xml';
  return {
    cursor: isList ? readCursorText(query.get('cursor')) : null,
    part: isSitemap ? readPart(query.get('part')) : null,
  };
}

function queryOf({ cursor, part }: BlogQuery): string {
  if (cursor !== null) return `?cursor=${cursor}`;
  return part === null ? '' : `?part=${part}`;
}
