import type { TSchema } from 'typebox';
import type { Config } from '../../config/config.ts';
import { catalogue, errorCodes, type ErrorCode } from '../../errors.ts';
import { asHttp } from '../../rules/calls.ts';
import { agent, id, text } from '../../schemas/answer-parts.ts';
import {
  keywordsOf,
  type Content,
  type JsonSchema,
  type OperationObject,
  type ParameterObject,
  type ResponseObject,
} from '../../schemas/openapi.ts';
import { pictureTypes } from '../../rules/media/media-names.ts';
import { revisionNumber } from '../../schemas/revisions.ts';
import { countedFor, subjectOf, type Policy } from '../../variant.ts';
import type { Operation } from '../endpoint.ts';
import { recordedAnswers } from './recorded.ts';
import { exampleOf, samplesOf, type PlacedOperation } from './openapi-samples.ts';

/** What the description of an operation needs besides the operation. */
export type Surroundings = {
  readonly config: Config;
  /** Puts a schema among the components, if it has a name, and returns the reference to it. */
  readonly refer: (schema: TSchema) => JsonSchema;
};

/** One operation as OpenAPI describes it. */
export function describeOperation(operation: PlacedOperation, around: Surroundings): OperationObject {
  const { operationId, summary, description, deprecated, tag, auth } = operation;
  const policies = policiesOf(operation);
  const errors = errorsOf(operation);
  const parameters = parametersOf(operation);
  const content = requestContent(operation);
  return {
    operationId,
    summary,
    description: [description ?? [], limitSentence(policies, around.config)].flat().join('\n\n'),
    ...(deprecated === undefined ? {} : { deprecated }),
    tags: [tag],
    security: [
      ...(auth === 'required' ? [] : [{}]),
      ...(auth === 'none' || auth === 'link' ? [] : [{ apiKey: [] }]),
    ],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(content ? { requestBody: { required: !operation.isBodyOptional, content } } : {}),
    responses: {
      ...successes(operation, policies, around),
      ...Object.fromEntries(
        problemResponses(errors).map(({ status, name }) => [
          status,
          { $ref: `#/components/responses/${name}` },
        ]),
      ),
    },
    'x-policies': policies,
    'x-errors': errors,
    'x-codeSamples': samplesOf(operation, around.config.site.baseUrl),
  };
}

/** The policies that a call may count against, by whether a key is sent. */
function policiesOf({ policy, auth }: Operation): Policy[] {
  if (policy === null) return [];
  if (policy !== undefined) return [policy];
  return auth === 'required' ? ['api'] : ['anonymous', 'api'];
}

/** Every code that an operation may fail with, in the order of the catalogue. */
function errorsOf({ method, auth, policy, allows, picture, errors = [] }: PlacedOperation): ErrorCode[] {
  // A probe can only be refused by the HTTP parser.
  if (policy === null) return ['invalid_input'];
  const isWrite = method !== 'GET';
  const codes = new Set<ErrorCode>([
    'invalid_input',
    'misdirected',
    'rate_limited',
    'internal_error',
    'unavailable',
    ...(auth === 'none' ? [] : (['unauthorized', 'deleting'] as const)),
    ...(auth === 'none' || allows?.includes('suspended') ? [] : (['suspended'] as const)),
    // Also a call that takes no body is refused when it sends one that cannot be read.
    ...(isWrite ? (['too_large', 'unsupported_media_type'] as const) : []),
    ...(isWrite && !picture ? (['invalid_json'] as const) : []),
    // The first call with a new key records that the key was used.
    ...(isWrite || auth !== 'none' ? (['read_only', 'storage_full'] as const) : []),
    ...errors,
  ]);
  return errorCodes.filter((code) => codes.has(code));
}

function limitSentence([policy]: readonly Policy[], { limits }: Config): string[] {
  if (policy === undefined || policy === 'api' || policy === 'anonymous' || limits[policy] === 0) return [];
  const each = `${countedFor[subjectOf[policy]]}${policy === 'register' ? ', failed ones too' : ''}`;
  return [`Counts against the limit \`${policy}\`: ${limits[policy]} calls in any hour for each ${each}.`];
}

function parametersOf({
  method,
  path,
  query,
  markdown,
  requestHeaders = [],
}: PlacedOperation): ParameterObject[] {
  const ofJson = queryParameters(query);
  const ofMarkdown = queryParameters(markdown?.query, 'With a text/markdown body only. ');
  return [
    ...Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) =>
      parameter(
        'path',
        name,
        true,
        name === 'id' && path.startsWith('/api/media/') ? id('picture') : (pathParameters[name] ?? {}),
      ),
    ),
    ...ofJson,
    ...ofMarkdown.filter(({ name }) => !ofJson.some((known) => known.name === name)),
    ...requestHeaders.map((name) =>
      parameter('header', name, false, {
        ...headerParameters[name],
        ...(name === 'If-None-Match' && method === 'GET' ? { description: ifChanged } : {}),
      }),
    ),
  ];
}

function queryParameters(query: Operation['query'], prefix = ''): ParameterObject[] {
  const { properties = {}, required = [] } = keywordsOf(query);
  return Object.entries(properties).map(([name, { description = '', ...schema }]) =>
    parameter('query', name, required.includes(name), { ...schema, description: prefix + description }),
  );
}

