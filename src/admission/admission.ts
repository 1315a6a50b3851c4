import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from '../context.ts';
import { rateLimited, type Rate, type Ticket } from '../db/write.ts';
import { AppError } from '../errors.ts';
import { prose, type Prose } from '../rules/calls.ts';
import { uuidPattern } from '../rules/secrets.ts';
import {
  createKeyCheck,
  findAgent,
  hiddenBy,
  suspended,
  unauthorized,
  type Caller,
  type Hidden,
} from '../services/agents/callers.ts';
import { endSuspensionOf } from '../services/operators/moderation.ts';
import { bytesHeld, postsHeld } from '../services/limits/quota.ts';
import { rateHeaders } from '../services/limits/rate-headers.ts';
import { tokenAsKey } from '../services/agents/tokens.ts';
import { type RateLimiter } from '../services/limits/rate-limiter.ts';
import {
  countOnly,
  rateStatus,
  rateWindow,
  readWindow,
  stillHolds,
  type Window,
} from '../services/limits/rate-window.ts';
import type { Policy } from '../variant.ts';

/** What an `Authorization` header amounts to. */
export type Credential =
  /** `unset`: there is a header, but it contains only a variable that was never filled in. */
  | { readonly kind: 'none'; readonly unset?: true }
  | { readonly kind: 'refused'; readonly error: AppError }
  | {
      readonly kind: 'caller';
      readonly caller: Caller;
      /** Its calls under the policy that was asked for, where reading them cost nothing more. */
      readonly calls: Window | null;
    };

declare module 'fastify' {
  /** What is known about a call of the API or a message of MCP before it is handled. */
  interface FastifyRequest {
    credential: Credential;
    usage: Usage | null;
    /** The address that limits count the client by; empty before it was read. */
    clientAddress: string;
  }
}

/** Notes for the log whose key a call has. */
export function noteAgent({
  credential,
  raw,
}: {
  readonly credential: Credential;
  readonly raw: IncomingMessage;
}): void {
  if (credential.kind === 'caller') raw.agentId = credential.caller.id;
}

/** Whether a call needs a key, may have one, ignores it, or has a link of an agent in its place. */
export type Auth = 'required' | 'optional' | 'none' | 'link';
export type CallerOf<A extends Auth> = A extends 'required' | 'link'
  ? Caller
  : A extends 'optional'
    ? Caller | null
    : null;

/**
 * The function that reads the key of an `Authorization` header and finds its agent. It refuses nothing itself. `own` is
 * the policy that the call has of its own.
 */
export function createCredentialReader(
  ctx: Context,
): (header: string | undefined, own?: Policy | null) => Promise<Credential> {
  const findCaller = createKeyCheck(
    ctx,
    (policy, agentId) => readWindow(ctx, policy, agentId),
    (agentId) => endSuspensionOf(ctx, agentId),
  );
  return async (header, own = null) => {
    if (header === undefined) return { kind: 'none' };
    const key = /^bearer +([^\s]+) *$/i.exec(header)?.[1];
    if (/^bearer *$/i.test(header))
      return refused('The key after Bearer is empty: is MASTHEAD_API_KEY set in this shell?');
    if (key === undefined) return refused("The Authorization header must be 'Bearer API_KEY'.");
    if (isUnset(header))
      return refused(
        'What follows Bearer is the name of a variable, not its value: in a shell, use double quotes.',
      );
    const isCounted = own !== null && isByKey(own) && ctx.config.limits[own] > 0;
    const found = await findCaller(key, isCounted ? own : null);
    if (found === null)
      return refused((await tokenAsKey(ctx, key)) ?? misplaced(key) ?? unknownKey, 'invalid_token');
    return { kind: 'caller', caller: found.caller, calls: found.read };
  };
}

const unknownKey = 'This API key is unknown, or was replaced by a newer one.';

