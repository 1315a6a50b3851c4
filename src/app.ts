import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { createReference } from './api/openapi/openapi.ts';
import { apiRoutes } from './api/routes.ts';
import { addCompression } from './http/compress.ts';
import { noRoute, sendProblem } from './http/problem.ts';
import { countBudgetHit } from './platform/measured.ts';
import { errorCode } from './rules/failure.ts';
import {
  createBrokenAnswers,
  answerOtherVersion,
  clientLeft,
  cutOffStalled,
  mostHeaders,
  unreadable,
} from './http/connection.ts';
import { createAddressReader, createPeerAddress } from './rules/client-address.ts';
import { newRequestId } from './rules/secrets.ts';
import type { Context } from './context.ts';
import { AppError, internalError } from './errors.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { arrivals } from './platform/arrivals.ts';
import { beginInSlices, limitConnections } from './http/connection-budget.ts';
import { limitAnswers, limitHeld, limitInFlight, oneByOne, refuseAnswers } from './http/in-flight.ts';
import { answerOtherMethods, collectMethods, routeAsRefused } from './http/methods.ts';
import { observed, routeName, traceOf } from './http/observe.ts';
import { readProbe } from './http/own-probe.ts';
import { untilRead } from './http/parser.ts';
import { createReadOn, smallBody, tooMuch } from './http/read-body.ts';
import { addBodyParsers, unsupportedType } from './http/request-body.ts';
import { clientsOf, createTurns, type Handle } from './http/turns.ts';
import { pictureTypeRefused } from './services/media/uploads.ts';
import type { RateLimiter } from './services/limits/rate-limiter.ts';
import {
  brokenEscape,
  createRewrite,
  isApi,
  longestPathPart,
  requireOurHost,
  requireWellFormed,
} from './http/target.ts';
import { prefersJson } from './web/cache/negotiation.ts';
import { createWebRoutes, type WebRoutes } from './web/routes/routes.ts';

/** The state of the process, as the probes report it. */
export type Health = {
  state(): 'starting' | 'ready' | 'draining';
  /** Whether the last write probe succeeded. */
  writable(): boolean;
};

