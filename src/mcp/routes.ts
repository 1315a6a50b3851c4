import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import {
  beginUsage,
  noteAgent,
  countedAs,
  createCredentialReader,
  currentRateStatus,
  finishUsage,
  isUnset,
  refusalOf,
  takeBackUsage,
  usageHeaders,
} from '../admission/admission.ts';
import { createSemaphore } from '../admission/semaphore.ts';
import { createAddressReader, createClientReader, wideNetwork } from '../rules/client-address.ts';
import type { Config } from '../config/config.ts';
import type { Context } from '../context.ts';
import { rateLimited } from '../db/write.ts';
import { AppError, invalidField } from '../errors.ts';
import { mcpConfiguration } from '../rules/agent-setup.ts';
import { asTools, prose } from '../rules/calls.ts';
import { clientSignal } from '../http/connection.ts';
import { createHostTable, isLoopback } from '../rules/hosts.ts';
import { isRecord } from '../rules/records.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import type { McpService } from './service.ts';
import { keyHint } from './tool.ts';

/** Headers of the protocol that a page may send, and of the answers that it may read. */
const allowed =
  'Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id';
const exposed =
  'RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id';

/** Largest message, bytes: as for publishing by JSON. */
const bodyLimit = 4 * 1024 * 1024;
/** Messages of one key or address that are worked on at once; most of that is work of the protocol's library. */
const mostAtOnce = 4;

/**
 * `POST /mcp`, the protocol's Streamable HTTP without sessions, so that any process can answer
 * any message. The routes check who calls and count; `service.ts` speaks the protocol.
 */
export function mcpRoutes(ctx: Context, limiter: RateLimiter): FastifyPluginAsync {
  const readCredential = createCredentialReader(ctx);
  const addressOf = createAddressReader(ctx);
  const networkOf = createAddressReader(ctx, wideNetwork);
  const clientOf = createClientReader(ctx.config);
  const checkOrigin = createOriginCheck(ctx.config);
  const within = createSemaphore(mostAtOnce);
  let service: Promise<McpService> | null = null;
  // The protocol's library takes a quarter of a second and 30 MB, which only those who use it should pay.
  const load = () =>
    (service ??= import('./service.ts').then(({ createMcpService }) => createMcpService(ctx, limiter)));

  return async (app: FastifyInstance) => {
    app.decorateRequest('credential');
    app.decorateRequest('usage', null);
    app.decorateRequest('clientAddress', '');

    app.addHook('onRequest', async (request, reply) => {
      reply.header('cache-control', 'no-store');
      if (request.method === 'OPTIONS') return checkOrigin(request, reply);
      request.clientAddress = addressOf(request.raw);
      request.credential = { kind: 'none' };
      checkOrigin(request, reply);
      const { authorization } = request.headers;
      // A client whose configuration names a variable that is not set can still read, register and verify.
      request.credential = isUnset(authorization)
        ? { kind: 'none', unset: true }
        : await readCredential(authorization);
      noteAgent(request);
      if (request.credential.kind === 'refused') throw refusedKey(ctx, request.credential.error);
    });

    // Without a key, or when there are no calls left but of tools with limits of their own, only small ones are read.
    app.addHook('preParsing', async (request) => {
      const { credential, clientAddress } = request;
      if (clientAddress === '') return;
      const [policy, subject] = countedAs(null, request);
      request.bodyOwner = subject;
      const rate = await currentRateStatus(ctx, limiter, policy, subject);
      if (!rate.allowed)
        request.onlySmallBody = rateLimited({ policy, quota: ctx.config.limits[policy] }, rate);
      else if (credential.kind !== 'caller')
        request.onlySmallBody = new AppError('too_large', 'Without an API key a message is at most 64 KiB.');
    });

    app.setErrorHandler(async (error, request) => {
      throw inTools(request.clientAddress === '' ? error : await counted(ctx, limiter, request, error));
    });

    app.addHook('onSend', async ({ usage }, reply) => {
      if (usage === null) return;
      await finishUsage(ctx, usage);
      reply.headers(usageHeaders(usage));
    });

    const allow = 'OPTIONS, POST';
    app.options('/mcp', async (_request, reply) => reply.code(204).header('allow', allow).send());

    // Older clients ask with GET for a stream of events, and with DELETE to end a session.
    app.route({
      method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE'],
      url: '/mcp',
      handler: async ({ method }) => {
        throw new AppError('method_not_allowed', `MCP messages are sent with POST, not ${method}.`, {
          headers: { allow },
          hint: `Add this address to an MCP client, with the transport Streamable HTTP; to write, with the header 'Authorization: Bearer API_KEY': ${mcpConfiguration(ctx.config.site.baseUrl)} ${ctx.config.site.baseUrl}/docs/mcp.md says more.`,
        });
      },
    });

    app.post('/mcp', { bodyLimit }, async (request, reply) => {
      const structured = isStructured(request.query);
      const { credential, clientAddress: address, body: message } = request;
      if (!isRecord(message)) throw noMessage();
      const mcp = await load();
      const { isToolCall, policy, stores } = mcp.describe(message);
      request.storedNothing = !stores;
      const usage = await beginUsage(ctx, limiter, ...countedAs(policy, request));
      request.usage = usage;
      const refusal = refusalOf(usage);
      if (refusal) reply.header('retry-after', String(usage.rate.reset));
      if (refusal && !isToolCall) throw refusal;
      const signal = clientSignal(reply.raw);
      const { id: requestId, repeatedNames, raw } = request;
      const whose = { credential, usage, address, network: networkOf(raw), client: clientOf(raw) };
      const call = { ...whose, requestId, repeatedNames, structured, signal };
      return within(request.bodyOwner, async () => {
        const turn = app.turns.again(request.raw);
        if (turn) await turn;
        signal.throwIfAborted();
        const response = await mcp.answer(headersOf(request), message, call);
        const headers = Object.fromEntries(response.headers);
        reply.code(response.status).headers(headers);
        if (response.body === null) return reply.send();
        // The bytes as they are: to make a text of a long one, and encode that, takes as long as to write it.
        return reply.type('application/json; charset=utf-8').send(Buffer.from(await response.arrayBuffer()));
      });
    });
  };
}

