import type { Context } from '../context.ts';
import { rateLimited, type Rate, type Ticket } from '../db/write.ts';
import { AppError } from '../errors.ts';
import { requireCallerRow, type Caller } from '../services/agents/callers.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import { countOnly, rateStatus, readWindow } from '../services/limits/rate-limits.ts';
import type { Policy } from '../variant.ts';
import type { Credential } from './credential.ts';

/** How a call uses its limit: a ticket where the count is exact and part of the call's own write. */
export type Usage = {
  readonly policy: Policy;
  /** Agent id or client address. */
  readonly subject: string;
  /** Calls an hour; 0 is unlimited. */
  readonly quota: number;
  readonly ticket: Ticket | null;
  /** The rate status of the subject; until the ticket is counted, as last seen. */
  rate: Rate;
};

const exactPolicies: ReadonlySet<Policy> = new Set(['register', 'publish']);

/** The policy and subject that a call counts against: its own policy, else the key's, else the address's. */
export function countedAs(
  own: Policy | null,
  credential: Credential,
  address: string,
): readonly [policy: Policy, subject: string] {
  if (own === 'register') return [own, address];
  return credential.kind === 'caller' ? [own ?? 'api', credential.caller.id] : ['anonymous', address];
}

/** Begins to count a call against an agent id or client address. A call that is refused does not count. */
export async function beginUsage(
  ctx: Context,
  limiter: RateLimiter,
  policy: Policy,
  subject: string,
): Promise<Usage> {
  const quota = ctx.config.limits[policy];
  if (!exactPolicies.has(policy)) {
    const rate = await limiter.count(policy, subject, quota);
    return { policy, subject, quota, ticket: null, rate };
  }
  const rate = await currentRateStatus(ctx, limiter, policy, subject);
  const ticket = rate.allowed ? { policy, subject, quota, rate: null } : null;
  return { policy, subject, quota, ticket, rate };
}

/** Takes back a call that is refused as `uncounted`; returns what its headers then say. */
export async function takeBackUsage(ctx: Context, limiter: RateLimiter, usage: Usage): Promise<Usage> {
  const { policy, subject, ticket, rate } = usage;
  if (ticket === null && rate.allowed) limiter.takeBack(policy, subject);
  return { ...usage, ticket: null, rate: await currentRateStatus(ctx, limiter, policy, subject) };
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
  if (ticket === null) return;
  if (ticket.rate === null && ticket.quota > 0) {
    // Where nothing can be written nothing can be counted; the answer of the call itself stands.
    await ctx.engine.write(countOnly, null, ticket).catch((error: unknown) => {
      if (!(error instanceof AppError)) ctx.log.error({ err: error }, 'a call could not be counted');
    });
  }
  if (ticket.rate) usage.rate = ticket.rate;
}

/** The headers of a limited call: the IETF draft's, and the older ones that many clients read. */
export function rateHeaders({ policy, quota, rate }: Usage): Record<string, string> {
  if (quota === 0) return {};
  return {
    'ratelimit-policy': `"${policy}";q=${quota};w=3600`,
    ratelimit: `"${policy}";r=${rate.remaining};t=${rate.reset}`,
    'x-ratelimit-limit': String(quota),
    'x-ratelimit-remaining': String(rate.remaining),
    'x-ratelimit-reset': String(rate.reset),
  };
}

/**
 * The limits in force with what is left of them, for the caller or, without one, for the client address; and how much
 * the caller holds. Throws unauthorized when it was deleted meanwhile.
 */
export async function readLimits(ctx: Context, limiter: RateLimiter, caller: Caller | null, address: string) {
  const { limits, quota } = ctx.config;
  const policies: Policy[] = caller ? ['publish', 'api', 'register'] : ['register', 'anonymous'];
  const rows = policies
    .filter((policy) => limits[policy] > 0)
    .map(async (policy) => {
      const subject = caller && policy !== 'register' ? caller.id : address;
      const { remaining, reset } = await currentRateStatus(ctx, limiter, policy, subject);
      return { policy, limit: limits[policy], window: 3600, remaining, reset };
    });
  const agent = caller && (await requireCallerRow(ctx, caller.id));
  return {
    limits: await Promise.all(rows),
    quota: agent && {
      posts: { limit: quota.posts, used: agent.published_count + agent.draft_count },
      bytes: { limit: quota.bytes, used: agent.content_bytes },
    },
  };
}
