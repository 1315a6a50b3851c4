import type { Config } from '../../config/config.ts';
import { pageTypes, type Page } from './page.ts';

export type PageHeaders = Readonly<Record<string, string>>;

type Settings = Pick<Config, 'site' | 'variant'>;

/** Two years: what browsers' preload lists ask for. */
const hstsSeconds = 63_072_000;

/**
 * Security headers of an HTML page. `formTarget` is where its forms may submit to; nowhere by default. Nothing is
 * loaded from elsewhere but images that an author placed, and no script can run. `connect-src` is for a browser's
 * own tools, such as Lighthouse, which read robots.txt under the page's policy.
 */
export function htmlGuard(
  settings: Settings,
  { formTarget = "'none'", referrer = 'strict-origin-when-cross-origin' } = {},
): PageHeaders {
  return {
    'Content-Security-Policy': `default-src 'none'; img-src 'self' https: data:; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action ${formTarget}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': referrer,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
    ...strictTransport(settings),
  };
}

/** Security headers of what programs read, which pages of other sites may read as well. */
function dataGuard(settings: Settings): PageHeaders {
  return {
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Access-Control-Allow-Origin': '*',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...strictTransport(settings),
  };
}

/** Where blogs are subdomains they are all served as the base is; elsewhere subdomains are not ours to bind. */
function strictTransport({ site, variant }: Settings): PageHeaders {
  if (!site.baseUrl.startsWith('https:')) return {};
  const scope = variant.blogHosts ? '; includeSubDomains' : '';
  return { 'Strict-Transport-Security': `max-age=${hstsSeconds}${scope}` };
}

/** Headers of a page that are the same in a 200 and a 304. */
export function cachingHeaders(page: Page, { pageMaxAge }: Pick<Config, 'pageMaxAge'>): PageHeaders {
  return {
    'Cache-Control': page.immutable
      ? 'public, max-age=31536000, immutable'
      : `public, max-age=${pageMaxAge}, must-revalidate`,
    Vary: page.twin === undefined ? 'Accept-Encoding' : 'Accept, Accept-Encoding',
  };
}

/** All further headers of a page, whatever it is compressed with. */
export function describingHeaders(page: Page, settings: Settings): PageHeaders {
  const twin = page.twin === undefined ? [] : [link(page.twin, 'alternate', 'text/markdown')];
  const links = [...twin, ...(page.links ?? [])];
  return {
    'Content-Type': pageTypes[page.type].mediaType,
    ...(page.type === 'html' ? htmlGuard(settings, page) : dataGuard(settings)),
    ...(links.length > 0 ? { Link: links.join(', ') } : {}),
  };
}

/** A member of a `Link` header (RFC 8288). The address is absolute and percent-encoded. */
export function link(url: string, rel: string, type?: string): string {
  return `<${url}>; rel="${rel}"${type === undefined ? '' : `; type="${type}"`}`;
}
