import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { lookUps } from '../../platform/measured.ts';
import { baseHosts } from '../../rules/hosts.ts';
import { chooseEncoding } from '../../http/encoding.ts';
import type { AnswerBudget } from '../../http/in-flight.ts';
import { untilRead } from '../../http/parser.ts';
import { problemBody } from '../../http/problem.ts';
import { tooMuch } from '../../http/read-body.ts';
import type { Markup } from '../markup.ts';
import { prefersJson, prefersMarkdown } from './negotiation.ts';
import type { PageCache } from './page-cache.ts';
import { htmlGuard, representationOf, sendRepresentation, storePage } from './page.ts';
import type { Absent, Outcome, Page, PageTag, Representation, StoredPage } from './page.ts';

/** An address of a page: its cache key, and how it is made. */
export type Address = {
  /** From {@link keyOf}; null for pages that must be made for each request. */
  readonly key: string | null;
  /** Null for nothing: 404. */
  readonly read: () => Promise<Outcome | null> | Outcome | null;
  /** The same in markdown, for clients that prefer it; `url` is the twin's own address. */
  readonly twin?: Omit<Address, 'twin'> & { readonly url: string };
};

function counted(hit: StoredPage): StoredPage {
  lookUps.pages.hit.value++;
  return hit;
}

export type PageServer = ReturnType<typeof createPageServer>;

/** The key of a page: host (empty for the base, which may have several) and path, as requests have them. */
export function keyOf(host: string, path: string): string {
  // A path has no space, so no host, however it is spelt, can produce another host's key.
  return `${host} ${path}`;
}

type Other = Exclude<Outcome, Page>;

type Found = StoredPage | Other;

/** Makes pages, caches them, and sends them, within the budget of answers. */
export function createPageServer(ctx: Context, cache: PageCache, answers: AnswerBudget) {
  const { config } = ctx;
  const bases = baseHosts(config);
  const guard = htmlGuard(config);
  const underWay = new Map<string, { readonly since: number; readonly found: Promise<Found> }>();

  /**
   * Answers a GET or HEAD for a page that is cached in the requested representation, and returns the route that it was
   * made by. Null: it must be routed, also where there is no room for it.
   */
  function answerCached(request: IncomingMessage, response: ServerResponse, id: string): string | null {
    const asked = readPlainRequest(request);
    if (asked === null) return null;
    const stored = cached(keyOf(bases.has(asked.host) ? '' : asked.host, request.url ?? ''));
    if (stored === undefined || (stored.twin !== null && prefersMarkdown(asked.accept))) return null;
    const representation =
      stored.representations[stored.compressible ? chooseEncoding(asked.acceptEncoding) : 'identity'];
    if (representation === null) return null;
    const sending = { clock: ctx, requestId: id, answers };
    if (sendRepresentation(stored, representation, asked, request, response, sending) !== null) return null;
    lookUps.pages.hit.value++;
    return stored.route;
  }

  /** Answers a routed request. */
  async function send(request: FastifyRequest, reply: FastifyReply, address: Address): Promise<FastifyReply> {
    const twin = address.twin && prefersMarkdown(request.headers.accept) ? address.twin : null;
    const wanted = twin ?? address;
    const found = await find(wanted);
    if ('kind' in found) return sendOther(reply, found);
    found.route = request.raw.route ?? found.route;
    const representation = await representationOf(found, chooseEncoding(request.headers['accept-encoding']));
    if (wanted.key !== null) cache.resized(wanted.key, found);
    if (twin !== null) return sendNegotiated(reply, found, representation, twin.url);
    // A part of a body may wait for its turn.
    await untilRead(request.raw.socket);
    const full = sendRepresentation(found, representation, request.headers, request.raw, reply.raw, {
      clock: ctx,
      requestId: request.id,
      answers,
    });
    if (full !== null) throw tooMuch(full, 'sent');
    return reply.hijack();
  }

  async function find({ key, read }: Omit<Address, 'twin'>): Promise<Found> {
    if (key === null) return make(key, read, 0);
    for (;;) {
      const stored = cached(key);
      if (stored !== undefined) return counted(stored);
      const since = cache.generation();
      const joined = underWay.get(key);
      // Nothing has changed since that read began, so it is as good as our own.
      if (joined?.since === since) return joined.found;
      // Else one after the other: of a long list that changes all the time, one is made at a time.
      if (joined) await joined.found.catch(() => undefined);
      else return makeAlone(key, read, since);
    }
  }

  async function makeAlone(key: string, read: Address['read'], since: number): Promise<Found> {
    lookUps.pages.miss.value++;
    const found = make(key, read, since);
    underWay.set(key, { since, found });
    try {
      return await found;
    } finally {
      underWay.delete(key);
    }
  }

  /** A page that may be sent as it is. */
  function cached(key: string): StoredPage | undefined {
    const stored = cache.get(key);
    if (stored === undefined || stored.cachedFor === Infinity) return stored;
    // A clock that was put back makes it look made in the future.
    return Math.abs(ctx.now() - stored.madeAt) < stored.cachedFor ? stored : undefined;
  }

  async function make(key: string | null, read: Address['read'], since: number): Promise<Found> {
    const outcome = await read();
    if (outcome === null) throw new AppError('not_found', 'There is nothing at this address.');
    if ('kind' in outcome) return outcome;
    const stored = storePage(outcome, config, ctx.now());
    if (key !== null) cache.put(key, stored, since);
    return stored;
  }

  /** Answers where there is no page. */
  const sendOther = (reply: FastifyReply, found: Other, headers = guard): FastifyReply =>
    found.kind === 'absent'
      ? sendAbsent(reply.headers(headers), config.site.baseUrl, found)
      : sendMoved(reply.headers(headers), found.url);

  return { answerCached, send, find, sendOther };
}

