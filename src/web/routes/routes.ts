import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { publicly, type Context } from '../../context.ts';
import type { AppError } from '../../errors.ts';
import { pageCacheBytes } from '../../platform/measured.ts';
import type { AnswerBudget } from '../../http/in-flight.ts';
import { failureHeaders } from '../../http/problem.ts';
import type { OpenApiDocument } from '../../schemas/openapi.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { loadAssets, type AssetFiles } from '../assets.ts';
import { blogPath, usualFeed } from '../addresses.ts';
import { blogRoutes } from './blog-routes.ts';
import { createPageCache, followChanges } from '../cache/page-cache.ts';
import { htmlGuard } from '../cache/page.ts';
import { createPageServer, sendUncached, type PageServer } from '../cache/page-server.ts';
import { previewRoutes } from './preview-routes.ts';
import { reportRoutes } from './report-routes.ts';
import { createSearchHandler, searchRoutes } from './search-routes.ts';
import { siteRoutes } from './site-routes.ts';
import { failurePage, notFound } from '../templates/failure.ts';
import { verifyRoutes } from './verify-routes.ts';
import type { Chrome } from '../templates/layout.ts';

/** What the routes of all pages work with. */
export type Web = {
  /** For what everyone may see. */
  readonly ctx: Context;
  readonly pages: PageServer;
  /** Of a page without an address of its own: pages that have one add it. */
  readonly chrome: Chrome;
  readonly assets: AssetFiles;
};

export type WebRoutes = ReturnType<typeof createWebRoutes>;

/**
 * The interface for readers: pages, feeds, markdown and files. `document` is the description of the service that
 * programs read.
 */
export function createWebRoutes(
  ctx: Context,
  { limiter, answers }: { readonly limiter: RateLimiter; readonly answers: AnswerBudget },
  document: () => OpenApiDocument,
) {
  const { config } = ctx;
  const { baseUrl } = config.site;
  const assets = loadAssets();
  const cache = createPageCache(config.pageCacheBytes);
  const uncount = pageCacheBytes(cache.bytes);
  const changes = followChanges(ctx, cache);
  const pages = createPageServer(ctx, cache, answers);
  const guard = htmlGuard(config);

  const { discovery } = config.variant;
  const chrome: Chrome = {
    siteName: config.site.name,
    siteDescription: config.site.description,
    siteLang: config.site.lang,
    baseUrl,
    contact: config.contact,
    canonicalUrl: null,
    assets: assets.addresses,
    discovery,
  };
  const web: Web = { ctx: publicly(ctx), pages, chrome, assets };

  return {
    routes: async (app: FastifyInstance) => {
      siteRoutes(app, web, document);
      const search = discovery ? createSearchHandler(web, limiter) : null;
      if (search) searchRoutes(app, search);
      blogRoutes(app, web, search);
      await app.register(verifyRoutes(ctx, chrome));
      await app.register(previewRoutes(ctx, chrome, pages));
      await app.register(reportRoutes(ctx, limiter, chrome));
    },
    answerCached: pages.answerCached,
    isThere: assets.has,
    /** Answers a request that no route matches, if its address is another form of an existing one. */
    redirect(request: FastifyRequest, reply: FastifyReply): FastifyReply | null {
      const feed = discovery ? usualFeed(request.originalUrl.replace(/\?.*$/s, '')) : null;
      const url = feed?.kind === 'index' ? blogPath(feed) : canonicalForm(request.originalUrl);
      if (url === null || (request.method !== 'GET' && request.method !== 'HEAD')) return null;
      return pages.sendOther(reply, { kind: 'moved', url: baseUrl + url });
    },
    /** Answers a request for a page with the page of its failure. */
    sendFailure(request: FastifyRequest, reply: FastifyReply, error: AppError): FastifyReply {
      reply.headers(failureHeaders(error));
      if (error.code === 'not_found') return pages.sendOther(reply, notFound(chrome));
      return sendUncached(reply.headers(guard), error.status, failurePage(chrome, error, request.id));
    },
    async close(): Promise<void> {
      uncount();
      await changes.stop();
    },
  };
}

/**
 * The canonical form of a page's address: single slashes, none at the end, no `index`, the first segment in lower
 * case. Null if it has that form already, or is not for people.
 */
function canonicalForm(address: string): string | null {
  const [path = '', ...query] = address.split('?');
  // Calls are not for people either, in whatever case: a redirect would take the key off them.
  if (/^\/+(?:-|~|%7e|\.well-known|(?:api|mcp)(?:\/|$))/i.test(path)) return null;
  const form = path
    .replace(/\/{2,}/g, '/')
    .replace(/\/(?:index(?:\.html)?)?$/i, '')
    .replace(/^\/[^/%]+/, (first) => first.toLowerCase());
  const whole = [form === '' ? '/' : form, ...query].join('?');
  return whole === address ? null : whole;
}
