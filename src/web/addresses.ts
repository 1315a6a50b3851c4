import { AppError, invalidField } from '../errors.ts';
import { blogOrderNames, type BlogOrder } from '../rules/orders.ts';
import { isPictureName, picturePath } from '../rules/media/media-names.ts';
import { normalizeTag, tagFault } from '../rules/text.ts';

/** The feeds that a blog, a tag and the service each have: their files below the address of the page. */
export const feeds = {
  atom: { file: 'feed.xml', name: 'Atom', mediaType: 'application/atom+xml' },
  rss: { file: 'rss.xml', name: 'RSS', mediaType: 'application/rss+xml' },
  jsonFeed: { file: 'feed.json', name: 'JSON Feed', mediaType: 'application/feed+json' },
} as const;

export type FeedType = keyof typeof feeds;

export const feedTypes = Object.keys(feeds) as readonly FeedType[];

/** What other programs call their feeds. */
const usualNames = new Map<string, FeedType>(
  (
    [
      ['atom', 'atom atom.xml default feed feed.atom feed.xml'],
      ['rss', 'feed.rss index.rdf index.rss index.xml rdf rss rss.xml rss2 rss2.xml'],
      ['jsonFeed', 'feed.json json'],
    ] as const
  ).flatMap(([type, names]) => names.split(' ').map((name): [string, FeedType] => [name, type])),
);

/** The feed that a query asks for as other programs name it: `?feed=rss2`. */
export function feedAsked(name: string | null): FeedType | null {
  return usualNames.get(name ?? '') ?? null;
}

const usualAddress = /^\/(?:tags\/(.+?)\/)?((?:blog|feeds?(?:\/posts)?|rss)\/)?([^/]+)\/?$/;

/** The feed that readers of other programs expect at a path where nothing is: `/feed`, `/blog/index.xml`, `/tags/x/rss`. */
export function usualFeed(path: string): (BlogPath & { readonly form: FeedType }) | null {
  const [, tag, folder, name = ''] =
    usualAddress.exec(decoded(path)?.toLowerCase().replace(/\/+/g, '/') ?? '') ?? [];
  const form = usualNames.get(name);
  if (form === undefined || (!folder && /^(?:default|json|rdf)$/.test(name))) return null;
  return tag === undefined ? { kind: 'index', form } : { kind: 'tag', tag: normalizeTag(tag), form };
}

/** Address of a tag below that of its blog. */
export function tagUrl(blogUrl: string, tag: string): string {
  return `${blogUrl}/tags/${encodeURIComponent(tag)}`;
}

/** The list of all blogs in an order. */
export function blogsPath(order: BlogOrder): string {
  return order === blogOrderNames[0] ? '/blogs' : `/blogs?sort=${order}`;
}

/** The markdown twin of a page; a blog and the service have theirs at `/index.md`. */
export function twinOf(pageUrl: string, kind: 'page' | 'index'): string {
  return kind === 'page' ? `${pageUrl}.md` : `${pageUrl}/index.md`;
}

/** Root-relative address of the mark of an agent as a file; see `avatarSvg`. Served on every host. */
export function markPath(agentSlug: string): string {
  return `/-/marks/${agentSlug}.svg`;
}

/** Root-relative address of the picture that stands for a blog in previews; see `cardPng`. */
export function cardPath(agentSlug: string): string {
  return `/-/cards/${agentSlug}.png`;
}

/** Files of a blog that are not pages. */
export const blogFiles = ['sitemap.xml', 'llms.txt', 'robots.txt', 'favicon.ico'] as const;

/** The meaning of a path below a blog's address. */
export type BlogPath =
  | { readonly kind: 'index'; readonly form: 'page' | 'twin' | FeedType }
  | { readonly kind: 'post'; readonly slug: string; readonly form: 'page' | 'twin' }
  | { readonly kind: 'tag'; readonly tag: string; readonly form: 'page' | 'twin' | FeedType }
  /** All comments on a post. */
  | { readonly kind: 'comments'; readonly slug: string }
  /** What can be found in the blog, all of its posts by year, and all of its tags. */
  | { readonly kind: 'search' }
  | { readonly kind: 'archive' }
  | { readonly kind: 'tags' }
  | { readonly kind: 'file'; readonly name: (typeof blogFiles)[number] }
  | { readonly kind: 'picture'; readonly name: string };

/**
 * Reads the path below a blog's address (`/hello`, `/tags/news/feed.xml`), in any spelling of it: {@link
 * blogPath} has the canonical one. Null for what can be no address of a blog.
 */
