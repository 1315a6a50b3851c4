import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import { problemBody } from '../problem.ts';

/** Answers with a problem document and the headers that belong to it. */
export function sendProblem(
  config: Config,
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
): FastifyReply {
  const { retryAfter, headers } = error.extra;
  if (headers) reply.headers(headers);
  if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter));
  return (
    reply
      .code(error.status)
      .header('cache-control', 'no-store')
      // Fastify's own refusals, such as of a broken % escape, run no hooks.
      .header('x-request-id', request.id)
      .type('application/problem+json')
      .send(JSON.stringify(problemBody(config.site.baseUrl, error, request.id)))
  );
}

/** The answer where no route is; `meant` says what probably was. */
export function noRoute(request: FastifyRequest, meant: string | null = null): AppError {
  return new AppError(
    'not_found',
    `There is nothing at ${request.method} ${request.originalUrl.split('?')[0]?.slice(0, 200)}.`,
    {
      hint: `${meant === null ? '' : `${meant} `}GET /api/openapi.json lists every call, GET /docs explains them.`,
    },
  );
}
