import type { ReadContext } from '../context.ts';

/** How many messages are to be delivered yet, those under way included. */
export async function countWaitingMail(ctx: ReadContext): Promise<number> {
  const { count } = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.countAll<number | string>().as('count'))
    .where('due_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The agent that a message is to; null when it has none or is not there. */
export async function agentOfMail(ctx: ReadContext, id: string): Promise<string | null> {
  const row = await ctx.db.selectFrom('outbox').select('agent_id').where('id', '=', id).executeTakeFirst();
  return row?.agent_id ?? null;
}
