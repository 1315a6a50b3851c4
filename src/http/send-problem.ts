import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { AppError } from '../errors.ts';
import { failureHeaders, problemBody } from './problem.ts';

/** Answers with a problem document and the headers that belong to it. */
export function sendProblem(
  config: Config,
  request: FastifyRequest,
  reply: FastifyReply,
  error: AppError,
): FastifyReply {
  return (
    reply
      .code(error.status)
      .headers(failureHeaders(error))
      .header('cache-control', 'no-store')
      // Fastify's own refusals, such as of a broken % escape, run no hooks.
      .header('x-request-id', request.id)
      .type('application/problem+json')
      .send(JSON.stringify(problemBody(config.site.baseUrl, error, request.id)))
  );
}

/** The answer to an address with nothing where an id belongs: else it would read as one without. */
export function emptyId(): AppError {
  return new AppError('not_found', 'The id in the address is empty.', {
    hint: 'Is the variable that holds the id, such as POST_ID, set in this shell?',
  });
}

/** The answer where no route is; `meant` says what probably was. */
export function noRoute(request: FastifyRequest, baseUrl: string, meant: string | null = null): AppError {
  return new AppError(
    'not_found',
    `There is nothing at ${request.method} ${request.originalUrl.split('?')[0]?.slice(0, 200)}.`,
    {
      hint: `${meant === null ? '' : `${meant} `}${baseUrl}/skill.md has every call; for programs, ${baseUrl}/api/openapi.json.`,
    },
  );
}
