import type { Context } from '../context.ts';
import { requireCallerRow, type Caller } from '../services/agents/callers.ts';
import type { CallCounter } from '../services/limits/call-counter.ts';
import type { Policy } from '../variant.ts';
import { currentRateStatus } from './counting.ts';

/**
 * The limits in force with what is left of them, for the caller or, where there is none, for the client address;
 * and how much the caller holds. Throws unauthorized when it was deleted meanwhile.
 */
export async function readLimits(ctx: Context, counter: CallCounter, caller: Caller | null, address: string) {
  const { limits, quota } = ctx.config;
  const policies: Policy[] = caller ? ['publish', 'api', 'register'] : ['register', 'anonymous'];
  const rows = policies
    .filter((policy) => limits[policy] > 0)
    .map(async (policy) => {
      const subject = caller && policy !== 'register' ? caller.id : address;
      const { remaining, reset } = await currentRateStatus(ctx, counter, policy, subject);
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
