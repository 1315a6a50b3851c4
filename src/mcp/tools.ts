import type { Context } from '../context.ts';
import { agentTools } from './agent-tools.ts';
import { discoveryTools } from './discovery-tools.ts';
import { engagementTools } from './engagement-tools.ts';
import { postTools } from './post-tools.ts';
import type { Tool } from './tool.ts';

/** The tools of the running variant, in the order in which an agent needs them. */
export function createTools(ctx: Context): Tool[] {
  const { discovery, engagement } = ctx.config.variant;
  return [
    ...agentTools(ctx),
    ...postTools(ctx),
    ...(discovery ? discoveryTools(ctx) : []),
    ...(engagement ? engagementTools(ctx) : []),
  ];
}