/**
 * A list that pages show which change more often, cached by itself until one of its tags changes. `name` is unique among
 * such lists.
 */
export async function findPart<T>(
  { find }: PageServer,
  name: string,
  tags: readonly PageTag[],
  read: () => Promise<readonly T[]>,
): Promise<T[]> {
  const readPart = async (): Promise<Page> => ({ type: 'json', body: JSON.stringify(await read()), tags });
  // With a space in its path, which no request has.
  const found = await find({ key: keyOf('', `part ${name}`), read: readPart });
  if ('kind' in found) throw new Error(`The part ${name} of a page is none`);
  const { body } = await representationOf(found, 'identity');
  return JSON.parse(body.toString()) as T[];
}

/** Sends a page that is made for one request: no cache may store it. */
export function sendUncached(
  reply: FastifyReply,
  status: number,
  body: Markup | string,
  { caching = 'no-store', type = 'text/html; charset=utf-8' } = {},
): FastifyReply {
  return reply
    .code(status)
    .header('cache-control', caching)
    .header('x-request-id', reply.request.id)
    .type(type)
    .send(body.toString());
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

/** Says that there is nothing at the address of a page, in the form that the client prefers; `body` is that of people. */
function sendAbsent(
  reply: FastifyReply,
  baseUrl: string,
  { status, text, code, body }: Absent,
): FastifyReply {
  const { id, originalUrl, headers } = reply.request;
  const ways = `${baseUrl}/llms.txt lists what there is to read, ${baseUrl}/skill.md what there is to call.`;
  reply.code(status).header('cache-control', 'no-store').header('x-request-id', id);
  if (prefersJson(headers.accept)) {
    const problem = problemBody(baseUrl, new AppError(code, text, { hint: ways }), id);
    const title = status === 410 ? 'Gone' : problem.title;
    return reply.type('application/problem+json').send(JSON.stringify({ ...problem, title, status }));
  }
  if (prefersMarkdown(headers.accept) || /\.md(?:\?|$)/.test(originalUrl))
    return reply.type('text/markdown; charset=utf-8').send(`# HTTP ${status}\n\n${text} ${ways}\n`);
  return reply.type('text/html; charset=utf-8').send(body.toString());
}

/** Redirects to the present address of a page, also for those who only read the body. */
function sendMoved(reply: FastifyReply, url: string): FastifyReply {
  // Not permanent, whatever the status says: an abandoned address can be taken again.
  return reply
    .code(301)
    .header('cache-control', 'public, max-age=0, must-revalidate')
    .header('location', url)
    .type('text/plain; charset=utf-8')
    .send(`Moved to ${url}\n`);
}

/** The headers that matter here. A request that repeats one of the first four, or has one of the last two, is routed. */
const wanted = [
  'host',
  'accept',
  'accept-encoding',
  'if-none-match',
  'if-modified-since',
  'content-length',
  'transfer-encoding',
];
const wantedLengths: ReadonlySet<number> = new Set(wanted.map((name) => name.length));

/**
 * The wanted headers of a request, read without building an object of all of them, which would be a tenth of the
 * cost of a hit. Null for a request that must be routed, since it has others, no host, or an expectation.
 */
function readPlainRequest({ rawHeaders, expectsOther }: IncomingMessage) {
  if (expectsOther) return null;
  const values: (string | undefined)[] = [undefined, undefined, undefined, undefined, undefined];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!wantedLengths.has(name.length)) continue;
    const at = wanted.indexOf(name.toLowerCase());
    if (at === -1) continue;
    if (at > 4 || (at < 4 && values[at] !== undefined)) return null;
    values[at] ??= rawHeaders[i + 1];
  }
  const [host, accept, acceptEncoding, ifNoneMatch, ifModifiedSince] = values;
  // An empty host would produce the key of the base's own pages.
  if (!host) return null;
  return { host, accept, acceptEncoding, 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince };
}
