import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginUsage, rateHeaders, requireWithinLimit } from '../../admission/admission.ts';
import { createAddressReader } from '../../rules/client-address.ts';
import { searchQuery } from '../../schemas/lists.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { searchForPage } from '../../services/lists/search.ts';
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
    if (isAsked) {
      const usage = await beginUsage(ctx, limiter, 'anonymous', clientAddress(request.raw));
      const headers = rateHeaders(usage);
      reply.headers(headers);
      requireWithinLimit(usage);
      // A page is written to the connection itself.
      for (const [name, value] of Object.entries(headers)) reply.raw.setHeader(name, value);
    }
    const read = async () => (isAsked ? found(web, request.query) : page(web, '/search', nothingAsked));
    return web.pages.send(request, reply, { key: null, read });
  });
}

const nothingAsked: SearchView = { query: '', results: [], paging: { newest: null, older: null } };

const check = createCheck(searchQuery, { coerce: true });

async function found(web: Web, { q: asked, cursor: at }: Query): Promise<Page> {
  const checked = check({ q: asked, ...(at === undefined ? {} : { cursor: at }) });
  throwIfFaulty(checked);
  const { q, cursor = null } = checked.value;
  const { items, nextCursor } = await searchForPage(web.ctx, { q, cursor, limit: pageLength });
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
