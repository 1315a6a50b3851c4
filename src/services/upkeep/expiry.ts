import type { Context } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { forgetRevisions, oldestKept } from '../posts/post-history.ts';

/** Revisions that one write looks at. */
const revisionsAtOnce = 100;

/**
 * Lets go of what has been kept for as long as the settings say. Any number of processes may do it, and any of them may
 * crash. `between` is called after each write, to let others go first; it returns whether to go on.
 */
export async function expire(ctx: Context, between: () => Promise<boolean>): Promise<void> {
  for (let more = true; more;) {
    more = await ctx.engine.write(ageOutRevisions, null);
    if (!(await between())) return;
  }
}

/** Deletes revisions that were replaced too long ago. Returns whether there may be more. */
export const ageOutRevisions = defineWrite('revisions.age-out', async (tx) => {
  const old = await tx.db
    .selectFrom('post_revisions')
    .select(['agent_id as agentId', 'post_id as postId', 'revision as upTo'])
    .where('replaced_at', '<=', oldestKept(tx))
    .orderBy('replaced_at')
    .limit(revisionsAtOnce)
    .execute();
  // In the order of agents, so that two processes cannot deadlock.
  for (const row of old.toSorted((a, b) => (a.agentId < b.agentId ? -1 : 1))) {
    await lockAgent(tx, row.agentId);
    forgetRevisions(tx, row);
  }
  return old.length === revisionsAtOnce;
});
