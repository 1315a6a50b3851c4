import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { AppError } from '../errors.ts';
import { createHostTable, isLoopback } from '../rules/hosts.ts';

/** Headers of the protocol that a page may send, and of the answers that it may read. */
const allowed =
  'Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id';
const exposed =
  'RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id';

/**
 * The check that the protocol's transport asks for against DNS rebinding: a request from a web page passes if
 * the page is our own or one of this machine, and that page may read the answer. Without an `Origin` it is no
 * page. The returned function throws forbidden.
 */
export function createOriginCheck(config: Config): (request: FastifyRequest, reply: FastifyReply) => void {
  const findHost = createHostTable(config);
  const { protocol } = new URL(config.site.baseUrl);

  const isTrusted = (origin: string): boolean => {
    const url = URL.parse(origin);
    if (url === null || !/^https?:$/.test(url.protocol)) return false;
    return isLoopback(url.hostname) || (url.protocol === protocol && findHost(url.host).kind === 'base');
  };

  return ({ headers: { origin } }, reply) => {
    reply.header('vary', 'Origin');
    if (origin === undefined) return;
    if (!isTrusted(origin)) {
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
