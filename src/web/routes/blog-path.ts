import { normalizeTag, tagFault } from '../../rules/text.ts';

/** The three feeds of a blog, a tag or the service, and their file names. */
const feedFiles = { atom: 'feed.xml', rss: 'rss.xml', jsonFeed: 'feed.json' } as const;

export type FeedType = keyof typeof feedFiles;

export const feedTypes: readonly FeedType[] = ['atom', 'rss', 'jsonFeed'];

/** The name of a feed below the address of its page. */
export function feedFile(type: FeedType): string {
  return feedFiles[type];
}

/** Files of a blog that are not pages. */
const files = ['sitemap.xml', 'llms.txt', 'robots.txt', 'favicon.ico'] as const;

/** The meaning of a path below a blog's address. */
export type BlogPath =
  | { readonly kind: 'index'; readonly form: 'page' | 'twin' | FeedType }
  | { readonly kind: 'post'; readonly slug: string; readonly form: 'page' | 'twin' }
  | { readonly kind: 'tag'; readonly tag: string; readonly form: 'page' | 'twin' | FeedType }
  | { readonly kind: 'file'; readonly name: (typeof files)[number] };

/**
 * Reads the path below a blog's address (`/hello`, `/tags/news/feed.xml`), in any spelling of it: {@link
 * blogPath} has the canonical one. Null for what can be no address of a blog.
 */
export function parseBlogPath(path: string): BlogPath | null {
  const segments = path.split('/').filter((segment) => segment !== '');
  const [first = '', ...rest] = segments;
  if (segments.length > 1) return first.toLowerCase() === 'tags' ? parseTag(rest) : null;
  const name = decoded(first)?.toLowerCase();
  if (name === undefined) return null;
  const page = name.replace(/\.html$/, '');
  if (page === '' || page === 'index') return { kind: 'index', form: 'page' };
  if (name === 'index.md') return { kind: 'index', form: 'twin' };
  const feed = feedOf(name);
  if (feed !== null) return { kind: 'index', form: feed };
  const file = files.find((each) => each === name);
  if (file !== undefined) return { kind: 'file', name: file };
  const slug = page.replace(/\.md$/, '');
  if (!/^(?!tags$)[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?$/.test(slug)) return null;
  return { kind: 'post', slug, form: slug === page ? 'page' : 'twin' };
}

/** The path in its canonical spelling, percent-encoded; empty for the front page of the blog. */
export function blogPath(path: BlogPath): string {
  if (path.kind === 'file') return `/${path.name}`;
  const page = pagePath(path);
  if (path.form === 'page') return page;
  if (path.form === 'twin') return page === '' ? '/index.md' : `${page}.md`;
  return `${page}/${feedFiles[path.form]}`;
}

function pagePath(path: Exclude<BlogPath, { kind: 'file' }>): string {
  if (path.kind === 'index') return '';
  return path.kind === 'post' ? `/${path.slug}` : `/tags/${encodeURIComponent(path.tag)}`;
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

function feedOf(name: string): FeedType | null {
  return feedTypes.find((type) => feedFiles[type] === name) ?? null;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
