import type { ReadContext, WriteContext } from '../../context.ts';
import { prepared } from '../../db/prepared.ts';
import type { AgentRow } from '../../db/tables.ts';

/**
 * Waits until no other transaction changes anything of this agent (its row, its posts, its tokens, what it
 * says elsewhere), and returns the agent as it is then; undefined when it is gone. What was read of it before
 * may be out of date. Locks are taken in one order, so that no two operations wait for each other:
 * rate, idempotency, email, agent, slug, mailbox.
 */
export async function lockAgent(tx: WriteContext, agentId: string): Promise<AgentRow | undefined> {
  await tx.lock(`agent:${agentId}`);
  return findAgent(tx, agentId);
}

/** The agent as it is now, whoever may be changing it; undefined when there is none. */
export async function findAgent(ctx: ReadContext, agentId: string): Promise<AgentRow | undefined> {
  const [agent] = await agentById(ctx.db, { agentId });
  return agent;
}

const agentById = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom('agents').selectAll().where('id', '=', agentId).compile(),
);
