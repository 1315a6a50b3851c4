import type { TSchema } from 'typebox';
import type { Config } from '../../config/config.ts';
import type {
  CodeSample,
  Content,
  JsonSchema,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from '../../schemas/openapi.ts';
import type { Policy } from '../../variant.ts';
import type { Operation } from '../endpoint.ts';
import { byStatus, errorsOf, responseName } from './openapi-errors.ts';
import { curl, exampleOf, keyHeader, type ShellCall } from './openapi-samples.ts';

/** What is needed to describe an operation, besides itself. */
export type Surroundings = {
  readonly config: Config;
  /** The full path, with `{name}` for parameters. */
  readonly path: string;
  /** Puts a schema among the components, if it has a name, and returns the reference to it. */
  readonly refer: (schema: TSchema) => JsonSchema;
};

/** One operation as OpenAPI describes it. */
export function describeOperation(operation: Operation, around: Surroundings): OperationObject {
  const { operationId, summary, tag, auth } = operation;
  const policies = policiesOf(operation);
  const errors = errorsOf(operation);
  const description = [operation.description, limitSentence(policies, around.config)]
    .filter((text) => text !== undefined)
    .join('\n\n');
  const parameters = parametersOf(operation, around.path);
  const requestBody = requestBodyOf(operation);
  return {
    operationId,
    summary,
    ...(description === '' ? {} : { description }),
    tags: [tag],
    security: [...(auth === 'required' ? [] : [{}]), ...(auth === 'none' ? [] : [{ apiKey: [] }])],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody ? { requestBody: { required: true, content: requestBody } } : {}),
    responses: {
      ...successes(operation, policies, around),
      ...Object.fromEntries(
        Array.from(byStatus(errors), ([status, codes]): [string, Reference] => [
          String(status),
          { $ref: `#/components/responses/${responseName(codes)}` },
        ]),
      ),
    },
    'x-policies': policies,
    'x-errors': errors,
    'x-codeSamples': samplesOf(operation, around),
  };
}

/** The policies that a call may count against, by whether a key is sent. */
function policiesOf({ policy, auth }: Operation): Policy[] {
  if (policy === null) return [];
  if (policy !== undefined) return [policy];
  return auth === 'required' ? ['api'] : ['anonymous', 'api'];
}

function limitSentence(policies: readonly Policy[], { limits }: Config): string | undefined {
  const [first] = policies;
  if (first !== 'publish' && first !== 'register') return undefined;
  if (limits[first] === 0) return undefined;
  return first === 'publish'
    ? `Counts against the limit \`publish\`: ${limits.publish} calls in any hour for each key.`
    : `Counts against the limit \`register\`: ${limits.register} calls in any hour for each client address, failed ones too.`;
}

function parametersOf(
  { method, query, markdown, requestHeaders = [] }: Operation,
  path: string,
): ParameterObject[] {
  const ofPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']): ParameterObject => {
    const { description, example } = pathParameters[name] ?? { description: name, example: name };
    return {
      name,
      in: 'path',
      required: true,
      description,
      schema: { type: 'string', format: 'uuid', examples: [example] },
    };
  });
  const ofJson = queryParameters(query, '');
  const ofMarkdown = queryParameters(markdown?.query, 'With a text/markdown body only. ').filter(
    ({ name }) => !ofJson.some((known) => known.name === name),
  );
  const ofHeaders = requestHeaders.map((name): ParameterObject => ({
    name,
    in: 'header',
    required: false,
    description: headerMeaning(name, method),
    schema: {
      type: 'string',
      examples: [headerExamples[name]],
      ...(name === 'Idempotency-Key' ? { maxLength: 255 } : {}),
    },
  }));
  return [...ofPath, ...ofJson, ...ofMarkdown, ...ofHeaders];
}

const pathParameters: Readonly<Record<string, { description: string; example: string }>> = {
  id: { description: 'Id of the post.', example: '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c' },
  commentId: { description: 'Id of the comment.', example: '019c1f60-11d2-7a90-8c44-5be1d2f09a77' },
};

const headerExamples = {
  'Idempotency-Key': '0a9d0c0e-5a53-4b8e-8f57-2b1f5f0c9a10',
  'If-Match': '"3"',
  'If-None-Match': '*',
} as const;

function headerMeaning(name: keyof typeof headerExamples, method: string): string {
  if (name === 'Idempotency-Key')
    return 'Any text, new for each new call: a repeat with the same one within 24 hours gets the stored answer and adds nothing.';
  if (name === 'If-Match') return 'An ETag of the post: the call fails if the post has changed since.';
  return method === 'GET'
    ? 'An ETag of the post: the answer is 304 without a body if the post has not changed since.'
    : '`*` makes the call fail if the post exists already.';
}