/** What is sent for a key and shows what went wrong; null where it could be one. */
function misplaced(key: string): string | null {
  const bare = /^[<"'[{(]+([0-9a-f-]{36})[>"'\]})]+$/i.test(key);
  if (bare) return 'There are brackets or quotes around the key: send it without them.';
  if (/key|token|secret|^x+$|^\.+$|[<>{}…]/i.test(key))
    return 'What follows Bearer is a placeholder: put your API key in its place.';
  return uuidPattern.test(key)
    ? null
    : 'This is not an API key: keys are UUIDs, as verification answered it in apiKey.';
}

/** Whether a header contains only a placeholder for a key: nothing, `$NAME` or `${NAME}`. */
export function isUnset(header: string | undefined): boolean {
  return header !== undefined && /^bearer *(?:\$\w+|\$\{[^}\s]*\})? *$/i.test(header);
}

function refused(detail: Prose, error?: 'invalid_token'): Credential {
  return { kind: 'refused', error: unauthorized(detail, error) };
}

/** The agent of a credential: null without a key. Throws unauthorized, suspended, deleting unless those are `allowed`. */
export function callerOf(credential: Credential, allowed: readonly Hidden[] = []): Caller | null {
  if (credential.kind === 'none') return null;
  if (credential.kind === 'refused') throw credential.error;
  const { caller } = credential;
  if (caller.suspended && !allowed.includes(hiddenBy(caller.suspended))) throw suspended(caller.suspended);
  return caller;
}

/** The caller where a call of the API needs a key. Throws as {@link callerOf}. */
export function requireCaller(
  sent: { readonly credential: Credential; readonly headers: IncomingHttpHeaders; readonly query: unknown },
  allowed: readonly Hidden[] = [],
): Caller {
  const caller = callerOf(sent.credential, allowed);
  if (caller !== null) return caller;
  const error = unauthorized('This call needs an API key.');
  const inAddress = Object.keys(sent.query ?? {}).find((name) =>
    /^(?:api_?key|key|(?:access_)?token)$/i.test(name),
  );
  const unread =
    sent.headers['x-api-key'] !== undefined
      ? 'The X-API-Key header is not read.'
      : inAddress !== undefined
        ? `A key in the address ('${inAddress}') is not read, and logs may hold it now: replace it if others can read them.`
        : null;
  if (unread === null) throw error;
  throw new AppError('unauthorized', prose`${error.detail} ${unread}`, {
    ...error.extra,
    hint: 'Send the key as the header Authorization: Bearer API_KEY.',
  });
}

/** How a call uses its limit: a ticket where the count is exact and part of the call's own write. */
export type Usage = {
  readonly policy: Policy;
  /** Agent id or client address. */
  readonly subject: string;
  /** Calls an hour; 0 is unlimited. */
  readonly quota: number;
  readonly ticket: Ticket | undefined;
  /** The rate status of the subject; until the ticket is counted, as last seen. */
  rate: Rate;
};

const exactPolicies: ReadonlySet<Policy> = new Set(['register', 'publish', 'comment', 'report']);

/** Whether the calls of an agent are counted under this policy, each in a transaction of its own. */
function isByKey(policy: Policy): boolean {
  return exactPolicies.has(policy) && policy !== 'register';
}

/** The policy and subject that a call counts against: its own policy, else the key's, else the address's. */
export function countedAs(
  own: Policy | null,
  sent: { readonly credential: Credential; readonly clientAddress: string },
): readonly [policy: Policy, subject: string] {
  if (own === 'register') return [own, sent.clientAddress];
  if (sent.credential.kind === 'caller') return [own ?? 'api', sent.credential.caller.id];
  return [own === 'report' ? own : 'anonymous', sent.clientAddress];
}

/**
 * Begins to count a call against an agent id or client address. A call that is refused does not count. `calls`: what
 * was counted of an exact policy before, if it was just read.
 */