/** Whether the address asks for structured content. Throws invalid_input. */
function isStructured(query: unknown): boolean {
  const { structured }: { structured?: unknown } = isRecord(query) ? query : {};
  if (structured !== undefined && structured !== '1')
    throw invalidField('structured', "must be '1', or left out", 'Without it, results are JSON in a text.');
  return structured === '1';
}

/**
 * Counts a call that failed before it was counted, so that nonsense and guessed keys use up the limit too. What is
 * refused because too much is in progress does not count, nor where its answer was made before that.
 */
async function counted(
  ctx: Context,
  limiter: RateLimiter,
  request: FastifyRequest,
  error: unknown,
): Promise<unknown> {
  const usage = request.usage ?? (await beginUsage(ctx, limiter, ...countedAs(null, request)));
  request.usage = usage;
  if (!(error instanceof AppError && error.extra.uncounted)) return refusalOf(usage) ?? error;
  request.usage = await takeBackUsage(ctx, limiter, usage);
  return error;
}

/**
 * The check that the protocol's transport asks for against DNS rebinding: a request from a web page passes if
 * the page is our own or one of this machine, and that page may read the answer. Without an `Origin` it is no
 * page. The returned function throws forbidden.
 */
function createOriginCheck(config: Config): (request: FastifyRequest, reply: FastifyReply) => void {
  const findHost = createHostTable(config);
  const { protocol } = new URL(config.site.baseUrl);

  return ({ headers: { origin } }, reply) => {
    reply.header('vary', 'Origin');
    if (origin === undefined) return;
    const url = URL.parse(origin);
    const isTrusted =
      url !== null &&
      /^https?:$/.test(url.protocol) &&
      (isLoopback(url.hostname) || (url.protocol === protocol && findHost(url.host).kind === 'base'));
    if (!isTrusted) {
      throw new AppError('forbidden', 'Web pages of other sites may not call this MCP endpoint.', {
        errors: [{ field: 'Origin', message: 'is neither this service nor this machine' }],
        hint: `Call it from a program, which sends no Origin header. Pages of any site may call the API at ${config.site.baseUrl}/api.`,
      });
    }
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': allowed,
      'access-control-expose-headers': exposed,
    });
  };
}

/** No tool can be called with such a key, so the refusal itself says how to go on. */
function refusedKey({ config }: Context, { detail, extra }: AppError): AppError {
  const more = prose`${detail} Put a working key in the Authorization header of your MCP client's configuration, or take the header out: reading, 'register', 'verify' and 'recover' need none.`;
  return new AppError('unauthorized', more, { ...extra, hint: keyHint(config.site.baseUrl) });
}

/** A failure outside the protocol, whose problem document would name calls as HTTP, with calls named as tools. */
function inTools(error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const { code, detail, extra } = error;
  const hint = extra.hint === undefined ? {} : { hint: asTools(extra.hint) };
  return new AppError(code, asTools(detail), { ...extra, ...hint });
}

function noMessage(): AppError {
  return new AppError('invalid_json', 'The body must be one JSON-RPC message; batches are not accepted.', {
    hint: 'Send each message by itself, as {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}.',
  });
}

/** The headers that mean something to the protocol. Keys stay out of its library. */
function headersOf({ headers }: FastifyRequest): Headers {
  // Every answer is one JSON object; nobody need say that it would also take a stream.
  const protocol = new Headers({ accept: 'application/json, text/event-stream' });
  for (const [name, value = ''] of Object.entries(headers))
    if (/^(?:content-type|mcp-.*)$/.test(name)) protocol.set(name, [value].flat().join(', '));
  return protocol;
}
