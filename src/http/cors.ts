import type { FastifyReply, FastifyRequest } from 'fastify';

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
].join(', ');

/** Any page may call the API: it knows no cookies, only keys. Answers preflights itself, at any host. */
export function allowCors(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  reply
    .header('access-control-allow-origin', '*')
    .header('access-control-expose-headers', exposed)
    .header('x-robots-tag', 'noindex');
  if (request.method !== 'OPTIONS') return undefined;
  const wanted = request.headers['access-control-request-headers'];
  return reply
    .code(204)
    .header('access-control-allow-methods', 'GET, HEAD, POST, PATCH, DELETE')
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
