import { catalogue, errorCodes, type ErrorCode } from '../../errors.ts';
import { exampleProblem } from '../../http/problem.ts';
import type { ExampleObject, ResponseObject } from '../../schemas/openapi.ts';
import type { Operation } from '../endpoint.ts';

/** Every code that an operation may fail with, in the order of the catalogue. */
export function errorsOf({ method, auth, policy, errors = [] }: Operation): ErrorCode[] {
  // Nothing refuses a probe but the parser of HTTP.
  if (policy === null) return ['invalid_input'];
  const isWrite = method !== 'GET';
  const codes = new Set<ErrorCode>([
    'invalid_input',
    'misdirected',
    'rate_limited',
    'internal_error',
    'unavailable',
    ...(auth === 'none' ? [] : (['unauthorized', 'suspended'] as const)),
    // Also a call that takes no body is refused when it sends one that cannot be read.
    ...(isWrite ? (['invalid_json', 'too_large', 'unsupported_media_type'] as const) : []),
    // The first call with a new key notes that the key was used.
    ...(isWrite || auth !== 'none' ? (['read_only', 'storage_full'] as const) : []),
    ...errors,
  ]);
  return errorCodes.filter((code) => codes.has(code));
}

/** Codes by status. */
export function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  return Map.groupBy(codes, (code) => catalogue[code].status);
}

/** The name that a response with these codes has among the components. */
export function responseName(codes: readonly ErrorCode[]): string {
  return codes.join('_or_');
}

/** The response of a status that stands for these codes. */
export function problemResponse(status: number, codes: readonly ErrorCode[]): ResponseObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${catalogue[code].explanation}`).join('\n\n'),
    headers: Object.fromEntries(
      headersOf(status).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    ),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Problem' }],
          type: 'object',
          properties: { status: { const: status }, code: { enum: codes } },
        },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}

/** A failure of each of these codes, by code. */
export function problemExamples(baseUrl: string, codes: Iterable<ErrorCode>): Record<string, ExampleObject> {
  return Object.fromEntries(
    Array.from(codes, (code) => [
      code,
      { summary: catalogue[code].title, value: exampleProblem(baseUrl, code) },
    ]),
  );
}

function headersOf(status: number): string[] {
  return [
    'X-Request-Id',
    ...(status === 401 ? ['WWW-Authenticate'] : []),
    ...([429, 503, 507].includes(status) ? ['Retry-After'] : []),
    ...(status === 429 ? ['RateLimit', 'RateLimit-Policy'] : []),
  ];
}
