import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server';
import type { Static, TObject, TSchema, TUnsafe } from 'typebox';
import type { Usage } from '../admission/rate-limit.ts';
import { callerOf, type Credential } from '../admission/credential.ts';
import { callsAsTools } from '../rules/call-names.ts';
import type { Context } from '../context.ts';
import type { Ticket } from '../db/write.ts';
import { AppError, catalogue } from '../errors.ts';
import { mcpKeyHint } from '../rules/agent-setup.ts';
import { publicFields } from '../http/problem.ts';
import { dryRunRefusals } from '../schemas/bodies.ts';
import { createCheck, throwIfFaulty, withWarnings, type CheckOptions } from '../schemas/validate.ts';
import { unauthorized, type Caller } from '../services/agents/callers.ts';
import type { Policy } from '../variant.ts';
import { markAsOthers } from './others-text.ts';

/** A message that was let in. */
export type McpCall = {
  readonly credential: Credential;
  readonly usage: Usage;
  /** The address that limits count the client by. */
  readonly address: string;
  /** What the call's own write is to take. */
  readonly ticket: Ticket | undefined;
  /** Why the call is over its limit; null within it. */
  readonly refusal: AppError | null;
  readonly requestId: string;
};

/** What a tool answers: the JSON that the API answers to the same call, without `success`. */
type ToolAnswer = {
  readonly body: Readonly<Record<string, unknown>>;
  readonly warnings?: readonly string[];
  /** Whether other agents wrote some of its texts. */
  readonly byOthers?: boolean;
};

type Definition<I extends TObject | TUnsafe> = {
  /** The operation of the API that this is; in snake case, the tool's name. */
  readonly operationId: string;
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolAnnotations;
  /** The limit that a call counts against, unless it is `api` or `anonymous`. */
  readonly policy?: Policy;
  /** Which calls only ask what they would do, and count against `api`: it must hold for no others. */
  readonly isDryRun?: (args: Readonly<Record<string, unknown>>) => boolean;
  readonly input: I;
  readonly check?: CheckOptions;
  /** The API's answer: what it does not name is left out. */
  readonly output: TObject;
  readonly run: (call: McpCall, input: Static<I>) => Promise<ToolAnswer>;
};

/** A tool as the service offers and runs it. */
export type Tool = {
  readonly name: string;
  /** The limit of its own that a call with these arguments counts against, if it has one. */
  readonly policyFor: (args: unknown) => Policy | null;
  /** As `tools/list` shows it. */
  readonly listed: ListedTool;
  /** Throws what the operation throws, and invalid_input for all faults of the arguments at once. */
  readonly run: (call: McpCall, args: unknown) => Promise<CallToolResult>;
};

/** Makes a tool of what is particular about it. */
export function tool<I extends TObject | TUnsafe>(definition: Definition<I>): Tool {
  const { operationId, title, description, annotations, input } = definition;
  const name = operationId.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const { policy = null, isDryRun = () => false } = definition;
  const answered = withoutNext(definition.output);
  const lacksDryRun = !annotations.readOnlyHint && !definition.isDryRun;
  const refused = { ...definition.check?.refused, ...(lacksDryRun ? dryRunRefusals : {}) };
  const check = createCheck(input, { ...definition.check, refused });
  return {
    name,
    policyFor: (args) => (typeof args === 'object' && args !== null && isDryRun({ ...args }) ? null : policy),
    listed: {
      name,
      title,
      description,
      inputSchema: plainSchema(input),
      annotations,
    },
    async run(call, args = {}) {
      const checked = check(args);
      throwIfFaulty(checked);
      const {
        body,
        warnings: more = [],
        byOthers = false,
      } = await definition.run(call, checked.value).catch((error: unknown) => {
        throw withWarnings(error, checked.warnings);
      });
      const warnings = [...checked.warnings, ...more];
      // In the text alone: structured content would send everything twice, with a schema in every list of tools.
      const text = JSON.stringify({
        success: true,
        ...(warnings.length > 0 ? { warnings: warnings.map(callsAsTools) } : {}),
        ...named(answered, body),
      });
      return { content: [{ type: 'text', text: byOthers ? markAsOthers(text) : text }] };
    },
  };
}

/** A failure as the result of a tool: what the API's problem document says. */
export function failed(error: AppError, { usage, requestId }: McpCall): CallToolResult {
  const { retryAfter } = error.extra;
  const { detail, errors, hint } = publicFields(error);
  const { status, retryable } = catalogue[error.code];
  const { policy, quota, rate } = usage;
  const problem = {
    success: false,
    code: error.code,
    status,
    detail: callsAsTools(detail),
    ...(errors ? { errors } : {}),
    hint: callsAsTools(hint),
    retryable,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(error.code === 'rate_limited'
      ? { limit: { policy, limit: quota, remaining: rate.remaining, reset: rate.reset } }
      : {}),
    requestId,
  };
  return { content: [{ type: 'text', text: JSON.stringify(problem) }], isError: true };
}

/** The caller where a key is optional: null without one. Throws suspended. */
export function optionalCaller({ credential }: McpCall): Caller | null {
  return callerOf(credential);
}

/** The caller where a key is needed. Throws unauthorized with the way to a key, suspended. */
export function requireCaller(ctx: Context, call: McpCall): Caller {
  const caller = optionalCaller(call);
  if (caller !== null) return caller;
  const isUnset = call.credential.kind === 'none' && call.credential.unset === true;
  const { message, extra } = unauthorized(
    isUnset
      ? "This tool needs an API key, and the request's Authorization header holds none after Bearer: is the variable that your MCP client's configuration names set?"
      : 'This tool needs an API key, and the request came without one.',
  );
  throw new AppError('unauthorized', message, {
    ...extra,
    hint: mcpKeyHint(ctx.config.site.baseUrl),
  });
}

/** A schema as plain JSON, without what hangs on it for our own check. */
function plainSchema(schema: TSchema): ListedTool['inputSchema'] {
  return JSON.parse(JSON.stringify(schema));
}

/** The API's answer without the next HTTP call. */
function withoutNext(answer: TObject): TSchema {
  const { next: _nextCall, ...properties } = answer.properties;
  return { ...answer, properties };
}

/** A value with the properties that its schema names and no others, as the API's serialiser writes it. */
function named(schema: TSchema, value: object): Record<string, unknown> {
  const { properties = {} }: { properties?: Record<string, TSchema> } = schema;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => Object.hasOwn(properties, name))
      .map(([name, part]) => [name, namedIn(properties[name], part)]),
  );
}

function namedIn(schema: TSchema | undefined, value: unknown): unknown {
  const { items, properties }: { items?: TSchema; properties?: unknown } = schema ?? {};
  if (Array.isArray(value)) return items ? value.map((element) => namedIn(items, element)) : value;
  return schema && properties && typeof value === 'object' && value !== null ? named(schema, value) : value;
}
