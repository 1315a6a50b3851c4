import type { FastifyInstance } from 'fastify';
import { AppError } from '../../errors.ts';
import { blogRoute, type BlogTarget } from '../../http/target.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { findBlog } from '../../services/lists/pages.ts';
import { blogPath, parseBlogPath, readCursorText, readPart, type BlogPath } from '../addresses.ts';
import type { Outcome } from '../cache/page.ts';
import { keyOf, type Address } from '../cache/page-server.ts';
import { gone, notFound } from '../templates/failure.ts';
import { readBlogPage, type BlogQuery } from './blog-pages.ts';
import type { Web } from './routes.ts';

/** Addresses of the service that agents ask a blog's host for. */
const elsewhere: Readonly<Record<string, string>> = {
  '/skill.md': '/skill.md',
  '/docs': '/docs',
  '/mcp': '/mcp',
  '/openapi.json': '/api/openapi.json',
};

/** All addresses of all blogs, on the one route that they are rewritten to. */
export function blogRoutes(app: FastifyInstance, web: Web): void {
  app.get(blogRoute, async (request, reply) => {
    const target = request.raw.blog;
    if (!target) throw new AppError('not_found', 'There is nothing at this address.');
    const [path = '', ...query] = target.rest.split('?');
    const address = addressAt(web, target, path, query.join('?'));
    const ofService = target.place === 'host' ? elsewhere[path] : undefined;
    if (ofService === undefined) return web.pages.send(request, reply, address);
    const readOrRedirect = async (): Promise<Outcome | null> => {
      const found = await address.read();
      const isNone = found !== null && 'kind' in found && found.kind === 'absent' && found.status === 404;
      return isNone ? { kind: 'moved', url: web.chrome.baseUrl + ofService } : found;
    };
    return web.pages.send(request, reply, { ...address, read: readOrRedirect });
  });
}

function addressAt(web: Web, target: BlogTarget, path: string, rawQuery: string): Address {
  const { slug } = target;
  const parsed = parseBlogPath(path);
  if (parsed === null) {
    const read = () => inBlog(web, slug, (blog) => notFound(web.chrome, blog));
    return { key: null, read };
  }
  if (!isCanonical(web, target, path, parsed))
    return { key: null, read: () => redirect(web, slug, blogPath(parsed), rawQuery) };
  const query = readQuery(parsed, rawQuery);
  const address = canonicalAddress(web, slug, parsed, query);
  if (!('form' in parsed) || parsed.form !== 'page') return address;
  const twin = { ...parsed, form: 'twin' } as const;
  const url = blogUrl(web, slug) + blogPath(twin) + queryOf(query);
  return { ...address, twin: { ...canonicalAddress(web, slug, twin, query), url } };
}

function isCanonical({ ctx }: Web, { place }: BlogTarget, path: string, parsed: BlogPath): boolean {
  const { blogHosts } = ctx.config.variant;
  if (place !== (blogHosts ? 'host' : 'path')) return false;
  const canonical = blogPath(parsed);
  // Percent escapes are compared by what they mean: some proxies decode them on the way.
  return decodeURIComponent(path) === (decodeURIComponent(canonical) || (blogHosts ? '/' : ''));
}

function canonicalAddress(web: Web, slug: string, path: BlogPath, query: BlogQuery): Omit<Address, 'twin'> {
  const { blogHosts } = web.ctx.config.variant;
  if (blogHosts && path.kind === 'file' && path.name === 'favicon.ico')
    // The same on every host, so it is cached once however many hosts are tried.
    return { key: keyOf('', '/favicon.ico'), read: () => web.assets.favicon };
  const url = blogUrl(web, slug);
  const rest = blogPath(path) + queryOf(query);
  const key = blogHosts
    ? keyOf(url.slice(url.indexOf('//') + 2), rest.startsWith('/') ? rest : `/${rest}`)
    : keyOf('', url.slice(web.chrome.baseUrl.length) + rest);
  return { key, read: () => inBlog(web, slug, (blog) => readBlogPage(web, blog, path, query)) };
}

/** What `read` finds in a blog, or that there is none. */
async function inBlog(
  { ctx, chrome }: Web,
  slug: string,
  read: (blog: Blog) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const blog = await findBlog(ctx, slug);
  if (blog === null) return notFound(chrome);
  return typeof blog === 'string' ? gone(chrome, blog) : read(blog);
}

/** Another form of an address redirects to the canonical one, unless there is no blog. */
async function redirect(web: Web, slug: string, path: string, rawQuery: string): Promise<Outcome> {
  if ((await findBlog(web.ctx, slug)) === null) return notFound(web.chrome);
  return { kind: 'moved', url: blogUrl(web, slug) + path + (rawQuery === '' ? '' : `?${rawQuery}`) };
}

function blogUrl({ ctx: { config } }: Web, slug: string): string {
  return config.variant.blogUrl(config.site, slug);
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
