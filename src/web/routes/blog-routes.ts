import type { FastifyInstance } from 'fastify';
import { AppError } from '../../errors.ts';
import { blogRoute, type BlogTarget } from '../../http/target.ts';
import { withoutNeedlessEscapes } from '../../rules/hosts.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { commentsUnderPost, pageOfComments, type PageComment } from '../../services/lists/comments.ts';
import {
  findBlog,
  isSlugOfPost,
  neighboursOf,
  postAtAddress,
  postForPage,
  postForTwin,
  postsOfBlog,
  relatedPosts,
  tagsOfBlog,
  type BlogAtAddress,
} from '../../services/lists/pages.ts';
import { blogPath, pagesBeside, parseBlogPath, readCursorText, readPart } from '../addresses.ts';
import { feedAsked, tagUrl, twinOf, usualFeed, withCursor, type BlogPath } from '../addresses.ts';
import { findPart, keyOf, type Address } from '../cache/page-server.ts';
import { link, type Outcome, type Page, type PageTag } from '../cache/page.ts';
import { blogTwin, postTwin, tagTwin } from '../documents/markdown.ts';
import { archivePage, tagsPage } from '../templates/archive.ts';
import { blogPage, tagPage } from '../templates/blog.ts';
import { commentsPage } from '../templates/comments.ts';
import { gone, removed, notFound } from '../templates/failure.ts';
import { postPage } from '../templates/post.ts';
import { sendPicture } from './blog-media.ts';
import { readFeed, readFile, tagsOf } from './blog-files.ts';
import type { Web } from './routes.ts';
import type { SearchHandler } from './search-routes.ts';

/** Posts on one page of a blog, and tags that it lists. */
const postsShown = 20;
const tagsShown = 50;
/** Posts on a page of the archive, and tags on the page of them. */
const archiveLength = 200;
const mostTags = 1_000;

/** Addresses of the service that agents ask a blog's host for. */
const elsewhere: Readonly<Record<string, string>> = {
  '/skill.md': '/skill.md',
  '/docs': '/docs',
  '/mcp': '/mcp',
  '/openapi.json': '/api/openapi.json',
};

/** All addresses of all blogs, on the one route that they are rewritten to. */
export function blogRoutes(app: FastifyInstance, web: Web, search: SearchHandler | null): void {
  app.get(blogRoute, async (request, reply) => {
    const target = request.raw.blog;
    if (!target) throw new AppError('not_found', 'There is nothing at this address.');
    const [path = '', ...query] = target.rest.split('?');
    const isSearch = search !== null && target.place === 'host' && path === blogPath({ kind: 'search' });
    const blog = isSearch ? await findBlog(web.ctx, target.slug) : null;
    if (isSearch && blog !== null && typeof blog !== 'string')
      return search(request, reply, Object.fromEntries(new URLSearchParams(query.join('?'))), blog);
    const parsed = parseBlogPath(withoutNeedlessEscapes(path));
    if (parsed?.kind === 'picture' && isCanonical(web, target, path, parsed))
      return sendPicture(web, request, reply, { slug: target.slug, name: parsed.name });
    const address = addressAt(web, target, { path, parsed, rawQuery: query.join('?') });
    const ofService = target.place === 'host' ? elsewhere[path] : undefined;
    if (ofService === undefined) return web.pages.send(request, reply, address);
    const readOrRedirect = async (): Promise<Outcome | null> => {
      const found = await address.read();
      const isNone = found !== null && 'kind' in found && found.kind === 'absent' && found.status === 404;
      if (!isNone || (parsed?.kind === 'post' && (await isSlugOfPost(web.ctx, target.slug, parsed.slug))))
        return found;
      return { kind: 'moved', url: web.chrome.baseUrl + ofService };
    };
    return web.pages.send(request, reply, { ...address, read: readOrRedirect });
  });
}

/** A path below a blog, with what it names. */
type Asked = { readonly path: string; readonly parsed: BlogPath | null; readonly rawQuery: string };

function addressAt(web: Web, target: BlogTarget, { path, parsed, rawQuery }: Asked): Address {
  const { slug } = target;
  if (parsed === null) {
    const read = () => inBlog(web, slug, (blog) => feedOrNothing(web, blog, path));
    return { key: null, read };
  }
  if (!isCanonical(web, target, path, parsed))
    return { key: null, read: () => redirect(web, slug, blogPath(parsed), rawQuery) };
  const form = feedAsked(new URLSearchParams(rawQuery).get('feed'));
  if (form !== null && (parsed.kind === 'index' || parsed.kind === 'tag') && parsed.form === 'page')
    return { key: null, read: () => redirect(web, slug, blogPath({ ...parsed, form }), '') };
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
  if (withoutNeedlessEscapes(path) !== path) return false;
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
  return { key, read: () => inBlog(web, slug, (blog) => readIndexed(web, blog, path, query)) };
}

