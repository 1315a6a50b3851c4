import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Auth } from '../admission/admission.ts';
import { AppError, type FieldFault } from '../errors.ts';
import { MarkdownBody, unsupportedType } from '../http/request-body.ts';
import { operations } from '../rules/calls.ts';
import { isRecord } from '../rules/records.ts';
import { dryRunInBody, dryRunRefusals, dryRunSpellings } from '../schemas/posts.ts';
import { createCheck, repeatedWarnings, throwIfFaulty } from '../schemas/validate.ts';
import { asksForDryRun, hasDryRun } from './dry-runs.ts';
import type { Endpoint, Input, Operation, Sent } from './endpoint.ts';
import { headerFaults } from './request-headers.ts';

/** Checks body and query of a call together, so that all faults of both are named at once. */
export function createInputCheck<A extends Auth, B extends Input | undefined, Q extends Input | undefined>(
  endpoint: Endpoint<A, B, Q>,
) {
  const operation: Operation = endpoint;
  const isWrite = endpoint.head !== undefined || operations[operation.operationId].method !== 'GET';
  const { json, markdown: ofMarkdown } = checksOf(endpoint, isWrite);
  const bodyOf = (body: unknown) => (operation.isBodyOptional ? (body ?? {}) : body);
  const needsBody = endpoint.body !== undefined && json.body(bodyOf(undefined)).faults.length > 0;
  const takesMarkdown = ofMarkdown !== null;
  const mayBeDry = hasDryRun(operation);

  return (request: FastifyRequest, hasKey: boolean) => {
    const asked = request.query as Record<string, unknown>;
    const markdown = request.body instanceof MarkdownBody ? request.body.text : null;
    refuseEmpty(request, { takesMarkdown, needsBody });
    if (markdown !== null && !ofMarkdown) throw unsupportedType(request);
    if (markdown?.trim() === '') throw emptyMarkdown();
    const [sent, checks] =
      markdown === null || !ofMarkdown
        ? [bodyOf(request.body), json]
        : [ofMarkdown.fields(markdown, asked), ofMarkdown];
    if (mayBeDry) request.isDryRun = asksForDryRun(asked, sent);
    const query = checks.query(asked, hasKey)(asked, isRecord(sent) ? sent : {});
    const body = endpoint.body !== undefined || isRecord(sent) ? checks.body(sent) : null;
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

/** The checks of calls with a JSON body or none, and of those with a markdown body. */
function checksOf<A extends Auth, B extends Input | undefined, Q extends Input | undefined>(
  { body, query, narrower, markdown, check }: Endpoint<A, B, Q>,
  isWrite: boolean,
) {
  const nothing = Type.Object({});
  const { together = () => [], refusedBesideJson, ...given } = check ?? {};
  const mayBeDry = hasDryRun({ query });
  const spellings = { ...given.spellings, ...(mayBeDry ? dryRunSpellings : {}) };
  const refused = { ...given.refused, ...(isWrite && !mayBeDry ? dryRunRefusals : {}) };
  const inTexts = { ...given, spellings, refused, coerce: true };
  const ofBody = {
    spellings,
    refused: { ...refused, ...(mayBeDry && !body ? dryRunInBody : {}) },
    // Where no body is defined, what is sent all the same is ignored, and its fields are named in warnings.
    ...(isWrite && body ? { refuseUnknown: 'alone' as const } : {}),
  };
  const besideJson = { ...inTexts, refused: { ...refused, ...refusedBesideJson } };
  const checkQuery = createCheck(query ?? nothing, besideJson);
  const checkNarrower = narrower && createCheck(narrower.query ?? nothing, besideJson);
  const json = {
    body: createCheck(body ?? nothing, { ...given, ...ofBody, together }),
    query: (asked: Readonly<Record<string, unknown>>, hasKey: boolean) =>
      checkNarrower && narrower?.holds(hasKey, asked) ? checkNarrower : checkQuery,
  };
  if (!markdown) return { json, markdown: null };
  const checkMarkdownQuery = createCheck(markdown.query ?? nothing, inTexts);
  const { fields } = markdown;
  const checkFields = { ...inTexts, ...ofBody, together: markdown.together, names: 'field' } as const;
  return {
    json,
    markdown: { body: createCheck(body ?? nothing, checkFields), query: () => checkMarkdownQuery, fields },
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
