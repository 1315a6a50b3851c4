import { AppError, catalogue, type ErrorCode, type FieldFault } from './errors.ts';

/** A failure as RFC 9457 problem details, which also carry what older clients read. */
export type ProblemBody = {
  /** Address of the page that explains the code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly success: false;
  readonly error: string;
  readonly code: ErrorCode;
  readonly errors?: readonly FieldFault[];
  readonly hint: string;
  readonly retryable: boolean;
  readonly requestId: string;
};

/** What is sent for a failure. `baseUrl` is the service's. */
export function problemBody(baseUrl: string, error: AppError, requestId: string): ProblemBody {
  const { errors, hint } = error.extra;
  const entry = catalogue[error.code];
  return {
    type: `${baseUrl}/problems/${error.code}`,
    title: entry.title,
    status: entry.status,
    detail: error.message,
    success: false,
    error: error.message,
    code: error.code,
    ...(errors ? { errors } : {}),
    hint: hint ?? entry.hint,
    retryable: entry.retryable,
    requestId,
  };
}

/** A failure with this code, as an example for documents. */
export function exampleProblem(baseUrl: string, code: ErrorCode): ProblemBody {
  const { detail, errors } = catalogue[code].example;
  const error = new AppError(code, detail, errors ? { errors } : {});
  return problemBody(baseUrl, error, '5b0e4d7e-8a53-4f2d-9c7b-9e043f0c9a52');
}
