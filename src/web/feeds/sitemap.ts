import { xml, type Markup } from '../markup.ts';

/** An address for search engines; `changedAt` in ISO 8601, null where it is not known. */
type SitemapEntry = { readonly url: string; readonly changedAt: string | null };

/** The most that one sitemap or index may list (https://www.sitemaps.org/protocol.html). */
export const sitemapLength = 50_000;

/** Pages. The caller splits them by {@link sitemapLength}. */
export function sitemap(pages: readonly SitemapEntry[]): string {
  return list(xml`urlset`, xml`url`, pages);
}

/** Sitemaps, where one does not hold all. */
export function sitemapIndex(sitemaps: readonly SitemapEntry[]): string {
  return list(xml`sitemapindex`, xml`sitemap`, sitemaps);
}

function list(root: Markup, element: Markup, entries: readonly SitemapEntry[]): string {
  if (entries.length > sitemapLength) throw new RangeError(`a sitemap holds ${sitemapLength} addresses`);
  return xml`<?xml version="1.0" encoding="utf-8"?>
<${root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${entries.map(
  ({ url, changedAt }) =>
    xml`<${element}><loc>${url}</loc>${changedAt !== null && xml`<lastmod>${changedAt}</lastmod>`}</${element}>\n`,
)}</${root}>
`.toString();
}
