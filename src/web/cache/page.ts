import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../../config/config.ts';
import type { ChangeTag, Context } from '../../context.ts';
import { alone, aloneText, aloneTexts, compress, decompress } from '../../http/compress.ts';
import type { Encoding } from '../../http/encoding.ts';
import { matchesEtag } from '../../http/etag.ts';
import type { AnswerBudget } from '../../http/in-flight.ts';
import type { Full } from '../../http/read-body.ts';
import { feedTypes } from '../addresses.ts';
import type { Markup } from '../markup.ts';

/** What a page depends on: a {@link ChangeTag}, or all of a kind. */
export type PageTag = ChangeTag | 'post:*' | 'agent:*' | 'blog:*';

/** What readers and programs are sent, before compression. */
export type Page = {
  readonly type: PageType;
  readonly body: string | Markup | Buffer;
  /** It is made again when one of these changes; never, if there are none. */
  readonly tags?: readonly PageTag[];
  /** Milliseconds that it is cached at most, where its tags do not cover all that it shows. */
  readonly cachedFor?: number;
  /** Absolute address of the markdown twin. A client that prefers markdown is sent that. */
  readonly twin?: string;
  /** Further members of the `Link` header. */
  readonly links?: readonly string[];
  /** Origin that its forms may submit to; none by default. */
  readonly formTarget?: string;
  /** Whether the address changes with the content, so that it can be cached for ever. */
  readonly immutable?: boolean;
  /** False keeps it out of search engines. */
  readonly indexed?: boolean;
  /** Whether the answer says what is left of its client's limit, so that no shared cache may store it. */
  readonly personal?: boolean;
};

/** What there is at an address. */
export type Outcome =
  | Page
  /** Absolute address that it has moved to. */
  | { readonly kind: 'moved'; readonly url: string }
  | Absent;

/** Nothing there, or no longer: in a sentence, as the code that programs know it by, and the page that says so. */
export type Absent = {
  readonly kind: 'absent';
  readonly status: 404 | 410;
  readonly text: string;
  readonly code: 'not_found' | 'withheld';
  readonly body: Markup;
};

/** A page in one encoding, with all of its headers as `writeHead` takes them. */
export type Representation = {
  readonly encoding: Encoding;
  readonly body: Buffer;
  /** Strong: it differs with the encoding. */
  readonly etag: string;
  /** Of a 200 and of a 304; each answer writes its request id into its place. */
  readonly ok: string[];
  readonly notModified: string[];
};

/**
 * A page ready to be sent. Each compressed representation is made when it is first requested; the uncompressed one,
 * several times as large, is then stored only if somebody has requested it too.
 */
export type StoredPage = {
  readonly tags: readonly PageTag[];
  /** Absolute address of the markdown twin, or null. */
  readonly twin: string | null;
  readonly representations: { [Name in Encoding]: Representation | null };
  /** Those that are being made. */
  readonly underWay: { [Name in Encoding]?: Promise<Representation> };
  readonly compressible: boolean;
  /** Whether the page was requested uncompressed. */
  storesIdentity: boolean;
  readonly hash: string;
  readonly caching: PageHeaders;
  readonly describing: PageHeaders;
  /** When a feed was made, as an HTTP date; null for pages of other types. */
  readonly lastModified: string | null;
  /** Epoch ms from which that may be sent; `Infinity` once it is sent, or if there is nothing to send. */
  settlesAt: number;
  readonly madeAt: number;
  readonly cachedFor: number;
  /** Name of the route that it was made by, once it was sent. */
  route: string;
  /** Whether it was requested since the cache last looked for something to evict. */
  used: boolean;
};

/** Smaller bodies are not compressed: headers outweigh what would be saved. */
const leastCompressed = 400;

/**
 * An HTTP date has a resolution of one second, and a change elsewhere is noticed within one. So the date of a feed
 * is sent only this many ms after that second has ended, when nothing else can be sent under the same date.
 */
const settlingTime = 2_000;

