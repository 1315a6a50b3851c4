import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Auth } from '../admission/admission.ts';
import { AppError, type FieldFault } from '../errors.ts';
import { MarkdownBody, unsupportedType } from '../http/request-body.ts';
import { operations } from '../rules/calls.ts';
import { keywordsOf } from '../schemas/openapi.ts';
import { dryRunInBody, dryRunRefusals } from '../schemas/posts.ts';
import { createCheck, isRecord, repeatedWarnings, throwIfFaulty } from '../schemas/validate.ts';
import type { Endpoint, Input, Operation, Sent } from './endpoint.ts';
import { headerFaults } from './request-headers.ts';

/** Checks body and query of a call together, so that all faults of both are named at once. */
export function createInputCheck<A extends Auth, B extends Input | undefined, Q extends Input | undefined>(
  endpoint: Endpoint<A, B, Q>,
) {
  const operation: Operation = endpoint;
  const isWrite = endpoint.head !== undefined || operations[operation.operationId].method !== 'GET';
  const lacksDryRun = isWrite && !hasDryRun(operation);
  const refused = { ...endpoint.check?.refused, ...(lacksDryRun ? dryRunRefusals : {}) };
  const bodyRefused = { ...refused, ...(hasDryRun(operation) && !endpoint.body ? dryRunInBody : {}) };
  const { together, ...names } = endpoint.check ?? {};
  const inTexts = { ...names, refused, coerce: true };
  const ofBody = {
    refused: bodyRefused,
    ...(together ? { together } : {}),
    // Where no body is defined, what is sent all the same is ignored, and its fields are named in warnings.
    ...(isWrite && endpoint.body ? { refuseUnknown: 'alone' as const } : {}),
  };
  const checkBody = createCheck(endpoint.body ?? Type.Object({}), { ...names, ...ofBody });
  const checkMarkdown = createCheck(endpoint.body ?? Type.Object({}), {
    ...inTexts,
    ...ofBody,
    names: 'field',
  });
  const checkQuery = createCheck(endpoint.query ?? Type.Object({}), inTexts);
  const { narrower } = endpoint;
  const checkNarrower = narrower && createCheck(narrower.query ?? Type.Object({}), inTexts);
  const checkMarkdownQuery = createCheck(endpoint.markdown?.query ?? Type.Object({}), inTexts);

  const given = (body: unknown) => (operation.isBodyOptional ? (body ?? {}) : body);
  const needsBody = endpoint.body !== undefined && checkBody(given(undefined)).faults.length > 0;

  const queryCheck = (asked: Readonly<Record<string, unknown>>, hasKey: boolean) =>
    checkNarrower && narrower?.holds(hasKey, asked) ? checkNarrower : checkQuery;

  return (request: FastifyRequest, hasKey: boolean) => {
    const asked = request.query as Record<string, unknown>;
    const markdown = request.body instanceof MarkdownBody ? request.body.text : null;
    refuseEmpty(request, { takesMarkdown: endpoint.markdown !== undefined, needsBody });
    if (markdown !== null && !endpoint.markdown) throw unsupportedType(request);
    if (markdown?.trim() === '') throw emptyMarkdown();
    const query = (markdown === null ? queryCheck(asked, hasKey) : checkMarkdownQuery)(asked);
    const sent = markdown === null ? given(request.body) : endpoint.markdown?.fields(markdown, asked);
    const isChecked = endpoint.body !== undefined || isRecord(sent);
    const body = isChecked ? (markdown === null ? checkBody : checkMarkdown)(sent) : null;
    const warnings = [
      ...repeatedWarnings(request.repeatedNames),
      ...(body?.warnings ?? []),
      ...query.warnings,
    ];
    const ofHeaders = isWrite ? headerFaults(operation.requestHeaders ?? [], request.headers) : [];
    const faults = [...onceEach(body?.faults ?? [], query.faults), ...ofHeaders];
    throwIfFaulty({ ...query, faults, warnings });
    return { body: (endpoint.body && body?.value) as Sent<B>, query: query.value as Sent<Q>, warnings };
  };
}

/** The faults of body and query: fields of a markdown body that the query gives are checked with both. */
function onceEach(inBody: readonly FieldFault[], inQuery: readonly FieldFault[]): FieldFault[] {
  const said = new Set(inBody.map(({ field, message }) => `${field} ${message}`));
  return [...inBody, ...inQuery.filter(({ field, message }) => !said.has(`${field} ${message}`))];
}

/** Refuses a body that is empty although its type says what it holds, where that is needed. */
function refuseEmpty(
  request: FastifyRequest,
  { takesMarkdown, needsBody }: { readonly takesMarkdown: boolean; readonly needsBody: boolean },
): void {
  if (takesMarkdown && lacksBody(request, 'text/markdown')) throw emptyMarkdown();
  if (needsBody && lacksBody(request, 'application/json')) throw emptyJson();
}

/** Whether a body of this type is empty. It loses its type on the way in, so that is looked up as it was sent. */
function lacksBody({ body, raw: { rawHeaders } }: FastifyRequest, type: string): boolean {
  const at = body === undefined ? rawHeaders.findIndex((name) => /^content-type$/i.test(name)) : -1;
  return at !== -1 && rawHeaders[at + 1]?.split(';')[0]?.trim().toLowerCase() === type;
}

function emptyJson(): AppError {
  return new AppError('invalid_json', 'The body is empty, and so is not JSON.', {
    hint: 'Send a JSON object. From a shell, write it to a file and send it with --data-binary @file: is the file empty, or its name misspelt?',
  });
}

function emptyMarkdown(): AppError {
  return new AppError('invalid_input', 'The markdown body is empty.', {
    errors: [{ field: 'body', message: 'is empty' }],
    hint: 'Send the text of the post: curl --data-binary @post.md. Is the file empty, or its name misspelt?',
  });
}

/** Whether a call can be asked what it would do. */
export function hasDryRun(operation: Operation | undefined): boolean {
  return Object.hasOwn(keywordsOf(operation?.query).properties ?? {}, 'dryRun');
}
