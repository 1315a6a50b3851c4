import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';
import { createHostTable, withoutNeedlessEscapes, type HostMatch } from '../rules/hosts.ts';
import type { Config } from '../config/config.ts';
import { reservedAgentSlugs } from '../rules/slug.ts';

/** The one route of all blogs, which no client can request directly. */
export const blogRoute = '/~';

/** Where requests for the internal route are sent: nothing is there. */
const nowhere = '/-/none';
/** The internal route, and first parts with an escape: the router would decode them, and no address of ours has any. */
const internal = /^\/+(?:~|[^/?#]*%)/;

/** Addresses below `/-/` of a blog's host that are the blog's and not the service's. */
const ofBlog = /^\/-\/(?:comments\/|(?:archive|search|tags)(?:[/?]|$))/;

declare module 'node:http' {
  interface IncomingMessage {
    /** Which host the request is for; set before routing. */
    target?: HostMatch;
    /** The path and query as requested; Fastify takes them from here. */
    originalUrl?: string;
    /** Whose blog, and what of it, a request for {@link blogRoute} is for. */
    blog?: BlogTarget;
    /** Whether it expects something else than `100-continue` (`Expect`). */
    expectsOther?: boolean;
  }
}

export type BlogTarget = {
  readonly slug: string;
  /** Path and query below the blog's address, as they were sent: `/hello?x=1`, or empty. */
  readonly rest: string;
  /** How the blog was requested: at its host, below the base address (also with needless escapes), or at its former host. */
  readonly place: 'host' | 'path' | 'escaped' | 'former';
};

/** Turns host and address of a request into the address that is routed, and records which host it is for. */
export function createRewrite(config: Config): (request: IncomingMessage) => string {
  const findHost = createHostTable(config);
  return (request) => {
    const { host, url } = askedFor(request);
    const named = request.headers.host;
    // Where the target has a host too, the header may name another, but must name one (RFC 9112, 3.2).
    const isMalformed =
      hasTwoHosts(request) || (host !== named && named !== undefined && findHost(named).kind === 'malformed');
    const target = isMalformed ? ({ kind: 'malformed' } as const) : findHost(host);
    request.target = target;
    request.originalUrl = url;
    if (isApi(url)) return routableApi(url);
    if (target.kind === 'blog') {
      if ((url.startsWith('/-/') && !ofBlog.test(url)) || isProbe(url)) return url;
      request.blog = { slug: target.slug, rest: url, place: target.former ? 'former' : 'host' };
      return blogRoute;
    }
    const [, first = '', rest = ''] = /^\/([^/?#]*)(.*)$/s.exec(url) ?? [];
    const slug = withoutNeedlessEscapes(first);
    if (/^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(slug) && !reservedAgentSlugs.has(slug)) {
      request.blog = { slug, rest, place: slug === first ? 'path' : 'escaped' };
      return blogRoute;
    }
    // Answered where it is: a client that follows a redirect drops the key, and may send GET.
    if (isMcp(url)) return url.replace(/^\/mcp\/+/, '/mcp');
    return internal.test(url) ? nowhere : url;
  };
}

/** Whether an address is that of MCP messages, also with slashes at its end. */
function isMcp(url: string): boolean {
  return /^\/mcp\/*(?:\?|$)/.test(url);
}

/** Host and address of a request, which may be one absolute address: its host then counts (RFC 9112, 3.2.2). */
function askedFor({ url = '/', headers }: IncomingMessage): { host: string | undefined; url: string } {
  const [, host, rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [];
  return host === undefined
    ? { host: headers.host, url }
    : { host, url: rest.startsWith('/') ? rest : `/${rest}` };
}

/** Whether an address, however many slashes it begins with, is the API's. */
export function isApi(url: string): boolean {
  return /^\/+api(?:[/?]|$)/.test(url);
}

function isProbe(url: string): boolean {
  return /^\/(?:healthz|readyz)(?:\?|$)/.test(url);
}

/** Longest part of a path that is routed. */
export const longestPathPart = 500;

/** The address of a call as it is routed. What the router itself would refuse goes where nothing is: it counts too. */
function routableApi(url: string): string {
  const clean = canonicalApi(url);
  const [path = ''] = clean.split('?');
  const isTooLong = path.split('/').some((part) => part.length > longestPathPart);
  return isTooLong || hasBrokenEscape(path) ? '/api/-' : clean;
}

/** Whether a path has a `%` that begins no escape of UTF-8. */
export function hasBrokenEscape(path: string): boolean {
  if (!path.includes('%')) return false;
  try {
    decodeURI(path);
    return false;
  } catch {
    return true;
  }
}

/** Single slashes and none at the end: the API never redirects, since a redirect strips the key. */
function canonicalApi(url: string): string {
  const [path = '', ...query] = url.split('?');
  const clean = path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
  return query.length === 0 ? clean : `${clean}?${query.join('?')}`;
}

function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') hosts++;
  return hosts > 1;
}

/** Refuses malformed request targets and Host headers, and unmet expectations. Throws invalid_input, expectation_failed. */
export function requireWellFormed(request: IncomingMessage, url: string): void {
  const { method, target } = request;
  if (request.expectsOther)
    throw new AppError('expectation_failed', 'What the header Expect asks for cannot be met.', {
      // Its client may not send the body that it has announced.
      headers: { connection: 'close' },
    });
  // What is put behind our origin in a redirect would lead to another host if it did not begin with a slash.
  if (!url.startsWith('/') && !(url === '*' && method === 'OPTIONS')) {
    const allowed = "must be a path that begins with '/', or an absolute http or https address";
    throw malformedPart('url', 'request target', allowed);
  }
  const hasNoHost = request.headers.host === undefined;
  const isOld = request.httpVersion === '1.0';
  // The probes answer for any host, and so need none where HTTP does not ask for one (RFC 9112, 3.2).
  if (hasNoHost && isOld && isProbe(url)) return;
  if (!target || target.kind === 'malformed' || (hasNoHost && !isOld)) {
    throw malformedPart('Host', 'Host header', 'must appear exactly once and name a host');
  }
}

function malformedPart(field: string, name: string, message: string): AppError {
  return new AppError('invalid_input', `The ${name} ${message}.`, { errors: [{ field, message }] });
}

/** The refusal of an address with a broken `%` escape. */
export function brokenEscape(): AppError {
  return new AppError('invalid_input', 'The address is not a valid one: check its % escapes.', {
    errors: [{ field: 'url', message: 'has a % that begins no valid escape' }],
  });
}

/** Refuses requests for hosts that are not ours. Throws misdirected. */
export function requireOurHost(config: Config, { method, target }: IncomingMessage, url: string): void {
  if (!target || target.kind === 'base' || target.kind === 'malformed' || isProbe(url)) return;
  const expected = new URL(config.site.baseUrl).host;
  if (target.kind === 'unknown') {
    throw new AppError(
      'misdirected',
      `This service does not answer for the host '${target.received}'; it expects '${expected}'.`,
      {
        hint: 'If the address is right: does your proxy pass Host on? The operator can add hosts with ALSO_HOSTS.',
      },
    );
  }
  const { baseUrl } = config.site;
  const isMessage = method === 'POST' && isMcp(url);
  if (isApi(url) || isMessage) {
    throw new AppError(
      'misdirected',
      isMessage
        ? `MCP is not served at a blog's address: call ${baseUrl}/mcp.`
        : `The API is not served at a blog's address: call ${baseUrl}${canonicalApi(url)}.`,
      { hint: `Send calls and the API key to ${baseUrl} only; ${baseUrl}/skill.md has the calls.` },
    );
  }
}
