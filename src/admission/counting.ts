import type { Context } from '../context.ts';
import { rateLimited, type Rate, type Ticket } from '../db/write.ts';
import { AppError } from '../errors.ts';
import type { CallCounter } from '../services/limits/call-counter.ts';
import { countOnly, readWindow, rateStatus } from '../services/limits/rate-limits.ts';
import type { Policy } from '../variant.ts';
import type { Credential } from './credential.ts';

/** How a call is counted: a ticket where the count is exact and rides in the call's own write. */
export type Counting = {
  readonly policy: Policy;
  /** Agent id or client address. */
  readonly subject: string;
  /** Calls an hour; 0 is unlimited. */
  readonly quota: number;
  readonly ticket: Ticket | null;
  /** Where the subject stands; until the ticket is counted, as last seen. */
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

/** Starts to count a call against an agent id or client address. A call that is refused does not count. */
export async function beginCount(
  ctx: Context,
  counter: CallCounter,
  policy: Policy,
  subject: string,
): Promise<Counting> {
  const quota = ctx.config.limits[policy];
  if (!exactPolicies.has(policy)) {
    const rate = await counter.count(policy, subject, quota);
    return { policy, subject, quota, ticket: null, rate };
  }
  const rate = await currentRateStatus(ctx, counter, policy, subject);
  return {
    policy,
    subject,
    quota,
    ticket: rate.allowed ? { policy, subject, quota, rate: null } : null,
    rate,
  };
}

/** Takes a call out of the count again, one that is refused as `uncounted`; what its headers then say. */
export async function uncount(
  ctx: Context,
  counter: CallCounter,
  { policy, subject, quota, ticket, rate }: Counting,
): Promise<Counting> {
  if (ticket === null && rate.allowed) counter.takeBack(policy, subject);
  return {
    policy,
    subject,
    quota,
    ticket: null,
    rate: await currentRateStatus(ctx, counter, policy, subject),
  };
}

/** Where a subject stands against a limit, without counting a call. */
export async function currentRateStatus(
  ctx: Context,
  counter: CallCounter,
  policy: Policy,
  subject: string,
): Promise<Rate> {
  const quota = ctx.config.limits[policy];
  if (quota === 0) return { allowed: true, remaining: 0, reset: 0 };
  if (!exactPolicies.has(policy)) return counter.peek(policy, subject, quota);
  return rateStatus(ctx.now(), await readWindow(ctx, policy, subject), quota);
}

/** The refusal of a call that is over its limit; null within it. */
export function refusalOf({ policy, quota, rate }: Counting): AppError | null {
  return rate.allowed ? null : rateLimited({ policy, quota }, rate);
}

/** Throws rate_limited unless the call is within its limit. */
export function requireWithinLimit(counting: Counting): void {
  const refusal = refusalOf(counting);
  if (refusal) throw refusal;
}

/** Counts a call whose ticket no operation took, e.g. a malformed one. */
export async function finishCount(ctx: Context, counting: Counting): Promise<void> {
  const { ticket } = counting;
  if (ticket === null) return;
  if (ticket.rate === null && ticket.quota > 0) {
    // Where nothing can be written nothing can be counted; the answer of the call itself stands.
    await ctx.engine.write(countOnly, null, ticket).catch((error: unknown) => {
      if (!(error instanceof AppError)) ctx.log.error({ err: error }, 'a call could not be counted');
    });
  }
  if (ticket.rate) counting.rate = ticket.rate;
}

/** The headers of a limited call: the IETF draft's, and the older ones that many clients read. */
export function rateHeaders({ policy, quota, rate }: Counting): Record<string, string> {
  if (quota === 0) return {};
  return {
    'ratelimit-policy': `"${policy}";q=${quota};w=3600`,
    ratelimit: `"${policy}";r=${rate.remaining};t=${rate.reset}`,
    'x-ratelimit-limit': String(quota),
    'x-ratelimit-remaining': String(rate.remaining),
    'x-ratelimit-reset': String(rate.reset),
  };
}
