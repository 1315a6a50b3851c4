import type { Blog } from '../../services/lists/discovery.ts';
import { Markup, xml } from '../markup.ts';

/** An address for search engines; `changedAt` in ISO 8601, null where it is not known. */
type SitemapEntry = { readonly url: string; readonly changedAt: string | null };

/** The most that one sitemap or index may list (https://www.sitemaps.org/protocol.html). */
export const sitemapLength = 50_000;

/** How many parts list so many entries and, first of all, one of our own. */
export function sitemapParts(entries: number): number {
  return Math.ceil((entries + 1) / sitemapLength);
}

/** Which entries a part lists, from 1; the first part has one less. */
export function sitemapRange(part: number): { limit: number; offset: number } {
  if (part === 1) return { limit: sitemapLength - 1, offset: 0 };
  return { limit: sitemapLength, offset: (part - 1) * sitemapLength - 1 };
}

/** Items as they are read, a batch at a time. */
type Batches<T> = AsyncIterable<readonly T[]> | Iterable<readonly T[]>;

/** Pages. The caller splits them by {@link sitemapLength}. */
export function sitemap(pages: Batches<SitemapEntry>): Promise<string> {
  return list(xml`urlset`, xml`url`, pages);
}

/** The addresses of sitemaps, where one does not hold all. */
export function sitemapIndex(sitemaps: Batches<SitemapEntry>): Promise<string> {
  return list(xml`sitemapindex`, xml`sitemap`, sitemaps);
}

async function list(root: Markup, element: Markup, batches: Batches<SitemapEntry>): Promise<string> {
  let entries = 0;
  const written = await writeAll(batches, ({ url, changedAt }) => {
    if (++entries > sitemapLength) throw new RangeError(`a sitemap holds ${sitemapLength} addresses`);
    return xml`<${element}><loc>${url}</loc>${changedAt !== null && xml`<lastmod>${changedAt}</lastmod>`}</${element}>\n`;
  });
  return xml`<?xml version="1.0" encoding="utf-8"?>
<${root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${written}</${root}>
`.toString();
}

/** Batch by batch, so that what reads them can give way between two. */
async function writeAll<T>(batches: Batches<T>, write: (item: T) => Markup): Promise<Markup> {
  let text = '';
  for await (const batch of batches) for (const item of batch) text += write(item).toString();
  return new Markup(text);
}

/** robots.txt: everything may be read; of the service's own host all but `closed`, which rules name to their end (RFC 9309). */
export function robotsText(sitemaps: readonly string[], closed: readonly string[] = []): string {
  const lines = [
    'User-agent: *',
    'Allow: /',
    ...closed.map((path) => `Disallow: ${path}`),
    '',
    ...sitemaps.map((url) => `Sitemap: ${url}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** Blogs as OPML 2.0, to be imported into a feed reader. */
export async function opml(title: string, blogs: Batches<Blog>): Promise<string> {
  const outlines = await writeAll(
    blogs,
    (blog) =>
      xml`<outline type="rss" text="${blog.name}" title="${blog.name}"${blog.bio !== null && xml` description="${blog.bio}"`} xmlUrl="${blog.url}/feed.xml" htmlUrl="${blog.url}"/>\n`,
  );
  return xml`<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0">
<head>
<title>${title}</title>
</head>
<body>
${outlines}</body>
</opml>
`.toString();
}