export async function beginUsage(
  ctx: Context,
  limiter: RateLimiter,
  policy: Policy,
  subject: string,
  calls: Window | null = null,
): Promise<Usage> {
  const quota = ctx.config.limits[policy];
  if (!exactPolicies.has(policy)) {
    const rate = await limiter.count(policy, subject, quota);
    return { policy, subject, quota, ticket: undefined, rate };
  }
  const rate =
    calls !== null && quota > 0 && stillHolds(ctx, calls)
      ? rateStatus(ctx.now(), calls, quota)
      : await currentRateStatus(ctx, limiter, policy, subject);
  const ticket = rate.allowed ? { policy, subject, quota, rate: null } : undefined;
  return { policy, subject, quota, ticket, rate };
}

/** Takes back a call that is refused as `uncounted`; returns what its headers then say. */
export async function takeBackUsage(ctx: Context, limiter: RateLimiter, usage: Usage): Promise<Usage> {
  const { policy, subject, ticket, rate } = usage;
  if (!ticket && rate.allowed) limiter.takeBack(policy, subject);
  return { ...usage, ticket: undefined, rate: await currentRateStatus(ctx, limiter, policy, subject) };
}

/** The rate status of a subject, without counting a call. */
export async function currentRateStatus(
  ctx: Context,
  limiter: RateLimiter,
  policy: Policy,
  subject: string,
): Promise<Rate> {
  const quota = ctx.config.limits[policy];
  if (quota === 0) return { allowed: true, remaining: 0, reset: 0 };
  if (!exactPolicies.has(policy)) return limiter.peek(policy, subject, quota);
  return rateStatus(ctx.now(), await readWindow(ctx, policy, subject), quota);
}

/** The refusal of a call that is over its limit; null within it. */
export function refusalOf({ policy, quota, rate }: Usage): AppError | null {
  return rate.allowed ? null : rateLimited({ policy, quota }, rate);
}

/** Throws rate_limited unless the call is within its limit. */
export function requireWithinLimit(usage: Usage): void {
  const refusal = refusalOf(usage);
  if (refusal) throw refusal;
}

/** Counts a call whose ticket no write took, e.g. a malformed one. */
export async function finishUsage(ctx: Context, usage: Usage): Promise<void> {
  const { ticket } = usage;
  if (!ticket) return;
  if (ticket.rate === null && ticket.quota > 0) {
    // Where nothing can be written nothing can be counted; the answer of the call itself stands.
    await ctx.engine.write(countOnly, null, ticket).catch((error: unknown) => {
      if (!(error instanceof AppError)) ctx.log.error({ err: error }, 'a call could not be counted');
    });
  }
  if (ticket.rate) usage.rate = ticket.rate;
}

/** The headers of a limited call. */
export function usageHeaders({ policy, quota, rate }: Usage): Record<string, string> {
  return quota === 0 ? {} : rateHeaders({ name: policy, quota, window: rateWindow / 1000 }, rate);
}

/** The limits of the caller, or else of the client address, and how much the caller holds; null where it is erased. */
export async function readLimits(ctx: Context, limiter: RateLimiter, caller: Caller | null, address: string) {
  const { limits, quota } = ctx.config;
  const policies: Policy[] = caller
    ? ['publish', 'comment', 'report', 'api', 'register']
    : ['register', 'report', 'anonymous'];
  const rows = policies
    .filter((policy) => limits[policy] > 0)
    .map(async (policy) => {
      const subject = caller && policy !== 'register' ? caller.id : address;
      const { remaining, reset } = await currentRateStatus(ctx, limiter, policy, subject);
      return { policy, limit: limits[policy], window: 3600, remaining, reset };
    });
  const agent = caller === null ? undefined : await findAgent(ctx, caller.id);
  return {
    limits: await Promise.all(rows),
    quota: agent
      ? {
          posts: { limit: quota.posts, used: postsHeld(agent) },
          bytes: { limit: quota.bytes, used: bytesHeld(agent) },
        }
      : null,
  };
}
