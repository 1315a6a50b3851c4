import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server';
import { Type, type Static, type TObject, type TUnsafe } from 'typebox';
import { callerOf, type Auth, type CallerOf, type Credential, type Usage } from '../admission/admission.ts';
import { publicly, type Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { mcpConfiguration } from '../rules/agent-setup.ts';
import { asTools, operations, type OperationId } from '../rules/calls.ts';
import { isRecord } from '../rules/records.ts';
import { dryRunRefusals, dryRunSpellings, sentDryRun } from '../schemas/posts.ts';
import {
  createCheck,
  repeatedWarnings,
  throwIfFaulty,
  withWarnings,
  type CheckOptions,
} from '../schemas/validate.ts';
import { keywordsOf, type JsonSchema } from '../schemas/openapi.ts';
import { unauthorized, type Caller, type Hidden } from '../services/agents/callers.ts';
import { whichPost } from '../services/posts/which-post.ts';
import type { Policy } from '../variant.ts';
import { postSpellings } from './inputs.ts';
import { outputSchemaOf, pickerOf, succeeded, type ToolAnswer } from './result.ts';

/** A message that was let in. */
export type McpCall = {
  readonly credential: Credential;
  readonly usage: Usage;
  /** The address that limits count the client by. */
  readonly address: string;
  /** The wider network around it. */
  readonly network: string;
  /** The address itself, which is looked at and not stored. */
  readonly client: string;
  readonly requestId: string;
  /** Names that one object of the message has twice: only the last counts. */
  readonly repeatedNames: readonly string[];
  /** Whether answers come as structured content, for programs. */
  readonly structured: boolean;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
};

type Definition<A extends Auth, I extends TObject | TUnsafe> = {
  /** The operation of the API that this is. */
  readonly operationId: {
    [Id in OperationId]: (typeof operations)[Id] extends { tool: string } ? Id : never;
  }[OperationId];
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly auth: A;
  /** Also for an agent whose deletion is under way, or that is suspended. */
  readonly allows?: readonly Hidden[];
  /** The limit that a call counts against, unless it is `api` or `anonymous`. */
  readonly policy?: Policy;
  readonly input?: I;
  readonly check?: CheckOptions;
  /** Arguments that the tool `publish`, or their name, explains. */
  readonly explained?: readonly string[];
  /** The API's answer: what it does not name is left out. */
  readonly output: TObject;
  readonly run: (call: McpCall & { readonly caller: CallerOf<A> }, input: Static<I>) => Promise<ToolAnswer>;
};

/** A tool as the service offers and runs it. */
export type Tool = {
  /** The limit of its own that a call with these arguments counts against, if it has one. */
  readonly policyFor: (args: unknown) => Policy | null;
  /** Whether a call with these arguments may store something. */
  readonly stores: (args: unknown) => boolean;
  /** As `tools/list` shows it. */
  readonly listed: ListedTool;
  /** What it answers, as a program is told. */
  readonly outputSchema: NonNullable<ListedTool['outputSchema']>;
  /** Throws what the operation throws, and invalid_input for all faults of the arguments at once. */
  readonly run: (call: McpCall, args: unknown) => Promise<CallToolResult>;
};

/** Makes a tool of what is particular about it. */
export function tool<A extends Auth, I extends TObject | TUnsafe = TObject>(
  ctx: Context,
  definition: Definition<A, I>,
): Tool {
  const { title, description, annotations, auth, policy = null } = definition;
  const input: TObject | TUnsafe = definition.input ?? Type.Object({});
  const { refused = {} } = definition.check ?? {};
  const known = keywordsOf(input).properties ?? {};
  const namesPost = Object.hasOwn(known, 'post');
  const spellings = {
    ...(namesPost
      ? Object.fromEntries(Object.entries(postSpellings).filter(([name]) => !Object.hasOwn(known, name)))
      : {}),
    ...definition.check?.spellings,
    ...dryRunSpellings,
  };
  const clearable = clearableIn(input);
  const hasDryRun = Object.hasOwn(known, 'dryRun');
  const refusals = annotations.readOnlyHint || hasDryRun ? refused : { ...refused, ...dryRunRefusals };
  const check = createCheck(input, {
    ...definition.check,
    spellings,
    refused: refusals,
    // A model that reads of success takes what it asked for as done.
    ...(annotations.readOnlyHint ? {} : { refuseUnknown: 'always' }),
    spell: asTools,
  });
  const pick = pickerOf(definition.output);
  // It must hold for no call that would publish.
  const isDryRun = (args: unknown) => hasDryRun && sentDryRun(args) === true;
  return {
    policyFor: (args) => (isDryRun(args) ? null : policy),
    stores: (args) => !annotations.readOnlyHint && !isDryRun(args),
    listed: {
      name: operations[definition.operationId].tool,
      title,
      description,
      inputSchema: listedInput(input, definition.explained),
      annotations,
    },
    outputSchema: outputSchemaOf(definition.output),
    async run(call, args = {}) {
      const caller = (
        auth === 'none'
          ? null
          : auth === 'optional'
            ? callerOf(call.credential)
            : requireCaller(ctx, call, definition.allows)
      ) as CallerOf<A>;
      const checked = check(cleared(args, clearable));
      const inputWarnings = [...repeatedWarnings(call.repeatedNames), ...checked.warnings];
      throwIfFaulty({ ...checked, warnings: inputWarnings });
      const value = checked.value as Readonly<Record<string, unknown>>;
      const run = async () => {
        const named = namesPost
          ? { post: await idOfPost(ctx, String(value['post']), callerOf(call.credential)) }
          : {};
        return definition.run({ ...call, caller }, { ...value, ...named } as Static<I>);
      };
      const answer = await run().catch((error: unknown) => {
        throw withWarnings(error, inputWarnings);
      });
      const warnings = [...inputWarnings, ...(answer.warnings ?? [])];
      return succeeded(call, pick, { ...answer, warnings });
    },
  };
}

async function idOfPost(ctx: Context, named: string, caller: Caller | null): Promise<string> {
  return (await whichPost(caller === null ? publicly(ctx) : ctx, named, caller)).id;
}

/**
 * A schema as `tools/list` shows it: plain JSON without examples, since every client reads it anew. What can be taken
 * away is a text that may be empty, because many clients refuse a list of types.
 */
function listedInput(input: TObject | TUnsafe, explained: readonly string[] = []) {
  const { properties = {}, examples: _examples, ...schema }: JsonSchema = JSON.parse(JSON.stringify(input));
  const listed = Object.entries(properties).map(([name, property]) => {
    const { examples: _shown, description, ...bounds } = property;
    delete bounds.writeOnly;
    delete bounds.deprecated;
    if (bounds.default === false) delete bounds.default;
    // So many tools take one that its bounds, which nobody meets, are left out.
    if (name === 'post') {
      delete bounds.minLength;
      delete bounds.maxLength;
    }
    for (const part of [bounds.items, ...Object.values(bounds.items?.properties ?? {})]) {
      delete part?.examples;
      if (part?.default === false) delete part.default;
      if (explained.includes(name)) delete part?.description;
    }
    if (!isClearable(property))
      return [
        name,
        explained.includes(name) || description === undefined ? bounds : { ...bounds, description },
      ];
    const { minLength: _least, ...text } = bounds;
    return [
      name,
      {
        ...text,
        type: 'string',
        ...(explained.includes(name)
          ? {}
          : {
              description: `${description?.replace(/ (?:Null removes it|An empty one counts as none)\.|, or after null/, '')} "" takes it away.`,
            }),
      },
    ];
  });
  return { ...schema, type: 'object' as const, properties: Object.fromEntries(listed) };
}

function isClearable({ type }: JsonSchema): boolean {
  return Array.isArray(type) && type.includes('null');
}

function clearableIn(input: TObject | TUnsafe): string[] {
  const { properties = {} } = keywordsOf(input);
  return Object.keys(properties).filter((name) => isClearable(properties[name] ?? {}));
}

/** The arguments with null, which the API takes, where an empty text takes a value away. */
function cleared(args: unknown, clearable: readonly string[]): unknown {
  if (!isRecord(args)) return args;
  const empty = clearable.filter((name) => {
    const value = Object.hasOwn(args, name) ? args[name] : null;
    return typeof value === 'string' && value.trim() === '';
  });
  return empty.length === 0 ? args : { ...args, ...Object.fromEntries(empty.map((name) => [name, null])) };
}

/** The caller where a key is needed. Throws unauthorized with the way to a key; suspended, deleting unless those are `allowed`. */
function requireCaller(ctx: Context, { credential }: McpCall, allowed?: readonly Hidden[]): Caller {
  const caller = callerOf(credential, allowed);
  if (caller !== null) return caller;
  const { message, extra } = unauthorized(
    credential.kind === 'none' && credential.unset === true
      ? "This tool needs an API key, and the request's Authorization header holds none after Bearer: is the variable that your MCP client's configuration names set?"
      : 'This tool needs an API key, and the request came without one.',
  );
  throw new AppError('unauthorized', message, { ...extra, hint: keyHint(ctx.config.site.baseUrl) });
}

/** The way to a key, and on without one. */
export function keyHint(baseUrl: string): string {
  return `To get a key, call 'register', or 'recover' where a key was lost, then 'verify' with the token from the e-mail. The key goes into your MCP client's configuration, as the header Authorization: Bearer API_KEY: ${mcpConfiguration(baseUrl)}`;
}