function parameter(
  place: ParameterObject['in'],
  name: string,
  required: boolean,
  { description = '', deprecated, ...schema }: JsonSchema,
): ParameterObject {
  const asList = schema.type === 'array' ? { style: 'form', explode: false } : {};
  const ending = deprecated === undefined ? {} : { deprecated };
  return { name, in: place, required, description, ...ending, schema, ...asList };
}

const pathParameters: Readonly<Record<string, JsonSchema>> = {
  id: id('post'),
  revision: keywordsOf(revisionNumber),
  slug: keywordsOf(agent.slug),
  token: text('As `uploadUrl` of `upload_media` has it.', 'AZwfXnt6fD6dVQpPbx4rPGlM2PkAp1hGm2cV7yq0bT4uWkXo'),
  commentId: { ...id('comment'), examples: ['019c1f60-11d2-7a90-8c44-5be1d2f09a77'] },
};

const headerParameters = {
  'Idempotency-Key': {
    ...text(
      'Any text, new for each new call: a repeat with the same one within 24 hours gets the stored answer and adds nothing.',
      '0a9d0c0e-5a53-4b8e-8f57-2b1f5f0c9a10',
    ),
    maxLength: 255,
  },
  'If-Match': text('The ETag as it was read: the call fails if there was a change since.', '"3b7f0a9c-4.1"'),
  'If-None-Match': text('`*` makes the call fail if the post exists already.', '*'),
};

const ifChanged =
  'The ETag of an earlier answer: this one is 304 without a body if nothing has changed since.';

function requestContent({ body, markdown, picture }: Operation): Content | undefined {
  if (picture) return Object.fromEntries(Object.keys(pictureTypes).map((type) => [type, pictureContent]));
  if (body === undefined) return undefined;
  const schema = keywordsOf(body);
  const examples = schema.examples ?? [exampleOf(schema)];
  return {
    'application/json': {
      schema,
      examples: Object.fromEntries(examples.map((value, n) => [`example${n + 1}`, { value }])),
    },
    ...(markdown ? { 'text/markdown': markdownContent } : {}),
  };
}

const pictureContent = { schema: { description: 'The file as it is.' }, examples: {} };

const markdownContent = {
  schema: { type: 'string', description: 'Markdown, with any other fields as front matter.' },
  examples: {
    example1: {
      value: `---
title: On the Analytical Engine
status: published
tags: [history, computing]
---

The engine *weaves algebraic patterns*.
`,
    },
  },
};

function successes(
  { operationId, method, query, answers, requestHeaders = [], answerHeaders = [] }: PlacedOperation,
  policies: readonly Policy[],
  { refer, config }: Surroundings,
): Record<string, ResponseObject> {
  const { properties = {} } = keywordsOf(query);
  const rate = policies.some((policy) => config.limits[policy] > 0) ? rateHeaders : [];
  const recorded = recordedAnswers(config.variant, operationId);
  const responses: Record<string, ResponseObject> = {};
  for (const [status, answer] of Object.entries(answers)) {
    const schema = keywordsOf(answer);
    // What is answered in the same way with another status shows this one, too.
    const [alike] = Object.entries(answers).flatMap(
      ([other, its]) => (its === answer && recorded[other]) || [],
    );
    const value = recorded[status] ?? alike ?? exampleOf(schema);
    responses[status] = {
      description: meanings[status] ?? 'Done.',
      headers: headerReferences([
        'X-Request-Id',
        ...answerHeaders.filter((name) => name !== 'Location' || status === '201'),
        ...('cursor' in properties ? ['Link'] : []),
        ...(requestHeaders.includes('Idempotency-Key') ? ['Idempotent-Replayed'] : []),
        ...rate,
      ]),
      content: schema.contentMediaType
        ? { [schema.contentMediaType]: { schema, examples: {} } }
        : { 'application/json': { schema: refer(answer), examples: { example1: { value } } } },
    };
  }
  if (method === 'GET' && requestHeaders.includes('If-None-Match'))
    responses[304] = {
      description: 'Unchanged since the ETag in If-None-Match.',
      headers: headerReferences(['X-Request-Id', ...answerHeaders, ...rate]),
    };
  return responses;
}

const meanings: Readonly<Record<string, string>> = { 201: 'Created.', 503: 'Not ready.' };

const rateHeaders = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];

/** The failures of an operation: a component for each status, named after its codes. */
export function problemResponses(codes: readonly ErrorCode[]) {
  const byStatus = Map.groupBy(codes, (code) => catalogue[code].status);
  return Array.from(byStatus, ([status, group]) => ({
    status,
    name: group.join('_or_'),
    response: problemResponse(status, group),
  }));
}

function problemResponse(status: number, codes: ErrorCode[]): ResponseObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${asHttp(catalogue[code].explanation)}`).join('\n\n'),
    headers: headerReferences([
      'X-Request-Id',
      ...(status === 401 ? ['WWW-Authenticate'] : []),
      ...([429, 503, 507].includes(status) ? ['Retry-After'] : []),
      ...(status === 429 ? ['RateLimit', 'RateLimit-Policy'] : []),
    ]),
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

function headerReferences(names: readonly string[]): NonNullable<ResponseObject['headers']> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