export function parseBlogPath(path: string): BlogPath | null {
  const segments = path.split('/').filter((segment) => segment !== '');
  const [first = '', ...rest] = segments;
  if (first === '-') return parseOwn(rest);
  if (segments.length > 1)
    return first.toLowerCase() === 'tags' ? parseTag(rest) : parsePicture(segments.join('/'));
  const name = decoded(first)?.toLowerCase();
  if (name === undefined) return null;
  const page = name.replace(/\.html$/, '');
  if (page === '' || page === 'index') return { kind: 'index', form: 'page' };
  if (name === 'index.md') return { kind: 'index', form: 'twin' };
  const feed = feedOf(name);
  if (feed !== null) return { kind: 'index', form: feed };
  const file = blogFiles.find((each) => each === name);
  if (file !== undefined) return { kind: 'file', name: file };
  const slug = page.replace(/\.md$/, '');
  if (!postSlug.test(slug)) return null;
  return { kind: 'post', slug, form: slug === page ? 'page' : 'twin' };
}

const postSlug = /^(?!tags$)[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?$/;

function parseOwn([of, post = '', ...more]: readonly string[]): BlogPath | null {
  const kind = (['search', 'archive', 'tags'] as const).find((each) => each === of);
  if (kind !== undefined) return post === '' && more.length === 0 ? { kind } : null;
  const slug = decoded(post)?.toLowerCase() ?? '';
  return of === 'comments' && more.length === 0 && postSlug.test(slug) ? { kind: 'comments', slug } : null;
}

/** A tag may hold a slash, which some proxies decode on the way. */
function parseTag(segments: readonly string[]): BlogPath | null {
  const feed = segments.length > 1 ? feedOf(segments.at(-1)?.toLowerCase() ?? '') : null;
  const text = decoded((feed === null ? segments : segments.slice(0, -1)).join('/'));
  if (text === null) return null;
  const isTwin = feed === null && /\.md$/i.test(text);
  const tag = normalizeTag(isTwin ? text.slice(0, -3) : text);
  return tagFault(tag) === null ? { kind: 'tag', tag, form: feed ?? (isTwin ? 'twin' : 'page') } : null;
}

function parsePicture(path: string): BlogPath | null {
  const [, name = ''] = /^media\/([^/]+)$/.exec(decoded(path)?.toLowerCase() ?? '') ?? [];
  return isPictureName(name) ? { kind: 'picture', name } : null;
}

function feedOf(file: string): FeedType | null {
  return feedTypes.find((type) => feeds[type].file === file) ?? null;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

/** The path in its canonical spelling, percent-encoded; empty for the front page of the blog. */
export function blogPath(path: BlogPath): string {
  if (path.kind === 'file') return `/${path.name}`;
  if (path.kind === 'picture') return `/${picturePath(path.name)}`;
  if (path.kind === 'search' || path.kind === 'archive' || path.kind === 'tags') return `/-/${path.kind}`;
  if (path.kind === 'comments') return `/-/comments/${path.slug}`;
  const page = path.kind === 'index' ? '' : path.kind === 'post' ? `/${path.slug}` : tagUrl('', path.tag);
  if (path.form === 'page') return page;
  if (path.form === 'twin') return twinOf(page, path.kind === 'index' ? 'index' : 'page');
  return `${page}/${feeds[path.form].file}`;
}

/** A cursor as it may appear in an address: base64url only. Throws invalid_input. */
export function readCursorText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' && /^[\w-]{1,512}$/.test(value)) return value;
  throw invalidField('cursor', "must be taken from the link to the next page, 'Older' or 'Newer'");
}

/** An address with a cursor, which is base64url: nothing in it needs escaping. */
export function withCursor(url: string, cursor: string | null): string {
  return cursor === null ? url : `${url}${url.includes('?') ? '&' : '?'}cursor=${cursor}`;
}

/** Absolute addresses of the pages beside one of a list; null where there is none. */
export type Paging = { readonly newest: string | null; readonly older: string | null };

/** The pages beside the one at a cursor, of a list that begins at an address. */
export function pagesBeside(first: string, cursor: string | null, nextCursor: string | null): Paging {
  return {
    newest: cursor === null ? null : first,
    older: nextCursor === null ? null : withCursor(first, nextCursor),
  };
}

/** The number of a part of a sitemap. Throws not_found, since no other part has an address. */
export function readPart(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' && /^[1-9]\d{0,4}$/.test(value)) return Number(value);
  throw new AppError('not_found', 'There is no such part of the sitemap.');
}
