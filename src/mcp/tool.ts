import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server';
import { Type, type Static, type TObject, type TUnsafe } from 'typebox';
import { callerOf, type Auth, type CallerOf, type Credential, type Usage } from '../admission/admission.ts';
import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { mcpConfiguration } from '../rules/agent-setup.ts';
import { asTools, operations, type OperationId } from '../rules/calls.ts';
import { dryRunRefusals } from '../schemas/posts.ts';
import {
  createCheck,
  isRecord,
  respelt,
  throwIfFaulty,
  withWarnings,
  type CheckOptions,
} from '../schemas/validate.ts';
import { keywordsOf } from '../schemas/openapi.ts';
import { unauthorized, type Caller } from '../services/agents/callers.ts';
import type { Policy } from '../variant.ts';
import { succeeded, type ToolAnswer } from './result.ts';

/** A message that was let in. */
export type McpCall = {
  readonly credential: Credential;
  readonly usage: Usage;
  /** The address that limits count the client by. */
  readonly address: string;
  /** The wider network around it. */
  readonly network: string;
  readonly requestId: string;
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
  /** The limit that a call counts against, unless it is `api` or `anonymous`. */
  readonly policy?: Policy;
  readonly input?: I;
  readonly check?: CheckOptions;
  /** The API's answer: what it does not name is left out. */
  readonly output: TObject;
  readonly run: (call: McpCall & { readonly caller: CallerOf<A> }, input: Static<I>) => Promise<ToolAnswer>;
};

/** A tool as the service offers and runs it. */
export type Tool = {
  /** The limit of its own that a call with these arguments counts against, if it has one. */
  readonly policyFor: (args: unknown) => Policy | null;
  /** As `tools/list` shows it. */
  readonly listed: ListedTool;
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
  const { spellings = {}, refused = {} } = definition.check ?? {};
  const hasDryRun = Object.hasOwn(keywordsOf(input).properties ?? {}, 'dryRun');
  const refusals = annotations.readOnlyHint || hasDryRun ? refused : { ...refused, ...dryRunRefusals };
  const check = createCheck(input, {
    ...definition.check,
    refused: refusals,
    // A model that reads of success takes what it asked for as done.
    ...(annotations.readOnlyHint ? {} : { refuseUnknown: 'always' }),
    spell: asTools,
  });
  // It must hold for no call that would publish.
  const isDryRun = (args: unknown) =>
    hasDryRun && isRecord(args) && args[respelt(args, spellings).get('dryRun') ?? 'dryRun'] === true;
  return {
    policyFor: (args) => (isDryRun(args) ? null : policy),
    listed: {
      name: operations[definition.operationId].tool,
      title,
      description,
      // As plain JSON, without what hangs on it for our own check.
      inputSchema: JSON.parse(JSON.stringify(input)),
      annotations,
    },
    async run(call, args = {}) {
      const caller = (
        auth === 'none' ? null : auth === 'optional' ? callerOf(call.credential) : requireCaller(ctx, call)
      ) as CallerOf<A>;
      const checked = check(args);
      throwIfFaulty(checked);
      const answer = await definition
        .run({ ...call, caller }, checked.value as Static<I>)
        .catch((error: unknown) => {
          throw withWarnings(error, checked.warnings);
        });
      const warnings = [...checked.warnings, ...(answer.warnings ?? [])];
      return succeeded(definition.output, { ...answer, warnings });
    },
  };
}

/** The caller where a key is needed. Throws unauthorized with the way to a key, suspended. */
export function requireCaller(ctx: Context, { credential }: McpCall): Caller {
  const caller = callerOf(credential);
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
  return `To get a key, call 'register', then 'verify' with the token from the e-mail; a lost one is replaced by POST ${baseUrl}/api/recover with {"email": "…"}. The key goes into your MCP client's configuration, as the header Authorization: Bearer API_KEY: ${mcpConfiguration(baseUrl)}`;
}
