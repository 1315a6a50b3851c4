import Schema from 'typebox/schema';
import type {
  Content,
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from '../../src/schemas/openapi.ts';

/** An operation of the document, with where it is. */
export type Placed = { readonly method: string; readonly path: string; readonly operation: OperationObject };

/** The document of a running instance. */
export async function documentOf(instance: {
  call(method: string, path: string): Promise<{ readonly text: string }>;
}): Promise<OpenApiDocument> {
  return JSON.parse((await instance.call('GET', '/api/openapi.json')).text);
}

const documents = new Map<string, OpenApiDocument>();

/**
 * The document in a text. One that differs from an earlier one by its port alone is taken for that, whose schemas are
 * compiled already.
 */
export function readDocument(text: string): OpenApiDocument {
  const content = text.replaceAll(/localhost:\d+/g, 'localhost');
  const document = documents.get(content) ?? (JSON.parse(text) as OpenApiDocument);
  documents.set(content, document);
  return document;
}

/** All operations of the document. */
export function operationsOf({ paths }: OpenApiDocument): Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

/** The operation that a call is for; null if the document has none. */
export function operationAt(document: OpenApiDocument, method: string, pathname: string): Placed | null {
  let ordered = searched.get(document);
  if (ordered === undefined) {
    ordered = operationsOf(document)
      // OpenAPI: what is concrete goes before what has parameters.
      .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)
      .map((placed) => ({ placed, pattern: new RegExp(`^${placed.path.replace(/\{\w+\}/g, '[^/]+')}$`) }));
    searched.set(document, ordered);
  }
  const found = ordered.find(({ placed, pattern }) => placed.method === method && pattern.test(pathname));
  return found?.placed ?? null;
}

const searched = new WeakMap<OpenApiDocument, { readonly placed: Placed; readonly pattern: RegExp }[]>();

/** The names of parameters in a place. */
export function parametersOf(parameters: readonly ParameterObject[] | undefined, place: string): string[] {
  return (parameters ?? []).filter((parameter) => parameter.in === place).map(({ name }) => name);
}

/** The schema of an operation's JSON body, if it takes one. */
export function bodySchemaOf({ operation }: Placed): JsonSchema | undefined {
  return operation.requestBody?.content['application/json']?.schema;
}

/** A JSON answer, as it came. */
export type ReceivedAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
};

/** What about an answer is not as the document says: its status, its headers, its body, and fields beyond it. */
export function answerFaults(
  document: OpenApiDocument,
  call: { readonly method: string; readonly path: string },
  answer: ReceivedAnswer,
): string[] {
  const placed = operationAt(document, call.method, new URL(call.path, 'http://x').pathname);
  if (placed === null) return [`${call.method} ${call.path} is not in the document`];
  const listed = placed.operation.responses[String(answer.status)];
  if (listed === undefined) return [`the status ${answer.status} is not in the document: ${answer.text}`];
  const response = followed(document, listed);
  return [
    ...headerFaults(response, answer),
    ...cacheFaults(placed, answer),
    ...(response.content === undefined ? [] : bodyFaults(document, response.content, answer)),
  ];
}

/** What lets a cache give an answer to somebody else, or keep what it must not. */
function cacheFaults({ method, operation }: Placed, { status, headers, text }: ReceivedAnswer): string[] {
  const [caching, vary] = [String(headers['cache-control']), String(headers['vary'])];
  const schemes = operation.security.map((scheme) => Object.keys(scheme).length > 0);
  const isOptional = schemes.includes(true) && schemes.includes(false);
  // Where nothing says that an answer is still good, it is asked for again.
  const isTagged = method === 'GET' && headers['etag'] !== undefined;
  return [
    // The document itself shows what a key looks like.
    ...(text.includes('"apiKey":"') && operation.operationId !== 'openapi' && caching !== 'no-store'
      ? [`a key is sent with ${caching}`]
      : []),
    ...(status >= 400 && caching !== 'no-store' ? [`a failure is sent with ${caching}`] : []),
    ...(isOptional && isTagged && !vary.includes('Authorization') ? [`varies by ${vary} alone`] : []),
    ...(/no-store|no-cache|max-age/.test(caching) ? [] : [`says nothing of caches: ${caching}`]),
  ];
}

function followed(document: OpenApiDocument, response: ResponseObject | Reference): ResponseObject {
  if (!('$ref' in response)) return response;
  const shared = document.components.responses[nameOf(response.$ref)];
  if (shared === undefined) throw new Error(`nothing is at ${response.$ref}`);
  return shared;
}

/** Headers that are there only at times. */
const occasional = new Set(['Location', 'Link', 'Idempotent-Replayed', 'ETag']);

function headerFaults({ headers = {} }: ResponseObject, answer: ReceivedAnswer): string[] {
  return Object.keys(headers)
    .filter((name) => !occasional.has(name) && answer.headers[name.toLowerCase()] === undefined)
    .map((name) => `the header ${name} is missing`);
}

function bodyFaults(document: OpenApiDocument, content: Content, answer: ReceivedAnswer): string[] {
  const type = String(answer.headers['content-type']).split(';')[0] ?? '';
  const media = content[type];
  if (media === undefined) return [`the type ${type} is not in the document`];
  if (!type.endsWith('json')) return [];
  const { schema, check } = compiled(document, media.schema);
  const body: unknown = JSON.parse(answer.text);
  const [, errors] = check.Errors(body);
  return [
    ...errors.map(({ instancePath, message }) => `${instancePath} ${message}`),
    ...undescribed(schema, body, ''),
  ];
}

type Compiled = { readonly schema: JsonSchema; readonly check: ReturnType<typeof Schema.Compile> };

const known = new WeakMap<JsonSchema, Compiled>();

function compiled(document: OpenApiDocument, schema: JsonSchema): Compiled {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const whole = inlined(document, schema);
  const made = { schema: whole, check: Schema.Compile(whole) };
  known.set(schema, made);
  return made;
}

/** Fields that a schema, unless it is open, says nothing of. */
function undescribed(schema: JsonSchema, value: unknown, at: string): string[] {
  if (Array.isArray(value))
    return value.flatMap((item, n) => undescribed(schema.items ?? {}, item, `${at}/${n}`));
  const properties = propertiesOf(schema);
  if (typeof value !== 'object' || value === null || properties === null) return [];
  if (schema.additionalProperties === true) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const property = properties[name];
    return property === undefined
      ? [`${at}/${name} is not described`]
      : undescribed(property, inner, `${at}/${name}`);
  });
}

function propertiesOf({ properties, allOf = [] }: JsonSchema): Record<string, JsonSchema> | null {
  const all = [...allOf.map((part) => propertiesOf(part)), properties ?? null].filter(
    (part) => part !== null,
  );
  return all.length === 0 ? null : Object.assign({}, ...all.toReversed());
}

/** A schema with what it refers to in its place. */
export function inlined(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_key, value: unknown) =>
    isReference(value) ? inlined(document, document.components.schemas[nameOf(value.$ref)] ?? {}) : value,
  );
}

function isReference(value: unknown): value is Reference {
  return typeof value === 'object' && value !== null && '$ref' in value && typeof value.$ref === 'string';
}

function nameOf(ref: string): string {
  return ref.split('/').at(-1) ?? '';
}
