import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import {
  beginUsage,
  noteAgent,
  refusalOf,
  countedAs,
  createCredentialReader,
  currentRateStatus,
  finishUsage,
  requireCaller,
  requireWithinLimit,
  takeBackUsage,
  usageHeaders,
} from '../admission/admission.ts';
import { credentialOfLink } from '../admission/upload-link.ts';
import { createAddressReader } from '../rules/client-address.ts';
import { publicly, type Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { allMethods, answerOtherMethods, collectMethods } from '../http/methods.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import { operations } from '../rules/calls.ts';
import { brokenEscape, hasBrokenEscape, requireWellFormed } from '../http/target.ts';
import type { Policy } from '../variant.ts';
import { createAnswerCache } from './answer-cache.ts';
import { absentAddresses, addressHint, methodHint } from './address-hints.ts';
import { aboutEndpoint } from './resources/about.ts';
import { agentEndpoints } from './resources/agents.ts';
import { asksForDryRun, countDryRun, hasDryRun } from './dry-runs.ts';
import { blockEndpoints } from './resources/blocks.ts';
import { discoveryEndpoints } from './resources/discovery.ts';
import { engagementEndpoints } from './resources/engagement.ts';
import { inboxEndpoints } from './resources/inbox.ts';
import { ownEngagementEndpoints } from './resources/own-engagement.ts';
import { keyEndpoints } from './resources/keys.ts';
import { mediaEndpoints, uploadLinkOf } from './resources/media.ts';
import { meEndpoints } from './resources/me.ts';
import { openApiRoute, type Reference } from './openapi/openapi.ts';
import { postEndpoints } from './resources/posts.ts';
import { publishingEndpoints } from './resources/publishing.ts';
import { reportEndpoints } from './resources/reports.ts';
import { revisionEndpoints } from './resources/revisions.ts';
import { trashEndpoints } from './resources/trash.ts';
import { emptyId, noRoute } from '../http/problem.ts';

/** Memory for cached answers. */
const cacheBytes = 8 * 1024 * 1024;

/** The JSON interface: every route below `/api`, each counted against one limit. */
export function apiRoutes(ctx: Context, limiter: RateLimiter, reference: Reference): FastifyPluginAsync {
  const readCredential = createCredentialReader(ctx);
  const addressOf = createAddressReader(ctx);

  return async (app: FastifyInstance) => {
    const methods = collectMethods(app);
    app.decorate('answers', createAnswerCache(ctx.engine, cacheBytes));
    app.decorateRequest('credential');
    app.decorateRequest('usage', null);
    app.decorateRequest('clientAddress', '');
    app.decorateRequest('isDryRun', false);

    app.addHook('onRequest', async (request, reply) => {
      request.clientAddress = addressOf(request.raw);
      const own = ownPolicy(request);
      const { operation } = request.routeOptions.config;
      request.credential =
        operation?.auth === 'link'
          ? await credentialOfLink(ctx, uploadLinkOf(request))
          : await readCredential(request.headers.authorization, own);
      noteAgent(request);
      reply.header('cache-control', request.credential.kind === 'none' ? 'no-cache' : 'private, no-cache');
      const counted = countedAs(own, request);
      request.bodyOwner = counted[1];
      const calls = request.credential.kind === 'caller' ? request.credential.calls : null;
      request.usage = await beginUsage(ctx, limiter, ...counted, calls);
      const refusal = refusalOf(request.usage);
      if (refusal && !(await mayBeDryRun(ctx, limiter, request))) throw refusal;
      request.onlySmallBody = refusal;
      requireWellFormed(request.raw, request.originalUrl);
      // Before the body is read: 4 MiB from a stranger are not worth parsing.
      if (operation?.auth === 'required' || operation?.auth === 'link')
        requireCaller(request, operation.allows);
    });

    app.setErrorHandler(async (error, request) => {
      const isUncounted = error instanceof AppError && error.extra.uncounted;
      await countDryRun(ctx, limiter, request);
      if (isUncounted && request.usage) request.usage = await takeBackUsage(ctx, limiter, request.usage);
      // Whatever else is wrong with a call that was read only because it might have been a dry run.
      else if (request.usage) requireWithinLimit(request.usage);
      throw error;
    });

    app.addHook('onSend', async (request, reply) => {
      if (!request.usage) return;
      await finishUsage(ctx, request.usage);
      // A refusal names its own limit, where that is not the call's policy.
      if (!reply.hasHeader('ratelimit')) reply.headers(usageHeaders(request.usage));
    });

    app.addHook('onRoute', ({ method, config }) => {
      const operation = config?.operation;
      if (operation && operations[operation.operationId].method === method) reference.add(operation);
    });
    agentEndpoints(app, ctx);
    keyEndpoints(app, ctx);
    publishingEndpoints(app, ctx, limiter);
    postEndpoints(app, ctx);
    revisionEndpoints(app, ctx);
    trashEndpoints(app, ctx);
    await mediaEndpoints(app, ctx);
    meEndpoints(app, ctx, limiter);
    inboxEndpoints(app, ctx);
    reportEndpoints(app, ctx);
    if (ctx.config.variant.discovery) discoveryEndpoints(app, publicly(ctx));
    if (ctx.config.variant.engagement) {
      engagementEndpoints(app, ctx);
      ownEngagementEndpoints(app, ctx);
      blockEndpoints(app, ctx);
    }
    aboutEndpoint(app, ctx.config);
    openApiRoute(app, reference);
    // Here and not for the whole service, so that these calls are counted like all others.
    const own = answerOtherMethods(app, methods, { hintFor: methodHint });
    absentAddresses(app, ctx.config.variant, ctx.config.site.baseUrl);
    // Before the body is read: at an unknown address, the type of the body is not what is wrong.
    app.addHook('onRequest', async (request) => {
      if (/\/(?:posts|comments)\/{2,}[^/?]/.test(request.originalUrl.split('?')[0] ?? '')) throw emptyId();
      if (request.is404 && allMethods.includes(request.method)) refuseAddress(request);
    });
    app.setNotFoundHandler(refuseAddress);

    function refuseAddress(request: FastifyRequest): never {
      if (hasBrokenEscape(request.originalUrl.split('?')[0] ?? '')) throw brokenEscape();
      const path = request.url.split('?')[0] ?? '';
      throw noRoute(request, ctx.config.site.baseUrl, addressHint(request.method, path, own));
    }
  };
}

/**
 * Whether a call that is over its limit may ask in its body for a dry run, which counts against another: only then is the
 * body read, if it is small, and the handler refuses what is none.
 */
async function mayBeDryRun(ctx: Context, limiter: RateLimiter, request: FastifyRequest): Promise<boolean> {
  const { usage, routeOptions } = request;
  if (usage?.policy !== 'publish' || !hasDryRun(routeOptions.config.operation)) return false;
  return (await currentRateStatus(ctx, limiter, 'api', usage.subject)).allowed;
}

/** The policy that a call has of its own. */
function ownPolicy({ routeOptions, query }: FastifyRequest): Policy | null {
  const { operation } = routeOptions.config;
  // Only where the call has dry runs, whatever its query says.
  const isDryRun = hasDryRun(operation) && asksForDryRun(query);
  return (isDryRun ? null : operation?.policy) ?? null;
}
