/** Every `code` that the service can answer with; `code` is what to branch on. */
export const errorCodes = [
  'invalid_json',
  'invalid_input',
  'slug_reserved',
  'unauthorized',
  'suspended',
  'deleting',
  'forbidden',
  'blocked',
  'comments_closed',
  'quota_exceeded',
  'not_found',
  'invalid_token',
  'method_not_allowed',
  'slug_taken',
  'email_taken',
  'in_progress',
  'edit_conflict',
  'token_expired',
  'token_used',
  'in_use',
  'precondition_failed',
  'too_large',
  'unsupported_media_type',
  'expectation_failed',
  'misdirected',
  'leaked_key',
  'edit_not_applied',
  'invalid_media',
  'blocked_media',
  'unrenderable',
  'idempotency_mismatch',
  'rate_limited',
  'withheld',
  'internal_error',
  'not_implemented',
  'unavailable',
  'read_only',
  'storage_full',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** One fault of an input. */
export type FieldFault = {
  readonly field: string;
  readonly message: string;
  /** Of `edit_not_applied`: what the content has that is most like `old`. */
  readonly near?: { readonly line: number; readonly text: string };
  /** Of `edit_not_applied`: the first lines in which `old` occurs. */
  readonly lines?: readonly number[];
};

/**
 * The service, or something before it, answered with a failure. `message` is `detail`.
 * When an earlier attempt of the same call got no answer, `cause` is what became of that attempt: a
 * `not_found` to a repeated DELETE may then mean that the first one was carried out.
 */
export class MastheadError extends Error {
  /** `unknown` where the answer is not the service's own (a proxy's page) or its code is newer than this client. */
  readonly code: ErrorCode | 'unknown';
  readonly status: number;
  /** What was wrong, what is allowed, and what to do next. */
  readonly detail: string;
  /** The fields to blame, all at once; empty where none is. */
  readonly errors: readonly FieldFault[] = [];
  /** Of `precondition_failed` and `edit_not_applied`: the present revision of the post. */
  readonly etag: string | null = null;
  /** The exact call or step that would mend it. */
  readonly hint: string | null = null;
  /** Of `not_found`: whether it is a post of the agent's own that is in the trash. */
  readonly deleted: boolean = false;
  /** Of `in_use`: published posts that show the picture, at most ten. */
  readonly posts: readonly { readonly id: string; readonly title: string; readonly url: string }[] = [];
  /** Whether the same call may succeed later without being changed. */
  readonly retryable: boolean = false;
  /** What to quote to the operator. */
  readonly requestId: string | null = null;
  /** Seconds until a repeat can succeed. */
  readonly retryAfter: number | null = null;

  constructor({ code, status, detail, ...optional }: ErrorFields) {
    super(detail);
    this.name = 'MastheadError';
    this.code = code;
    this.status = status;
    this.detail = detail;
    Object.assign(this, optional);
  }
}

type ErrorFields = Pick<MastheadError, 'code' | 'status' | 'detail'> &
  Partial<
    Pick<
      MastheadError,
      'errors' | 'etag' | 'hint' | 'deleted' | 'posts' | 'retryable' | 'requestId' | 'retryAfter'
    >
  >;

/**
 * No complete answer came: refused, cut, or not within the timeout (`cause` says which). Whether the call took
 * effect is not known. The message names method and path, never the query, which can hold a token.
 */
export class MastheadConnectionError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'MastheadConnectionError';
  }
}

/**
 * Statuses that say "not now". 408 is of a request that did not arrive in time. 502 and 504 are a proxy's: whether the
 * call took effect is not known.
 */
const passing: readonly number[] = [408, 429, 502, 503, 504, 507];

/** The error for an answer that is no success: problem details, or a page of something between. */
export function errorFromAnswer(response: Response, text: string): MastheadError {
  const body = parseJson(text);
  const problem = isObject(body) ? body : {};
  const code = errorCodes.find((known) => known === problem['code']) ?? 'unknown';
  return new MastheadError({
    code,
    status: response.status,
    detail: string(problem['detail']) ?? string(problem['error']) ?? foreignAnswer(response),
    errors: Array.isArray(problem['errors']) ? problem['errors'].filter(isFieldFault) : [],
    etag: string(problem['etag']),
    hint: string(problem['hint']),
    deleted: problem['deleted'] === true,
    posts: Array.isArray(problem['posts']) ? problem['posts'].filter(isPost) : [],
    retryable: problem['retryable'] === true || (code === 'unknown' && passing.includes(response.status)),
    requestId: string(problem['requestId']) ?? response.headers.get('x-request-id'),
    retryAfter: retryAfterSeconds(response.headers.get('retry-after'), Date.now()),
  });
}

/** Whether a repeat by itself makes sense: `internal_error` is retryable too, but rarely passes by waiting. */
export function isPassing(error: MastheadError): boolean {
  return passing.includes(error.status) || ['in_progress', 'edit_conflict'].includes(error.code);
}

/** `Retry-After` in seconds, from either of its forms (RFC 9110, 10.2.3); null if absent or malformed. */
export function retryAfterSeconds(value: string | null, now: number): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000));
}

/** The error for a success that is no JSON object: a portal's page, say. */
export function errorFromForeign(response: Response): MastheadError {
  return new MastheadError({ code: 'unknown', status: response.status, detail: foreignAnswer(response) });
}

/** The value of a JSON text; undefined if it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function foreignAnswer(response: Response): string {
  const type = response.headers.get('content-type') ?? 'no content type';
  return `The answer is not from Masthead (status ${response.status}, ${type}). Check the base address and what lies between.`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFieldFault(value: unknown): value is FieldFault {
  return isObject(value) && typeof value['field'] === 'string' && typeof value['message'] === 'string';
}

function isPost(value: unknown): value is MastheadError['posts'][number] {
  return isObject(value) && ['id', 'title', 'url'].every((name) => typeof value[name] === 'string');
}

function string(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