function bytesOf(body: Page['body']): Buffer {
  if (typeof body === 'string') return aloneText(body);
  return Buffer.isBuffer(body) ? alone(body) : aloneTexts(body.pieces());
}

/** Prepares a page, uncompressed; `now` in epoch ms is when it was made. */
export function storePage(page: Page, config: Config, now: number): StoredPage {
  const body = bytesOf(page.body);
  const isFeed = feedTypes.some((type) => type === page.type);
  const stored: StoredPage = {
    tags: page.tags ?? [],
    twin: page.twin ?? null,
    representations: { br: null, zstd: null, gzip: null, identity: null },
    underWay: {},
    compressible: page.type !== 'png' && body.length >= leastCompressed,
    storesIdentity: false,
    hash: hash('sha256', body, 'base64url').slice(0, 22),
    caching: cachingHeaders(page, config),
    describing: describingHeaders(page, config),
    lastModified: isFeed ? new Date(now).toUTCString() : null,
    settlesAt: isFeed ? now - (now % 1000) + 1000 + settlingTime : Infinity,
    madeAt: now,
    cachedFor: page.cachedFor ?? Infinity,
    route: 'none',
    used: false,
  };
  stored.representations.identity = makeRepresentation(stored, 'identity', body);
  return stored;
}

/** The page in an encoding, compressed now if it has not been before: once, however many ask at the same time. */
export function representationOf(
  stored: StoredPage,
  encoding: Encoding,
): Representation | Promise<Representation> {
  const wanted = stored.compressible ? encoding : 'identity';
  if (wanted === 'identity') stored.storesIdentity = true;
  return stored.representations[wanted] ?? (stored.underWay[wanted] ??= makeWanted(stored, wanted));
}

async function makeWanted(stored: StoredPage, wanted: Encoding): Promise<Representation> {
  const { representations, underWay } = stored;
  try {
    const whole = await wholeBody(stored);
    const body = wanted === 'identity' ? whole : await compress(whole, wanted, 'once');
    const made = (representations[wanted] = makeRepresentation(stored, wanted, body));
    if (!stored.storesIdentity) representations.identity = null;
    return made;
  } finally {
    delete underWay[wanted];
  }
}

/** The page uncompressed, also where only compressed representations are left. */
async function wholeBody({ representations }: StoredPage): Promise<Buffer> {
  if (representations.identity !== null) return representations.identity.body;
  const left = representations.zstd ?? representations.br ?? representations.gzip;
  if (left === null) throw new Error('A stored page has lost its body');
  return decompress(left.body, left.encoding);
}

function makeRepresentation(stored: StoredPage, encoding: Encoding, body: Buffer): Representation {
  const isCompressed = encoding !== 'identity';
  const etag = `"${stored.hash}${isCompressed ? `-${encoding}` : ''}"`;
  const validating = { ...stored.caching, ETag: etag };
  const whole = {
    ...stored.describing,
    ...(isCompressed ? { 'Content-Encoding': encoding } : {}),
    'Content-Length': String(body.length),
    ...validating,
  };
  const representation = {
    encoding,
    body,
    etag,
    ok: ['X-Request-Id', '', ...Object.entries(whole).flat()],
    notModified: ['X-Request-Id', '', ...Object.entries(validating).flat()],
  };
  if (stored.settlesAt === Infinity) addLastModified(stored, representation);
  return representation;
}

function addLastModified({ lastModified }: StoredPage, representation: Representation): void {
  if (lastModified === null) return;
  representation.ok.push('Last-Modified', lastModified);
  representation.notModified.push('Last-Modified', lastModified);
}

/** The headers of a request that decide between 200 and 304. */
type Conditions = Pick<IncomingHttpHeaders, 'if-none-match' | 'if-modified-since'>;

/** What answers are sent with. */
type Sending = {
  readonly clock: Pick<Context, 'now'>;
  readonly requestId: string;
  readonly answers: AnswerBudget;
};

/** Where in the headers of a representation the request id stands. */
const requestIdAt = 1;

