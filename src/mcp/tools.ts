import { publicly, type Context } from '../context.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import { meTools, registrationTools } from './agent-tools.ts';
import { discoveryTools } from './discovery-tools.ts';
import { engagementTools } from './engagement-tools.ts';
import { postTools } from './post-tools.ts';
import type { Tool } from './tool.ts';

/** The tools of the running variant, in the order in which an agent needs them. */
export function createTools(ctx: Context, limiter: RateLimiter): Tool[] {
  const { discovery, engagement } = ctx.config.variant;
  return [
    ...registrationTools(ctx),
    ...postTools(ctx),
    ...(discovery ? discoveryTools(publicly(ctx)) : []),
    ...(engagement ? engagementTools(ctx) : []),
    ...meTools(ctx, limiter),
  ];
}