/** What `read` finds in a blog, or that there is none. */
async function inBlog(
  { ctx, chrome }: Web,
  slug: string,
  read: (blog: BlogAtAddress) => Outcome | Promise<Outcome>,
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

type BlogQuery = ReturnType<typeof readQuery>;

/** The parameters that this path understands; others are ignored. Throws invalid_input. */
function readQuery(path: BlogPath, rawQuery: string) {
  const query = new URLSearchParams(rawQuery);
  const isList = ['comments', 'archive', 'index', 'tag'].includes(path.kind);
  const isSitemap = path.kind === 'file' && path.name === 'sitemap.xml';
  return {
    /** Where a list continues. */
    cursor: isList ? readCursorText(query.get('cursor')) : null,
    /** Number of a part of a sitemap too long for one, from 1. */
    part: isSitemap ? readPart(query.get('part')) : null,
  };
}

function queryOf({ cursor, part }: BlogQuery): string {
  if (cursor !== null) return `?cursor=${cursor}`;
  return part === null ? '' : `?part=${part}`;
}

/** The same, kept out of search engines while the blog is on probation. */
async function readIndexed(
  web: Web,
  blog: BlogAtAddress,
  path: BlogPath,
  query: BlogQuery,
): Promise<Outcome> {
  if (blog.indexed) return readBlogPage(web, blog, path, query);
  if (path.kind === 'file' && path.name === 'sitemap.xml') return notFound(web.chrome, blog);
  const found = await readBlogPage({ ...web, chrome: { ...web.chrome, indexed: false } }, blog, path, query);
  return 'kind' in found ? found : { ...found, indexed: false };
}

/** The page or file at a path of a blog. */
async function readBlogPage(
  web: Web,
  blog: Blog,
  path: BlogPath,
  { cursor, part }: BlogQuery,
): Promise<Outcome> {
  if (path.kind === 'post') return readPost(web, blog, path);
  if (path.kind === 'comments') return readComments(web, blog, path, cursor);
  // Where blogs have hosts, the search handler has answered, and so has that of pictures.
  if (path.kind === 'search' || path.kind === 'picture') return notFound(web.chrome, blog);
  if (path.kind === 'archive') return readArchive(web, blog, cursor);
  if (path.kind === 'tags') return readTags(web, blog);
  if (path.kind === 'file') return readFile(web, blog, path.name, part);
  const { form } = path;
  const tag = path.kind === 'tag' ? path.tag : null;
  return form === 'page' || form === 'twin'
    ? readList(web, blog, { tag, form, cursor })
    : readFeed(web, blog, { tag, form, cursor });
}

/** The posts of a blog, or of one tag of it. */
async function readList(
  web: Web,
  blog: Blog,
  { tag, form, cursor }: { tag: string | null; form: 'page' | 'twin'; cursor: string | null },
): Promise<Outcome> {
  const { ctx, chrome } = web;
  const { items: posts, nextCursor } = await postsOfBlog(ctx, blog.id, { tag, limit: postsShown, cursor });
  if (tag !== null && posts.length === 0)
    return feedOrNothing(web, blog, blogPath({ kind: 'tag', tag, form }));
  const url = tag === null ? blog.url : tagUrl(blog.url, tag);
  const twin = twinOf(url, tag === null ? 'index' : 'page');
  const first = form === 'twin' ? twin : url;
  const view = { blog, posts, paging: pagesBeside(first, cursor, nextCursor) };
  const tags = tagsOf(blog, posts);
  if (form === 'twin') return twinPage(tag === null ? blogTwin(view) : tagTwin({ ...view, tag }), url, tags);
  const here = { ...chrome, canonicalUrl: withCursor(url, cursor) };
  return {
    type: 'html',
    body:
      tag === null
        ? blogPage(here, { ...view, tags: cursor === null ? await commonestTags(web, blog.id) : [] })
        : tagPage(here, { ...view, tag }),
    tags,
    ...pageHeaders(blog, withCursor(twin, cursor), url),
  };
}

/** The tags that the first page of a blog shows: cached by themselves, since each vote and comment has that made again. */
async function commonestTags({ ctx, pages }: Web, agentId: string) {
  return findPart(pages, `tags of ${agentId}`, [`agent:${agentId}`], async () =>
    tagsOfBlog(ctx, agentId, tagsShown),
  );
}

/** All posts of a blog by year, a page at a time. */
async function readArchive({ ctx, chrome }: Web, blog: Blog, cursor: string | null): Promise<Page> {
  const query = { tag: null, limit: archiveLength, cursor };
  const { items: posts, nextCursor } = await postsOfBlog(ctx, blog.id, query);
  const url = blog.url + blogPath({ kind: 'archive' });
  const here = { ...chrome, canonicalUrl: withCursor(url, cursor) };
  const body = archivePage(here, { blog, posts, paging: pagesBeside(url, cursor, nextCursor) });
  return { type: 'html', body, tags: tagsOf(blog, []) };
}

/** The tags of a blog, the commonest first. */
async function readTags({ ctx, chrome }: Web, blog: Blog): Promise<Page> {
  const here = { ...chrome, canonicalUrl: blog.url + blogPath({ kind: 'tags' }) };
  const tags = await tagsOfBlog(ctx, blog.id, mostTags + 1);
  const view = { blog, tags: tags.slice(0, mostTags), isWhole: tags.length <= mostTags };
  return { type: 'html', body: tagsPage(here, view), tags: tagsOf(blog, []) };
}

async function readPost(web: Web, blog: Blog, path: BlogPath & { kind: 'post' }): Promise<Outcome> {
  const { ctx, chrome } = web;
  const read = path.form === 'twin' ? postForTwin : postForPage;
  const found = await read(ctx, blog.id, path.slug);
  if (found === null) return feedOrNothing(web, blog, blogPath(path));
  if (found === 'deleted') return gone(chrome, 'post', blog);
  if ('removed' in found) return removed(chrome, found.removed, blog);
  if ('movedTo' in found)
    return { kind: 'moved', url: blog.url + blogPath({ ...path, slug: found.movedTo }) };
  const tags = tagsOf(blog, [found.post]);
  const asJson = link(`${chrome.baseUrl}/api/posts/${found.post.id}`, 'alternate', 'application/json');
  if (!('headings' in found))
    return twinPage(postTwin(found.post, chrome.baseUrl), found.post.url, tags, [asJson]);
  const { post, headings } = found;
  const neighbours = await neighboursOf(ctx, post);
  const comments = post.tally?.comments ? await commentsUnderPost(ctx, post.id) : [];
  const related = await relatedPosts(ctx, post, neighbours);
  const view = { post, blog, headings, ...neighbours, related, comments };
  return {
    type: 'html',
    body: postPage({ ...chrome, canonicalUrl: post.url }, view),
    tags: [...new Set([...tags, ...commentersOf(comments)])],
    ...pageHeaders(blog, twinOf(post.url, 'page'), blog.url, [asJson]),
  };
}

/** Where nothing is or was: on to the feed that readers of other programs look for there, if any. */
async function feedOrNothing({ ctx, chrome }: Web, blog: Blog, path: string): Promise<Outcome> {
  const feed = usualFeed(path);
  if (feed === null) return notFound(chrome, blog);
  const isNone =
    feed.kind === 'tag'
      ? (await postsOfBlog(ctx, blog.id, { tag: feed.tag, limit: 1, cursor: null })).items.length === 0
      : await isSlugOfPost(ctx, blog.slug, path.slice(1));
  return isNone ? notFound(chrome, blog) : { kind: 'moved', url: blog.url + blogPath(feed) };
}

/** All comments on a post, a page at a time. */
async function readComments(
  { ctx, chrome }: Web,
  blog: Blog,
  path: BlogPath & { kind: 'comments' },
  cursor: string | null,
): Promise<Outcome> {
  if (!ctx.config.variant.engagement) return notFound(chrome, blog);
  const found = await postAtAddress(ctx, blog.id, path.slug);
  if (found === null) return notFound(chrome, blog);
  if (found === 'deleted') return gone(chrome, 'post', blog);
  if ('removed' in found) return removed(chrome, found.removed, blog);
  if ('movedTo' in found)
    return { kind: 'moved', url: blog.url + blogPath({ ...path, slug: found.movedTo }) };
  const { post } = found;
  const { items: comments, nextCursor } = await pageOfComments(ctx, post.id, cursor);
  const url = blog.url + blogPath(path);
  const view = { blog, post, comments, paging: pagesBeside(url, cursor, nextCursor) };
  return {
    type: 'html',
    body: commentsPage({ ...chrome, canonicalUrl: withCursor(url, cursor) }, view),
    tags: [...new Set([...tagsOf(blog, [post]), ...commentersOf(comments)])],
  };
}

function commentersOf(comments: readonly PageComment[]): PageTag[] {
  const named = comments.flatMap(({ author, answers }) => [author, answers?.author ?? null]);
  return named.flatMap((agent): PageTag[] => (agent === null ? [] : [`agent:${agent.id}`]));
}

function twinPage(
  body: string,
  pageUrl: string,
  tags: readonly PageTag[],
  links: readonly string[] = [],
): Page {
  return { type: 'markdown', body, tags, links: [link(pageUrl, 'canonical'), ...links] };
}

function pageHeaders(
  blog: Blog,
  twin: string,
  feedsOf: string,
  links: readonly string[] = [],
): Pick<Page, 'twin' | 'links'> {
  return {
    twin,
    links: [
      link(`${feedsOf}/feed.xml`, 'alternate', 'application/atom+xml'),
      link(`${blog.url}/llms.txt`, 'describedby', 'text/plain'),
      ...links,
    ],
  };
}