/** The whole HTTP side, ready to listen: limits of connections, hooks, the three interfaces, the page cache in front. */
export async function createApp(
  ctx: Context,
  { limiter, health }: { limiter: RateLimiter; health: Health },
): Promise<FastifyInstance> {
  const reference = createReference(ctx.config);
  const addressOf = createAddressReader(ctx);
  const answers = limitAnswers(addressOf);
  const web = createWebRoutes(ctx, { limiter, answers }, () => reference.document());
  const app = Fastify({
    logger: false,
    genReqId: ({ requestId }) => requestId ?? newRequestId(),
    requestIdHeader: false,
    bodyLimit: smallBody,
    // Of the whole request; milliseconds, as all here.
    requestTimeout: 10_000,
    keepAliveTimeout: 65_000,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    exposeHeadRoutes: true,
    rewriteUrl: createRewrite(ctx.config),
    routerOptions: { maxParamLength: longestPathPart },
    http: {
      headersTimeout: 8_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: mostHeaders,
      // Less than a packet: of a body that waits for its turn, one packet is in memory.
      highWaterMark: 16 * 1024,
      // A missing Host is answered by requireWellFormed, with a body that says so.
      requireHostHeader: false,
      // No stream is read to its end where there is no body, which takes a twentieth of a cached page's time.
      optimizeEmptyRequests: true,
    },
    frameworkErrors: (error, request, reply) => void fail(ctx, web, error, request, reply),
    clientErrorHandler: createBrokenAnswers(ctx.config),
  });
  beginInSlices(app.server, arrivals, addressOf);
  limitConnections(app.server, createPeerAddress(ctx.config.trustProxy));
  cutOffStalled(app.server);
  const turns = createTurns(clientsOf(ctx, addressOf), arrivals);
  addBodyParsers(app, { addressOf, turns });
  app.setErrorHandler((error, request, reply) => fail(ctx, web, error, request, reply));
  app.setNotFoundHandler(
    (request, reply) => web.redirect(request, reply) ?? fail(ctx, web, nothingAt(request), request, reply),
  );
  // Before the body is read, so that an unknown address is not answered as a wrong content type.
  app.addHook('preParsing', async (request) => {
    if (isEmpty(request.headers)) delete request.headers['content-type'];
    const hasBody = ['POST', 'PUT', 'PATCH', 'DELETE'].includes(request.method);
    if (request.is404 && hasBody) throw nothingAt(request);
  });
  addCompression(app, ctx.config.compressApi);
  refuseAnswers(app, answers);
  app.addHook('onClose', () => web.close());

  app.addHook('onRequest', async (request, reply) => {
    request.raw.route = routeName(request.routeOptions.url);
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    // First, so that a page can read why it is refused.
    const preflight = isApi(request.originalUrl) && allowCors(request, reply);
    if (preflight) return preflight;
    requireOurHost(ctx.config, request.raw, request.originalUrl);
    if (request.raw.isTooMuchOf) throw tooMuch(request.raw.isTooMuchOf);
    // A malformed call of the API counts, so the API refuses it.
    if (!isApi(request.originalUrl)) requireWellFormed(request.raw, request.originalUrl);
    return undefined;
  });

  app.decorate('turns', turns);
  // The keys of many calls are found at once: the work of each waits for its turn, and its client may leave meanwhile.
  app.addHook('preHandler', (request, _reply, done) => {
    const begin = () => done(request.raw.socket.destroyed ? clientLeft() : undefined);
    const turn = turns.again(request.raw);
    if (turn) void turn.then(begin);
    else begin();
  });
  // A part of the body that came later may wait for a turn.
  app.addHook('onSend', async ({ raw }) => {
    await untilRead(raw.socket);
  });

  const methods = collectMethods(app);
  addProbes(app, ctx, health);
  const nothingAt = (request: FastifyRequest) => {
    const inApi = `/api${request.url.split('?')[0] ?? ''}`;
    const known = Object.keys(reference.document().paths[inApi] ?? {}).map((name) => name.toUpperCase());
    const meant = known.length === 0 ? null : `Did you mean ${known.join(', ')} ${inApi}?`;
    return noRoute(request, ctx.config.site.baseUrl, meant);
  };
  await app.register(apiRoutes(ctx, limiter, reference), { prefix: '/api' });
  await app.register(mcpRoutes(ctx, limiter));
  await app.register(web.routes);
  answerOtherMethods(app, methods, { isThere: web.isThere });
  answerRequests(app, ctx, web, routeInTurns(app, addressOf));
  return app;
}

/** Fastify's routing, within what clients may have under way, when it is their turn. */
function routeInTurns(app: FastifyInstance, addressOf: (request: IncomingMessage) => string): Handle {
  const hasBody = ({ headers }: IncomingMessage) => !isEmpty(headers);
  const readOnAfterAnswer = createReadOn(addressOf);
  const route: Handle = (request, response) => {
    if (hasBody(request)) readOnAfterAnswer(request, response);
    routeAsRefused(request);
    if (request.headers['transfer-encoding'] === undefined) return app.routing(request, response);
    // Its packet is parsed to the end first, and may have to wait for a turn.
    const begin = () => {
      if (!request.socket.destroyed) app.routing(request, response);
    };
    setImmediate(() => {
      const turn = untilRead(request.socket);
      if (turn) void turn.then(begin);
      else begin();
    });
  };
  return limitInFlight(app.turns.inTurns(route, limitHeld(hasBody, addressOf)), hasBody, addressOf);
}

const exposed = [
  'ETag',
  'Link',
  'Location',
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Idempotent-Replayed',
  'Deprecation',
  'Sunset',
].join(', ');

