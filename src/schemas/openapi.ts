import type { ErrorCode } from '../errors.ts';
import type { Policy } from '../variant.ts';

/** A description of the running service in OpenAPI 3.1.1, as far as ours goes. */
export type OpenApiDocument = {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
    readonly contact: { readonly name: string; readonly url: string };
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** By path, then by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: Components;
  /** The limits of this instance; a policy that is not here has none. */
  readonly 'x-limits': readonly RateLimit[];
};

/** A limit in any window of `window` seconds, counted by `key` or by client `address`. */
export type RateLimit = {
  readonly policy: Policy;
  readonly limit: number;
  readonly window: number;
  readonly countedBy: 'key' | 'address';
};

export type Components = {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly responses: Readonly<Record<string, ResponseObject>>;
  readonly headers: Readonly<Record<string, HeaderObject>>;
  /** A failure of each code, by code. */
  readonly examples: Readonly<Record<string, ExampleObject>>;
  readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

export type OperationObject = {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  /** An empty object stands for "without a key". */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>;
  /** The policies that the call may count against. */
  readonly 'x-policies': readonly Policy[];
  /** Every code that the call may fail with. */
  readonly 'x-errors': readonly ErrorCode[];
  /** The call as it is pasted into a shell. */
  readonly 'x-codeSamples': readonly CodeSample[];
};

export type CodeSample = { readonly lang: 'Shell'; readonly label: string; readonly source: string };

export type ParameterObject = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly style?: 'form';
  readonly explode?: boolean;
};

export type ResponseObject = {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Content;
};

type HeaderObject = { readonly description: string; readonly schema: JsonSchema };

/** By media type. */
export type Content = Readonly<
  Record<
    string,
    {
      readonly schema: JsonSchema;
      readonly examples: Readonly<Record<string, ExampleObject | Reference>>;
    }
  >
>;

export type ExampleObject = { readonly summary?: string; readonly value: unknown };

export type Reference = { readonly $ref: string };

/** The part of JSON Schema that our schemas are written in. */
export type JsonSchema = {
  readonly $ref?: string;
  readonly allOf?: readonly JsonSchema[];
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly contentMediaType?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
};
