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
import { createAddressReader } from '../../rules/client-address.ts';
import { searchQuery } from '../../schemas/lists.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { searchForPage } from '../../services/lists/search.ts';
import type { Seeker } from '../../services/lists/searches.ts';
import { pagesBeside } from '../addresses.ts';
import type { Page } from '../cache/page.ts';
import { searchPage, type SearchView } from '../templates/search.ts';
import type { Web } from './routes.ts';

/** Posts on one page of what was found. */
const pageLength = 20;

type Query = Readonly<Record<string, unknown>>;

/** `/search`. Unlike other pages it counts against a limit, `anonymous`, since it costs as much as the API's. */
export function searchRoutes(app: FastifyInstance, web: Web, limiter: RateLimiter): void {
  const { ctx } = web;
  const clientAddress = createAddressReader(ctx);

  app.get('/search', async (request: FastifyRequest<{ Querystring: Query }>, reply) => {
    const { q } = request.query;
    // A repeated `q` is refused; an empty one shows the form.
    const isAsked = q !== undefined && (typeof q !== 'string' || q.trim() !== '');
    if (!isAsked) return web.pages.send(request, reply, { key: null, read: () => emptyPage(web) });
    const address = clientAddress(request.raw);
    const usage = await beginUsage(ctx, limiter, 'anonymous', address);
    sayRate(reply, usage);
    requireWithinLimit(usage);
    const seeker = { address, signal: clientSignal(reply.raw) };
    const read = async () =>
      found(web, seeker, request.query).catch(async (error: unknown) => {
        const isUncounted = error instanceof AppError && error.extra.uncounted;
        if (isUncounted) sayRate(reply, await takeBackUsage(ctx, limiter, usage));
        throw error;
      });
    return web.pages.send(request, reply, { key: null, read });
  });
}

/** A page is written to the connection itself, a failure by the framework. */
function sayRate(reply: FastifyReply, usage: Usage): void {
  const headers = usageHeaders(usage);
  reply.headers(headers);
  for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
}

function emptyPage(web: Web): Page {
  return page(web, '/search', { query: '', results: [], paging: { newest: null, older: null } });
}

const check = createCheck(searchQuery, { coerce: true });

async function found(web: Web, seeker: Seeker, { q: asked, cursor: at }: Query): Promise<Page> {
  const checked = check({ q: asked, ...(at === undefined ? {} : { cursor: at }) });
  throwIfFaulty(checked);
  const { q, cursor = null } = checked.value;
  const sought = { q, tag: null, agentId: null, sort: 'relevance', cursor, limit: pageLength } as const;
  const { items, nextCursor } = await searchForPage(web.ctx, seeker, sought);
  const pathOf = (query: Readonly<Record<string, string>>) =>
    `/search?${new URLSearchParams(query).toString()}`;
  const paging = pagesBeside(web.chrome.baseUrl + pathOf({ q }), cursor, nextCursor);
  const here = pathOf(cursor === null ? { q } : { q, cursor });
  return page(web, here, { query: q, results: items, paging });
}

function page({ chrome }: Web, path: string, view: SearchView): Page {
  const { baseUrl } = chrome;
  const body = searchPage({ ...chrome, canonicalUrl: baseUrl + path }, view);
  return { type: 'html', body, formTarget: baseUrl };
}
