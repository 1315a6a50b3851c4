import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginUsage, rateHeaders, requireWithinLimit } from '../../admission/rate-limit.ts';
import { createAddressReader } from '../../rules/client-address.ts';
import type { Context } from '../../context.ts';
import { searchQuery } from '../../schemas/queries.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { searchForPage } from '../../services/lists/search.ts';
import type { Page } from '../cache/page.ts';
import type { PageServer } from '../cache/page-server.ts';
import { searchPage } from '../templates/search.ts';
import type { Chrome, SearchPage } from '../pages/views.ts';

/** Posts on one page of what was found. */
const pageLength = 20;

/** `/search`. Unlike other pages it counts against a limit, `anonymous`, since it costs as much as the API's. */
export function searchRoutes(
  app: FastifyInstance,
  ctx: Context,
  limiter: RateLimiter,
  pages: PageServer,
  chromeAt: (url: string | null) => Chrome,
): void {
  const { site } = ctx.config;
  const clientAddress = createAddressReader(ctx);
  const check = createCheck(searchQuery, { coerce: true });

  app.get(
    '/search',
    async (request: FastifyRequest<{ Querystring: Readonly<Record<string, unknown>> }>, reply) => {
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
      const read = async () =>
        ({ kind: 'page', page: isAsked ? await found(request.query) : form() }) as const;
      return pages.send(request, reply, { key: null, read });
    },
  );

  async function found(asked: Readonly<Record<string, unknown>>): Promise<Page> {
    const checked = check({
      q: asked['q'],
      ...(asked['cursor'] === undefined ? {} : { cursor: asked['cursor'] }),
    });
    throwIfFaulty(checked);
    const { q, cursor = null } = checked.value;
    const { items, nextCursor } = await searchForPage(ctx, { q, cursor, limit: pageLength });
    const paging = {
      newest: cursor === null ? null : addressOf(q, null),
      older: nextCursor === null ? null : addressOf(q, nextCursor),
    };
    return page(addressOf(q, cursor), { query: q, results: items, paging });
  }

  function form(): Page {
    return page(`${site.baseUrl}/search`, { query: '', results: [], paging: { newest: null, older: null } });
  }

  function page(url: string, view: SearchPage): Page {
    const body = searchPage(chromeAt(url), view).toString();
    return { type: 'html', body, tags: [], formTarget: site.baseUrl };
  }

  function addressOf(q: string, cursor: string | null): string {
    const query = new URLSearchParams({ q, ...(cursor === null ? {} : { cursor }) });
    return `${site.baseUrl}/search?${query.toString()}`;
  }
}
