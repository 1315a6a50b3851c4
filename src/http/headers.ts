import { randomUUID } from 'node:crypto';
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

const counted = 2 ** 24;

let start = '';
let count = counted;

/**
 * A new id of a request: a UUID v8 (RFC 9562, 5.8), of 24 random hex digits and a count. Not a random one for each,
 * since writing that out would be a fiftieth of the cost of a cached page; so it is unique, but can be guessed.
 */
export function newRequestId(): string {
  if (count === counted) {
    const random = randomUUID();
    start = `${random.slice(0, 14)}8${random.slice(15, 29)}`;
    count = 0;
  }
  // Seven digits, the first of which is always 1.
  return start + (counted + count++).toString(16);
}
