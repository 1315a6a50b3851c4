import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  beginUsage,
  requireWithinLimit,
  takeBackUsage,
  type Usage,
  usageHeaders,
} from '../../admission/admission.ts';
import { AppError } from '../../errors.ts';
import { clientSignal } from '../../http/connection.ts';
import { failureHeaders, publicFields } from '../../http/problem.ts';
import { createAddressReader } from '../../rules/client-address.ts';
import { searchQuery } from '../../schemas/lists.ts';
import { searchOrders, type SearchOrder } from '../../rules/orders.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { searchForPage } from '../../services/lists/search.ts';
import type { Seeker } from '../../services/lists/searches.ts';
import { blogPath, pagesBeside, withCursor } from '../addresses.ts';
import { htmlGuard, type Page } from '../cache/page.ts';
import { prefersJson } from '../cache/negotiation.ts';
import { sendUncached } from '../cache/page-server.ts';
import { searchPage, searchUrl, type SearchView } from '../templates/search.ts';
import type { Web } from './routes.ts';

/** Posts on one page of what was found. */
const pageLength = 20;

type Query = Readonly<Record<string, unknown>>;

/** Answers with the search page of the service, or of one blog. */
export type SearchHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  query: Query,
  blog?: Blog,
) => Promise<FastifyReply>;

/** The search page. Unlike other pages it counts against a limit, `anonymous`, since it costs as much as the API's. */
export function createSearchHandler(web: Web, limiter: RateLimiter): SearchHandler {
  const { ctx } = web;
  const clientAddress = createAddressReader(ctx);
  const guard = (origin: string) => htmlGuard(ctx.config, { formTarget: origin });

  return async (request, reply, query, blog) => {
    const here = placeOf(web, blog);
    // A repeated `q` is refused; an empty one shows the form.
    const isAsked = query['q'] !== undefined && (typeof query['q'] !== 'string' || query['q'].trim() !== '');
    if (!isAsked)
      return web.pages.send(request, reply, {
        key: null,
        read: () => page(web, here.action, emptyView(here)),
      });
    const address = clientAddress(request.raw);
    const usage = await beginUsage(ctx, limiter, 'anonymous', address);
    sayRate(reply, usage);
    const seeker = { address, signal: clientSignal(reply.raw) };
    try {
      requireWithinLimit(usage);
      const personal = usage.quota > 0;
      const read = async () => ({ ...(await found(web, seeker, query, here)), personal });
      return await web.pages.send(request, reply, { key: null, read });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.extra.uncounted) sayRate(reply, await takeBackUsage(ctx, limiter, usage));
      if (prefersJson(request.headers.accept)) throw error;
      const { detail, hint } = publicFields(error);
      // For people, who know the box and not the name of its parameter.
      const said = detail.replace(/^'q'/, 'A search');
      const refusal = error.extra.hint === undefined ? said : `${said} ${hint}`;
      const asked = typeof query['q'] === 'string' ? Array.from(query['q']).slice(0, 200).join('') : '';
      const none = { results: [], total: 0, instead: null, suggestion: null, refusal };
      const body = searchPage(
        { ...web.chrome, canonicalUrl: null },
        { ...emptyView(here), query: asked, found: none },
      );
      reply.headers(guard(here.origin)).headers(failureHeaders(error));
      return sendUncached(reply, error.status, body);
    }
  };
}

/** `/search`. */
export function searchRoutes(app: FastifyInstance, search: SearchHandler): void {
  app.get('/search', async (request: FastifyRequest<{ Querystring: Query }>, reply) =>
    search(request, reply, request.query),
  );
}

/** A page is written to the connection itself, a failure by the framework. */
function sayRate(reply: FastifyReply, usage: Usage): void {
  const headers = usageHeaders(usage);
  reply.headers(headers);
  for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
}

type Place = { readonly action: string; readonly origin: string; readonly blog?: Blog };

function placeOf({ chrome }: Web, blog: Blog | undefined): Place {
  return blog
    ? { action: blog.url + blogPath({ kind: 'search' }), origin: blog.url, blog }
    : { action: `${chrome.baseUrl}/search`, origin: chrome.baseUrl };
}

function emptyView({ action, blog }: Place): SearchView {
  const place = { action, ...(blog ? { blog } : {}) };
  return { ...place, query: '', sort: searchOrders[0], found: null, paging: { newest: null, older: null } };
}

const check = createCheck(searchQuery, { coerce: true });

async function found(web: Web, seeker: Seeker, asked: Query, place: Place): Promise<Page> {
  const given = Object.fromEntries(
    ['q', 'cursor'].flatMap((name) => (asked[name] === undefined ? [] : [[name, asked[name]]])),
  );
  const checked = check(given);
  throwIfFaulty(checked);
  const { q, cursor = null } = checked.value;
  const sort = readOrder(asked['sort']);
  const { items, nextCursor, ...said } = await searchForPage(web.ctx, seeker, {
    q,
    tag: null,
    agentId: place.blog?.id ?? null,
    sort,
    cursor,
    limit: pageLength,
  });
  const first = searchUrl({ action: place.action, query: q, sort });
  const paging = pagesBeside(first, cursor, nextCursor);
  const view = { ...emptyView(place), query: q, sort, found: { ...said, results: items }, paging };
  return page(web, withCursor(first, cursor), view);
}

/** An unknown order is read as the default: pages are for people, who mistype. */
function readOrder(value: unknown): SearchOrder {
  return searchOrders.find((name) => name === value) ?? searchOrders[0];
}

function page({ chrome }: Web, url: string, view: SearchView): Page {
  const body = searchPage({ ...chrome, canonicalUrl: url }, view);
  return { type: 'html', body, formTarget: new URL(url).origin };
}
