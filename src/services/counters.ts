import type { ReadContext, WriteContext } from '../context.ts';

/** Rows that a total is split over, so that concurrent writers do not wait for one another. */
const shards = 16;

/** Adds to a stored total, in the transaction of what is counted. */
export async function addToCounter(
  tx: WriteContext,
  name: 'posts' | 'blogs',
  agentId: string,
  amount: number,
): Promise<void> {
  if (amount === 0) return;
  const shard = parseInt(agentId.slice(-1), 16) % shards;
  await tx.db
    .insertInto('counters')
    .values({ name, shard, value: amount })
    .onConflict((conflict) =>
      conflict
        .columns(['name', 'shard'])
        .doUpdateSet((row) => ({ value: row('counters.value', '+', amount) })),
    )
    .execute();
}

/** A stored total: listed posts or listed blogs. */
export async function readCounter(ctx: ReadContext, name: 'posts' | 'blogs'): Promise<number> {
  const rows = await ctx.db.selectFrom('counters').select('value').where('name', '=', name).execute();
  return rows.reduce((total, row) => total + row.value, 0);
}
