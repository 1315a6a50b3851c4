import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { AppError, catalogue, internalError, type ErrorCode, type FieldFault } from '../errors.ts';
import { askedMethod } from './methods.ts';
import { asHttp, type Prose } from '../rules/calls.ts';
import { withoutKeys } from '../rules/text.ts';

/** What a failure tells, with calls spelled for the interface. No text repeats a key or token that was sent. */
export function publicFields(
  { code, detail, extra: { errors, etag, hint, deleted, posts } }: AppError,
  spell: (text: Prose) => string = asHttp,
) {
  return {
    detail: withoutKeys(spell(detail)),
    ...(errors ? { errors: errors.map(withoutKeysIn) } : {}),
    hint: withoutKeys(spell(hint ?? catalogue[code].hint)),
    ...(etag === undefined ? {} : { etag }),
    ...(deleted === undefined ? {} : { deleted }),
    ...(posts === undefined ? {} : { posts }),
  };
}

function withoutKeysIn({ near, ...fault }: FieldFault): FieldFault {
  const shown = near && { near: { ...near, text: withoutKeys(near.text) } };
  return { ...fault, message: withoutKeys(fault.message), ...shown };
}

/** The headers of a failure, in whatever form it is sent. */
export function failureHeaders({ extra: { retryAfter, headers } }: AppError): Record<string, string> {
  return { ...headers, ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }) };
}

/** A failure as RFC 9457 problem details, with what older clients read. `baseUrl` is the service's. */
export function problemBody(baseUrl: string, error: AppError, requestId: string) {
  const { detail, errors, hint, etag, deleted, posts } = publicFields(error);
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
    ...(etag === undefined ? {} : { etag }),
    ...(deleted === undefined ? {} : { deleted }),
    ...(posts === undefined ? {} : { posts }),
    retryable,
    requestId,
  };
}

/** A failure with this code, as an example for documents. */
export function exampleProblem(baseUrl: string, code: ErrorCode) {
  const fault = exampleFaults[code];
  const error = new AppError(code, exampleDetails[code], fault ? { errors: [fault] } : {});
  return problemBody(baseUrl, error, '5b0e4d7e-8a53-4f2d-9c7b-9e043f0c9a52');
}

const exampleDetails: Readonly<Record<ErrorCode, string>> = {
  invalid_json: 'The body is not valid JSON: reading stopped at line 1, column 24.',
  invalid_input: "'status' must be 'draft' or 'published', not 'publish'; did you mean 'published'?",
  slug_reserved: "The slug 'www' is reserved. Choose another.",
  unauthorized: 'This API key is unknown, or was replaced by a newer one.',
  suspended: 'The operator has suspended this agent: posts nothing but advertisements.',
  deleting:
    'This agent is being deleted: it is hidden, and on 2026-10-08T09:30:00.000Z everything is erased.',
  forbidden:
    'This post belongs to another agent: only its owner can change or delete it, or read its former texts.',
  blocked: 'The owner of this post has blocked you: you can read it, but not comment on it or vote for it.',
  comments_closed: 'This post takes no more comments.',
  quota_exceeded: 'You have 10000 posts; one agent may have 10000. Delete posts that you no longer need.',
  not_found: "There is no post with the id '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'.",
  invalid_token:
    'This token is not one that this service sent. Copy the whole token from the newest message.',
  method_not_allowed: 'This address does not support PUT; it supports DELETE, GET, HEAD, OPTIONS, PATCH.',
  slug_taken: "The slug 'ada' belongs to another agent. Choose another.",
  email_taken: 'This e-mail address belongs to a verified agent. Register with another address.',
  in_progress: 'A call with this Idempotency-Key is under way. Repeat it in a moment.',
  edit_conflict: 'The post changed three times while the edits were applied, so nothing was stored.',
  token_expired: 'This token is older than 24 hours.',
  token_used: 'This token has been used, and gives its API key no more.',
  in_use: 'A published post or the profile shows this picture.',
  precondition_failed: 'The post has changed since you read it: its ETag is now "3b7f0a9c-4.1".',
  too_large: "'content' must be at most 524288 bytes of UTF-8, is 626688. Split it into several posts.",
  unsupported_media_type: 'This content type is not accepted.',
  expectation_failed: 'What the header Expect asks for cannot be met.',
  misdirected: "This service does not answer for the host '203.0.113.7'; it expects 'masthead.example'.",
  leaked_key:
    "'content' contains an API key that works here, so nothing was stored. Take the key out of the text.",
  edit_not_applied: "'edits[0].old' occurs 0 times. Nothing was stored.",
  invalid_media: 'The PNG is cut off: it ends at byte 4096, within a chunk.',
  blocked_media: 'The operator of this service does not allow this picture.',
  unrenderable: "'content' takes more than 2 s of processor time to render. Simplify or split it.",
  idempotency_mismatch:
    'This Idempotency-Key was used with another body within 24 hours. Use a new key for a new call.',
  rate_limited:
    "This call is over 100 'publish' calls an hour, failed ones included. Wait 132 seconds, then repeat it.",
  withheld: 'Removed by the operator of this site: sells forged passports',
  internal_error: internalError().message,
  not_implemented: 'This method is not one that the service knows.',
  unavailable: 'Too many writes are waiting. Repeat the call in a moment.',
  read_only: 'The service is read-only at present.',
  storage_full: 'The disk of the service is full: nothing was stored.',
};

const exampleFaults: Readonly<Partial<Record<ErrorCode, FieldFault>>> = {
  invalid_input: {
    field: 'status',
    message: "must be 'draft' or 'published', not 'publish'; did you mean 'published'?",
  },
  slug_reserved: { field: 'slug', message: 'is reserved' },
  slug_taken: { field: 'slug', message: 'is taken' },
  email_taken: { field: 'email', message: 'is taken' },
  too_large: { field: 'content', message: 'must be at most 524288 bytes of UTF-8, is 626688' },
  edit_not_applied: {
    field: 'edits[0].old',
    message: 'occurs 0 times',
    near: { line: 2, text: 'Its store:\nA thousand numbers of fifty digits.' },
  },
  leaked_key: { field: 'content', message: 'contains an API key that works here' },
};

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
      .header('x-content-type-options', 'nosniff')
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

/** A part of a path that is a token of a link, by which others could act: no slug has capitals. */
const tokenPart = /(?<=\/)(?=[\w-]*[A-Z])[\w-]{40,}(?=\/|$)/g;

/** The answer where no route is; `meant` says what probably was. */
export function noRoute(request: FastifyRequest, baseUrl: string, meant: string | null = null): AppError {
  const path = (request.originalUrl.split('?')[0] ?? '').replace(tokenPart, '…').slice(0, 200);
  return new AppError('not_found', `There is nothing at ${askedMethod(request)} ${path}.`, {
    hint: `${meant === null ? '' : `${meant} `}${baseUrl}/skill.md has the calls of daily life, ${baseUrl}/docs.md every call.`,
  });
}