function queryParameters(query: Operation['query'], prefix: string): ParameterObject[] {
  const { properties = {}, required = [] } = keywordsOf(query ?? {});
  return Object.entries(properties).map(([name, { description = '', ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    description: prefix + description,
    schema,
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
  }));
}

function requestBodyOf({ body, markdown }: Operation): Content | undefined {
  if (body === undefined) return undefined;
  const schema = keywordsOf(body);
  const examples = schema.examples ?? [exampleOf(schema)];
  return {
    'application/json': {
      schema,
      examples: Object.fromEntries(examples.map((value, n) => [`example${n + 1}`, { value }])),
    },
    ...(markdown
      ? {
          'text/markdown': {
            schema: {
              type: 'string',
              description: 'Markdown, with any other fields as front matter.',
            },
            examples: { example1: { value: exampleMarkdown } },
          },
        }
      : {}),
  };
}

const exampleMarkdown = `---
title: On the Analytical Engine
status: published
tags: [history, computing]
---

The engine *weaves algebraic patterns*.
`;

function successes(
  operation: Operation,
  policies: readonly Policy[],
  { refer, config }: Surroundings,
): Record<string, ResponseObject> {
  const { method, answers, examples = {}, requestHeaders = [], answerHeaders = [] } = operation;
  const rate = policies.some((policy) => config.limits[policy] > 0) ? rateHeaders : [];
  const hasPages =
    operation.query !== undefined && Object.hasOwn(keywordsOf(operation.query).properties ?? {}, 'cursor');
  const replays = requestHeaders.includes('Idempotency-Key') ? ['Idempotent-Replayed'] : [];
  const responses = Object.entries(answers).map(([status, schema]): [string, ResponseObject] => {
    const own = answerHeaders.filter((name) => name !== 'Location' || status === '201');
    const names = ['X-Request-Id', ...own, ...(hasPages ? ['Link'] : []), ...replays, ...rate];
    const whole = keywordsOf(schema);
    const value = { ...asRecord(exampleOf(whole)), ...examples[Number(status)] };
    return [
      status,
      {
        description: meanings[status] ?? 'Done.',
        headers: headerReferences(names),
        content: whole.contentMediaType
          ? { [whole.contentMediaType]: { schema: whole, examples: {} } }
          : { 'application/json': { schema: refer(schema), examples: { example1: { value } } } },
      },
    ];
  });
  const isConditional = method === 'GET' && requestHeaders.includes('If-None-Match');
  return {
    ...Object.fromEntries(responses),
    ...(isConditional
      ? {
          304: {
            description: 'Unchanged since the ETag in If-None-Match.',
            headers: headerReferences(['X-Request-Id', ...answerHeaders, ...rate]),
          },
        }
      : {}),
  };
}

const meanings: Readonly<Record<string, string>> = { 200: 'Done.', 201: 'Created.', 503: 'Not ready.' };

const rateHeaders = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];

function headerReferences(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** A schema as its JSON Schema keywords, which TypeBox's types leave out. */
export function keywordsOf(schema: TSchema): JsonSchema {
  return schema;
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** The call for a shell: with and without a key where both make sense, as JSON and as markdown. */
function samplesOf(operation: Operation, { config, path }: Surroundings): CodeSample[] {
  const { method, auth, body, query, markdown, answers } = operation;
  const { properties = {}, required = [] } = keywordsOf(query ?? {});
  const search = required
    .map(
      (name) =>
        `${name}=${shellVariables[name] ?? encodeURIComponent(String(exampleOf(properties[name] ?? {})))}`,
    )
    .join('&');
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => shellVariables[name] ?? name);
  const url = config.site.baseUrl + filled + (search === '' ? '' : `?${search}`);
  const download = keywordsOf(answers[200] ?? {}).contentMediaType !== undefined;
  const json = body === undefined ? {} : { json: exampleBody(keywordsOf(body)) };
  const call: ShellCall = { method, url, download, ...json };
  const withKey = { ...call, headers: [keyHeader] };
  if (markdown)
    return [
      sample('JSON', withKey),
      sample('Markdown file', { ...withKey, json: undefined, file: 'post.md' }),
    ];
  if (auth === 'optional') return [sample('Without a key', call), sample('With the key', withKey)];
  return [sample('curl', auth === 'required' ? withKey : call)];
}

const shellVariables: Readonly<Record<string, string>> = {
  token: '$TOKEN',
  id: '$POST_ID',
  commentId: '$COMMENT_ID',
};

function exampleBody(body: JsonSchema): unknown {
  const example = asRecord(exampleOf(body));
  return 'token' in example ? { ...example, token: '$TOKEN' } : example;
}

function sample(label: string, call: ShellCall): CodeSample {
  return { lang: 'Shell', label, source: curl(call) };
}
