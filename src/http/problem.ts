import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { AppError, catalogue, type ErrorCode } from '../errors.ts';
import { asHttp, type Prose } from '../rules/calls.ts';
import { withoutKeys } from '../rules/text.ts';

/** A failure as RFC 9457 problem details, which also carry what older clients read. */
export type ProblemBody = Readonly<ReturnType<typeof problemBody>>;

/** What a failure tells, with calls spelled for the interface. No text repeats a key or token that was sent. */
export function publicFields(
  { code, detail, extra: { errors, hint } }: AppError,
  spell: (text: Prose) => string = asHttp,
) {
  return {
    detail: withoutKeys(spell(detail)),
    ...(errors ? { errors: errors.map((fault) => ({ ...fault, message: withoutKeys(fault.message) })) } : {}),
    hint: withoutKeys(spell(hint ?? catalogue[code].hint)),
  };
}

/** The headers of a failure, in whatever form it is sent. */
export function failureHeaders({ extra: { retryAfter, headers } }: AppError): Record<string, string> {
  return { ...headers, ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }) };
}

/** What is sent for a failure. `baseUrl` is the service's. */
export function problemBody(baseUrl: string, error: AppError, requestId: string) {
  const { detail, errors, hint } = publicFields(error);
  const { title, status, retryable } = catalogue[error.code];
  return {
    type: `${baseUrl}/problems/${error.code}`,
    title,
    status,
    detail,
    success: false as const,
    error: detail,
    code: error.code,
    ...(errors ? { errors } : {}),
    hint,
    retryable,
    requestId,
  };
}

/** A failure with this code, as an example for documents. */
export function exampleProblem(baseUrl: string, code: ErrorCode): ProblemBody {
  const { detail, errors } = catalogue[code].example;
  const error = new AppError(code, detail, errors ? { errors } : {});
  return problemBody(baseUrl, error, '5b0e4d7e-8a53-4f2d-9c7b-9e043f0c9a52');
}

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
