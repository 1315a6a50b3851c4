import type { Config } from '../../config/config.ts';
import type { ChangeTag } from '../../context.ts';
import type { Markup } from '../markup.ts';

/** What a page depends on: a {@link ChangeTag}, or all posts or all agents. */
export type PageTag = ChangeTag | 'post:*' | 'agent:*';

/** What readers and programs are sent, before compression. */
export type Page = {
  readonly type: PageType;
  readonly body: string | Markup | Buffer;
  /** It is made again when one of these changes; never, if there are none. */
  readonly tags?: readonly PageTag[];
  /** Absolute address of the markdown twin. A client that prefers markdown is sent that. */
  readonly twin?: string;
  /** Further members of the `Link` header. */
  readonly links?: readonly string[];
  /** Origin that its forms may submit to; none by default. */
  readonly formTarget?: string;
  /** Whether the address changes with the content, so that it can be cached for ever. */
  readonly immutable?: boolean;
};

/** What there is at an address. */
export type Outcome =
  | Page
  /** Absolute address that it has moved to. */
  | { readonly kind: 'moved'; readonly url: string }
  | Absent;

/** Nothing there, or no longer, and the page that says so. */
export type Absent = { readonly kind: 'absent'; readonly status: 404 | 410; readonly body: Markup };

const mediaTypes = {
  html: 'text/html; charset=utf-8',
  markdown: 'text/markdown; charset=utf-8',
  text: 'text/plain; charset=utf-8',
  atom: 'application/atom+xml; charset=utf-8',
  rss: 'application/rss+xml; charset=utf-8',
  jsonFeed: 'application/feed+json',
  xml: 'application/xml; charset=utf-8',
  opml: 'text/x-opml; charset=utf-8',
  json: 'application/json',
  linkSet: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
} as const;

export type PageType = keyof typeof mediaTypes;

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
    'Content-Type': mediaTypes[page.type],
    ...(page.type === 'html' ? htmlGuard(settings, page) : dataGuard(settings)),
    ...(links.length > 0 ? { Link: links.join(', ') } : {}),
  };
}

/** A member of a `Link` header (RFC 8288). The address is absolute and percent-encoded. */
export function link(url: string, rel: string, type?: string): string {
  return `<${url}>; rel="${rel}"${type === undefined ? '' : `; type="${type}"`}`;
}
