import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import {
  beginUsage,
  countedAs,
  finishUsage,
  rateHeaders,
  refusalOf,
  currentRateStatus,
  takeBackUsage,
  type Usage,
} from '../admission/rate-limit.ts';
import { createCredentialReader, isUnset, type Credential } from '../admission/credential.ts';
import { createAddressReader } from '../rules/client-address.ts';
import type { Context } from '../context.ts';
import { rateLimited } from '../db/write.ts';
import { AppError } from '../errors.ts';
import { mcpConfiguration, mcpKeyHint } from '../rules/agent-setup.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import { createOriginCheck } from './origin.ts';
import type { McpService } from './service.ts';

/** Largest message, bytes: as for publishing by JSON. */
const bodyLimit = 4 * 1024 * 1024;

/** One MCP request on its way. */
type Visit = {
  /** The address that limits count the client by. */
  readonly address: string;
  credential: Credential;
  usage: Usage | null;
};

declare module 'fastify' {
  interface FastifyRequest {
    mcpVisit: Visit | null;
  }
}

/**
 * `POST /mcp`, the protocol's Streamable HTTP without sessions, so that any process can answer
 * any message. The routes check who calls and count; `service.ts` speaks the protocol.
 */
export function mcpRoutes(ctx: Context, limiter: RateLimiter): FastifyPluginAsync {
  const readCredential = createCredentialReader(ctx);
  const addressOf = createAddressReader(ctx);
  const checkOrigin = createOriginCheck(ctx.config);
  let service: Promise<McpService> | null = null;
  // The protocol's library takes a quarter of a second and 30 MB, which only those who use it should pay.
  const load = () =>
    (service ??= import('./service.ts').then(({ createMcpService }) => createMcpService(ctx, limiter)));

  return async (app: FastifyInstance) => {
    app.decorateRequest('mcpVisit', null);

    app.addHook('onRequest', async (request, reply) => {
      reply.header('cache-control', 'no-store');
      if (request.method === 'OPTIONS') return checkOrigin(request, reply);
      const address = addressOf(request.raw);
      const visit: Visit = { address, credential: { kind: 'none' }, usage: null };
      request.mcpVisit = visit;
      checkOrigin(request, reply);
      const { authorization } = request.headers;
      // A client whose configuration names a variable that is not set can still read, register and verify.
      visit.credential = isUnset(authorization)
        ? { kind: 'none', unset: true }
        : await readCredential(authorization);
      if (visit.credential.kind === 'refused') throw refusedKey(ctx, visit.credential.error);
    });

    // Without a key, or when there are no calls left but of tools with limits of their own, only small ones are read.
    app.addHook('preParsing', async (request) => {
      const { mcpVisit: visit } = request;
      if (visit === null) return;
      const [policy, subject] = countedAs(null, visit.credential, visit.address);
      request.bodyOwner = subject;
      const standing = await currentRateStatus(ctx, limiter, policy, subject);
      if (!standing.allowed)
        request.onlySmallBody = rateLimited({ policy, quota: ctx.config.limits[policy] }, standing);
      else if (visit.credential.kind !== 'caller')
        request.onlySmallBody = new AppError('too_large', 'Without an API key a message is at most 64 KiB.');
    });

    // What failed before it was counted is counted now: whoever sends nonsense, or guesses keys, too often is told
    // that, and no more. But for what is refused since too much is under way: that does not count.
    app.setErrorHandler(async (error, { mcpVisit: visit }) => {
      if (visit === null || visit.usage !== null) throw error;
      const counted = countedAs(null, visit.credential, visit.address);
      visit.usage = await beginUsage(ctx, limiter, ...counted);
      if (error instanceof AppError && error.extra.uncounted) {
        visit.usage = await takeBackUsage(ctx, limiter, visit.usage);
        throw error;
      }
      throw refusalOf(visit.usage) ?? error;
    });

    app.addHook('onSend', async ({ mcpVisit: visit }, reply) => {
      if (!visit?.usage) return;
      await finishUsage(ctx, visit.usage);
      reply.headers(rateHeaders(visit.usage));
    });

    app.options('/mcp', async (_request, reply) => reply.code(204).send());

    // Older clients ask with GET for a stream of events, and with DELETE to end a session.
    app.route({
      method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE'],
      url: '/mcp',
      handler: async ({ method }) => {
        throw new AppError('method_not_allowed', `MCP messages are sent with POST, not ${method}.`, {
          headers: { allow: 'OPTIONS, POST' },
          hint: `Add this address to an MCP client, with the transport Streamable HTTP; to write, with the header 'Authorization: Bearer API_KEY': ${mcpConfiguration(ctx.config.site.baseUrl)} ${ctx.config.site.baseUrl}/docs#mcp says more.`,
        });
      },
    });

    app.post('/mcp', { bodyLimit }, async (request, reply) => {
      const { mcpVisit: visit, body: message } = request;
      if (visit === null) throw new Error('a request without its visit');
      if (typeof message !== 'object' || message === null || Array.isArray(message)) {
        throw new AppError(
          'invalid_json',
          'The body must be one JSON-RPC message; batches are not accepted.',
        );
      }
      const mcp = await load();
      const { isToolCall, policy } = mcp.describe(message);
      visit.usage = await beginUsage(ctx, limiter, ...countedAs(policy, visit.credential, visit.address));
      const refusal = refusalOf(visit.usage);
      if (refusal) reply.header('retry-after', String(visit.usage.rate.reset));
      if (refusal && !isToolCall) throw refusal;
      const response = await mcp.answer(headersOf(request), message, {
        credential: visit.credential,
        usage: visit.usage,
        address: visit.address,
        ticket: visit.usage.ticket ?? undefined,
        refusal,
        requestId: request.id,
      });
      return reply
        .code(response.status)
        .headers(Object.fromEntries(response.headers))
        .send(await response.text());
    });
  };
}

/** No tool can be called with such a key, so the refusal itself says how to go on. */
function refusedKey({ config }: Context, { message, extra }: AppError): AppError {
  const detail = `${message} Put a working key in the Authorization header of your MCP client's configuration, or take the header out: reading, 'register' and 'verify' need none.`;
  return new AppError('unauthorized', detail, { ...extra, hint: mcpKeyHint(config.site.baseUrl) });
}

/** The headers that mean something to the protocol. Keys stay out of its library. */
function headersOf({ headers }: FastifyRequest): Headers {
  const named = Object.entries(headers).filter(([name]) => /^(?:content-type|mcp-.*)$/.test(name));
  const protocol = new Headers(named.map(([name, value]) => [name, [value ?? ''].flat().join(', ')]));
  // Every answer is one JSON object; nobody need say that it would also take a stream.
  protocol.set('accept', 'application/json, text/event-stream');
  return protocol;
}