/**
 * Answers with a representation of a stored page, or with 304 if the client has it; null, or what has no room for it: then
 * nothing is sent.
 */
export function sendRepresentation(
  stored: StoredPage,
  representation: Representation,
  { 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince }: Conditions,
  request: IncomingMessage,
  response: ServerResponse,
  { clock, requestId, answers }: Sending,
): Full | null {
  if (stored.settlesAt !== Infinity && clock.now() >= stored.settlesAt) settle(stored);
  const isFresh =
    ifNoneMatch === undefined
      ? ifModifiedSince !== undefined &&
        stored.settlesAt === Infinity &&
        // Only the very date that was sent: a feed that lost a post may be older than the one that had it.
        ifModifiedSince === stored.lastModified
      : matchesEtag(ifNoneMatch, representation.etag);
  const body = isFresh || request.method === 'HEAD' ? undefined : representation.body;
  const full = body === undefined ? null : answers.fullFor(request, body);
  if (full !== null) return full;
  const headers = isFresh ? representation.notModified : representation.ok;
  // Not into a copy: writeHead has read them all when it returns.
  headers[requestIdAt] = requestId;
  response.writeHead(isFresh ? 304 : 200, headers).end(body);
  // Most often the system has taken all of it by now.
  if (body !== undefined && request.socket.writableLength > 0) answers.hold(request, response, body);
  return null;
}

function settle(stored: StoredPage): void {
  stored.settlesAt = Infinity;
  for (const representation of Object.values(stored.representations))
    if (representation !== null) addLastModified(stored, representation);
}

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
  icon: 'image/x-icon',
} as const;

export type PageType = keyof typeof mediaTypes;

type PageHeaders = Readonly<Record<string, string>>;

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
    'Content-Security-Policy': `default-src 'none'; img-src 'self' https: data:${plainBlogs(settings)}; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action ${formTarget}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': referrer,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
    ...strictTransport(settings),
  };
}

/** The service's own blogs as a source of images where it is without TLS, on a laptop: `https:` has them elsewhere. */
function plainBlogs({ site, variant }: Settings): string {
  const isPlain = variant.blogHosts && site.baseUrl.startsWith('http:');
  return isPlain ? ` http://*.${site.blogDomain}` : '';
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
export function strictTransport({ site, variant }: Settings): PageHeaders {
  if (!site.baseUrl.startsWith('https:')) return {};
  const scope = variant.blogHosts ? '; includeSubDomains' : '';
  return { 'Strict-Transport-Security': `max-age=${hstsSeconds}${scope}` };
}

/** Headers of a page that are the same in a 200 and a 304. */
function cachingHeaders(page: Page, { pageMaxAge }: Pick<Config, 'pageMaxAge'>): PageHeaders {
  return {
    'Cache-Control': page.personal
      ? 'private, no-cache'
      : page.immutable
        ? 'public, max-age=31536000, immutable'
        : `public, max-age=${pageMaxAge}, must-revalidate`,
    Vary: page.twin === undefined ? 'Accept-Encoding' : 'Accept, Accept-Encoding',
    'X-Content-Type-Options': 'nosniff',
  };
}

/** All further headers of a page, whatever it is compressed with. */
function describingHeaders(page: Page, settings: Settings): PageHeaders {
  const twin = page.twin === undefined ? [] : [link(page.twin, 'alternate', 'text/markdown')];
  const links = [...twin, ...(page.links ?? [])];
  return {
    'Content-Type': mediaTypes[page.type],
    ...(page.type === 'html' ? htmlGuard(settings, page) : dataGuard(settings)),
    ...(links.length > 0 ? { Link: links.join(', ') } : {}),
    ...(page.indexed === false ? { 'X-Robots-Tag': 'noindex' } : {}),
  };
}

/** A member of a `Link` header (RFC 8288). The address is absolute and percent-encoded. */
export function link(url: string, rel: string, type?: string): string {
  return `<${url}>; rel="${rel}"${type === undefined ? '' : `; type="${type}"`}`;
}