/** Any page may call the API: it knows no cookies, only keys. Answers preflights itself, at any host. */
function allowCors(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  reply
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', exposed)
    .header('x-robots-tag', 'noindex');
  if (request.method !== 'OPTIONS') return undefined;
  const wanted = request.headers['access-control-request-headers'];
  return reply
    .code(204)
    .headers(
      request.routeOptions.config.allow === undefined ? {} : { allow: request.routeOptions.config.allow },
    )
    .header('access-control-allow-methods', 'GET, HEAD, POST, PUT, PATCH, DELETE')
    .header(
      'access-control-allow-headers',
      typeof wanted === 'string' && /^[\w\-, ]{1,1000}$/.test(wanted)
        ? wanted
        : 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match',
    )
    .header('access-control-max-age', '86400')
    .header('vary', 'Access-Control-Request-Headers')
    .send();
}

/** Whether a request has no body; its content type then does not matter. */
function isEmpty(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

/** Answers from the page cache before Fastify routes, at about the cost of a bare server. */
function answerRequests(app: FastifyInstance, ctx: Context, web: WebRoutes, route: Handle): void {
  const { config, log } = ctx;
  app.server.removeAllListeners('request');
  const handle = observed(web.answerCached, route, { log, logged: config.logRequests });
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // It arrived after the last request to be answered: its client could not learn that it was done, and repeats it.
    if (!request.socket.writable) return void request.socket.destroy();
    if (request.httpVersionMajor !== 1) return answerOtherVersion(config, response);
    handle(request, response);
  };
  app.server.on('request', oneByOne(answer));
  // Within the same bounds as all others, though what is refused takes little: a packet holds 2,300 of them.
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    request.expectsOther = true;
    app.server.emit('request', request, response);
  });
  // Else Node tells every client to go on, also one that is to be refused.
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    request.tellToGoOn = () => response.writeContinue();
    app.server.emit('request', request, response);
  });
}

function addProbes(app: FastifyInstance, ctx: Context, health: Health): void {
  app.get('/healthz', async (_request, reply) =>
    reply.header('cache-control', 'no-store').send({ success: true, status: 'ok' }),
  );
  app.get('/readyz', async (request, reply) => {
    const state = health.state();
    const readable = await ctx.engine.probe().then(
      () => true,
      () => false,
    );
    const ready = state === 'ready' && readable;
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({
        success: ready,
        state,
        writable: health.writable() && ctx.engine.readOnly() === null,
        seen: readProbe(ctx, request.raw, request.id),
      });
  });
}

/** Every failure ends here, and is answered as a page or as JSON by its address. */
function fail(
  ctx: Context,
  web: WebRoutes,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const explained = explain(error, request);
  if (explained.extra.budget !== undefined) countBudgetHit(explained.extra.budget);
  if (explained.code === 'internal_error') {
    ctx.log.error(
      {
        err: error,
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url,
        ...traceOf(request.raw),
      },
      'a call failed for a reason that was not foreseen',
    );
  }
  return isForPeople(request)
    ? web.sendFailure(request, reply, explained)
    : sendProblem(ctx.config, request, reply, explained);
}

/** Whether a page was requested, and not as JSON. */
function isForPeople({ method, originalUrl, headers, raw }: FastifyRequest): boolean {
  if (raw.expectsOther) return false;
  if (/^\/+(?:api|mcp|-|\.well-known|healthz|readyz)(?:[/?]|$)/.test(originalUrl)) return false;
  if (method !== 'GET' && method !== 'HEAD') return /^\/verify(?:[/?]|$)/.test(originalUrl);
  return !prefersJson(headers.accept);
}

/** Fastify's own refusals by their code; anything unforeseen is an internal error. */
function explain(error: unknown, request: FastifyRequest): AppError {
  if (error instanceof AppError) return error;
  switch (errorCode(error) ?? '') {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return request.routeOptions.config.operation?.picture
        ? pictureTypeRefused(request.headers['content-type'] ?? '', 'Content-Type')
        : unsupportedType(request);
    case 'FST_ERR_BAD_URL':
      return brokenEscape();
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new AppError('not_found', 'There is nothing at this address.');
    default:
      // Anything else that Fastify refuses, such as an aborted upload, is not our fault.
      if (error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500)
        return unreadable('The request could not be read: its method, headers or body are broken.');
      return internalError();
  }
}
