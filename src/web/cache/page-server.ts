import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { baseHosts } from '../../rules/hosts.ts';
import { newRequestId } from '../../http/headers.ts';
import { chooseEncoding, prefersMarkdown } from './negotiation.ts';
import type { PageCache } from './page-cache.ts';
import { htmlGuard } from './page-headers.ts';
import type { Outcome, Page } from './page.ts';
import { sendAbsent, sendMoved } from './send-other.ts';
import {
  representationOf,
  sendRepresentation,
  storePage,
  type Conditions,
  type Representation,
  type StoredPage,
} from './stored-page.ts';

/** An address of a page: its cache key, and how it is made. */
export type Address = {
  /** From {@link keyOf}; null for pages that must be made for each request. */
  readonly key: string | null;
  /** Null for nothing: 404. */
  readonly read: () => Promise<Outcome | null> | Outcome | null;
  /** The same in markdown, for clients that prefer it; `url` is the twin's own address. */
  readonly twin?: Omit<Address, 'twin'> & { readonly url: string };
};

export type PageServer = {
  /** Answers a request for a page that is cached in the requested representation. False: it must be routed. */
  answerCached(request: IncomingMessage, response: ServerResponse): boolean;
  /** Answers a routed request. */
  send(request: FastifyRequest, reply: FastifyReply, address: Address): Promise<FastifyReply>;
};

/** The key of a page: host (empty for the base, which may have several) and path, as requests have them. */
export function keyOf(host: string, path: string): string {
  // A path has no space, so no host, however it is spelt, can produce another host's key.
  return `${host} ${path}`;
}

type Found = StoredPage | Exclude<Outcome, Page>;

/** Makes pages, caches them, and sends them. */
export function createPageServer(ctx: Context, cache: PageCache): PageServer {
  const { config } = ctx;
  const bases = baseHosts(config);
  const guard = htmlGuard(config);
  const underWay = new Map<string, { readonly since: number; readonly found: Promise<Found> }>();

  function answerCached(request: IncomingMessage, response: ServerResponse): boolean {
    const asked = readPlainRequest(request);
    if (asked === null) return false;
    const stored = cache.get(keyOf(bases.has(asked.host) ? '' : asked.host, request.url ?? ''));
    if (stored === undefined || (stored.twin !== null && prefersMarkdown(asked.accept))) return false;
    const representation =
      stored.representations[stored.compressible ? chooseEncoding(asked.acceptEncoding) : 'identity'];
    if (representation === null) return false;
    sendRepresentation(stored, representation, asked, request, response, {
      clock: ctx,
      requestId: newRequestId(),
    });
    return true;
  }

  async function send(request: FastifyRequest, reply: FastifyReply, address: Address): Promise<FastifyReply> {
    const twin = address.twin && prefersMarkdown(request.headers.accept) ? address.twin : null;
    const wanted = twin ?? address;
    const found = await find(wanted);
    if ('kind' in found) return sendOther(reply, found);
    const representation = await representationOf(found, chooseEncoding(request.headers['accept-encoding']));
    if (wanted.key !== null) cache.resized(wanted.key, found);
    if (twin !== null) return sendNegotiated(reply, found, representation, twin.url);
    reply.hijack();
    const conditions = {
      ifNoneMatch: request.headers['if-none-match'],
      ifModifiedSince: request.headers['if-modified-since'],
    };
    sendRepresentation(found, representation, conditions, request.raw, reply.raw, {
      clock: ctx,
      requestId: request.id,
    });
    return reply;
  }

  async function find({ key, read }: Omit<Address, 'twin'>): Promise<Found> {
    if (key === null) return make(key, read, 0);
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const since = cache.generation();
    const joined = underWay.get(key);
    // Nothing has changed since that read began, so it is as good as our own.
    if (joined?.since === since) return joined.found;
    const found = make(key, read, since);
    underWay.set(key, { since, found });
    try {
      return await found;
    } finally {
      if (underWay.get(key)?.found === found) underWay.delete(key);
    }
  }

  async function make(key: string | null, read: Address['read'], since: number): Promise<Found> {
    const outcome = await read();
    if (outcome === null) throw new AppError('not_found', 'There is nothing at this address.');
    if ('kind' in outcome) return outcome;
    const stored = storePage(outcome, config, ctx.now());
    if (key !== null) cache.put(key, stored, since);
    return stored;
  }

  function sendOther(reply: FastifyReply, found: Exclude<Outcome, Page>): FastifyReply {
    reply.headers(guard);
    return found.kind === 'absent'
      ? sendAbsent(reply, config.site.baseUrl, found)
      : sendMoved(reply, found.url);
  }

  return { answerCached, send };
}

/** The twin, at the address of its page: no shared cache may store it there, however it treats `Vary`. */
function sendNegotiated(
  reply: FastifyReply,
  stored: StoredPage,
  representation: Representation,
  url: string,
): FastifyReply {
  return reply
    .headers(stored.describing)
    .headers({
      'cache-control': 'private, no-store',
      'content-location': url,
      vary: 'Accept, Accept-Encoding',
      ...(representation.encoding === 'identity' ? {} : { 'content-encoding': representation.encoding }),
    })
    .send(representation.body);
}

type PlainRequest = Conditions & {
  readonly host: string;
  readonly accept: string | undefined;
  readonly acceptEncoding: string | undefined;
};

/**
 * The headers of a GET or HEAD that matter here, read without building an object of all of them, which would be a
 * tenth of the cost of a hit. Null for a request with a body, with a repeated header that must be single, or
 * without a host.
 */
function readPlainRequest({ method, rawHeaders }: IncomingMessage): PlainRequest | null {
  if (method !== 'GET' && method !== 'HEAD') return null;
  let host: string | undefined;
  let accept: string | undefined;
  let acceptEncoding: string | undefined;
  let ifNoneMatch: string | undefined;
  let ifModifiedSince: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!wantedLengths.has(name.length)) continue;
    const value = rawHeaders[i + 1];
    switch (name.toLowerCase()) {
      case 'host':
        if (host !== undefined) return null;
        host = value;
        break;
      case 'accept':
        if (accept !== undefined) return null;
        accept = value;
        break;
      case 'accept-encoding':
        if (acceptEncoding !== undefined) return null;
        acceptEncoding = value;
        break;
      case 'if-none-match':
        if (ifNoneMatch !== undefined) return null;
        ifNoneMatch = value;
        break;
      case 'if-modified-since':
        ifModifiedSince ??= value;
        break;
      case 'content-length':
      case 'transfer-encoding':
        return null;
      default:
    }
  }
  // An empty host would produce the key of the base's own pages.
  return host ? { host, accept, acceptEncoding, ifNoneMatch, ifModifiedSince } : null;
}

const wantedLengths: ReadonlySet<number> = new Set([4, 6, 13, 14, 15, 17]);
