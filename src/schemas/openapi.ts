import type { OpenAPIV3_1 as Standard } from 'openapi-types';
import type { TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import type { Policy, subjectOf } from '../variant.ts';

// The standard's types, with what our document always has as required, and its extensions.

/** A description of the running service in OpenAPI 3.1.1. */
export type OpenApiDocument = {
  openapi: '3.1.1';
  info: Standard.InfoObject & { description: string };
  servers: Standard.ServerObject[];
  tags: Required<Pick<Standard.TagObject, 'name' | 'description'>>[];
  /** By path, then by method in lower case. */
  paths: Record<string, Record<string, OperationObject>>;
  components: Components;
  /** The limits of this instance; a policy that is not here has none. */
  'x-limits': RateLimit[];
};

/** A limit in any window of `window` seconds, counted by `key` or by client `address`. */
export type RateLimit = {
  policy: Policy;
  limit: number;
  window: number;
  countedBy: (typeof subjectOf)[Policy];
};

export type Components = {
  schemas: Record<string, JsonSchema>;
  responses: Record<string, ResponseObject>;
  headers: Record<string, { description: string; schema: JsonSchema }>;
  /** A failure of each code, by code. */
  examples: Record<string, Standard.ExampleObject>;
  securitySchemes: Record<string, Standard.SecuritySchemeObject>;
};

export type OperationObject = Required<Pick<Standard.OperationObject, 'operationId' | 'summary' | 'tags'>> & {
  description?: string;
  /** As for a field: see {@link JsonSchema}. */
  deprecated?: JsonSchema['deprecated'];
  'x-deprecation'?: Deprecation;
  /** An empty object stands for "without a key". */
  security: Standard.SecurityRequirementObject[];
  parameters?: ParameterObject[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, ResponseObject | Reference>;
  /** The policies that the call may count against. */
  'x-policies': Policy[];
  /** Every code that the call may fail with. */
  'x-errors': ErrorCode[];
  /** The call as it is pasted into a shell. */
  'x-codeSamples': { lang: 'Shell'; label: string; source: string }[];
};

export type ParameterObject = Pick<Standard.ParameterObject, 'name' | 'style' | 'explode'> & {
  in: 'path' | 'query' | 'header';
  required: boolean;
  description: string;
  deprecated?: JsonSchema['deprecated'];
  'x-deprecation'?: Deprecation;
  schema: JsonSchema;
};

export type ResponseObject = { description: string; headers?: Record<string, Reference>; content?: Content };

/** By media type. */
export type Content = Record<
  string,
  { schema: JsonSchema; examples: Record<string, Standard.ExampleObject | Reference> }
>;

export type Reference = Pick<Standard.ReferenceObject, '$ref'>;

/** JSON Schema as one type: the standard's distinguishes lists, and references, from the rest. */
export type JsonSchema = Partial<Reference> &
  Omit<Standard.BaseSchemaObject, 'properties' | 'allOf' | 'deprecated'> & {
    type?: string | string[];
    properties?: Record<string, JsonSchema>;
    allOf?: JsonSchema[];
    items?: JsonSchema;
    /** More values may come at any time. */
    'x-open'?: boolean;
    /** What a number counts, for messages: `seconds`. */
    'x-unit'?: string;
    /** As it is declared; in the document it is true, and `x-deprecation` has the rest. */
    deprecated?: boolean | Deprecation;
    'x-deprecation'?: Deprecation;
  };

/** A schema as its JSON Schema keywords, which TypeBox's types leave out. */
export function keywordsOf(schema: TSchema = {}): JsonSchema {
  return schema;
}

/** When an operation or a field ends: `deprecated` of it. Headers, OpenAPI and /docs/changes say it by this alone. */
export type Deprecation = {
  /** Days: `2026-12-01`. The policy wants six months between them. */
  readonly since: string;
  readonly sunset: string;
  /** Lower case and hyphens: the heading of its section of /docs/changes. */
  readonly id: string;
};

/** Root-relative. */
export function deprecationPath({ id }: Deprecation): string {
  return `/docs/changes#h-${id}`;
}

type Described = { readonly description?: string; readonly deprecated: Deprecation };

/** A reviver for the OpenAPI document, which knows whether something is deprecated, not since when. */
export function asOpenApi(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('deprecated' in value)) return value;
  if (typeof value.deprecated !== 'object') return value;
  const { description, deprecated, ...rest } = value as Described;
  const { since, sunset } = deprecated;
  const sentence = `Deprecated since ${since}, ends on ${sunset}: ${deprecationPath(deprecated)}.`;
  const text = [description, sentence].filter(Boolean).join(' ');
  return { ...rest, description: text, deprecated: true, 'x-deprecation': deprecated };
}
