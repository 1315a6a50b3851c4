import type { ReadContext, WriteContext } from '../context.ts';
import { prepared } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';

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
  await add(tx.db, { name, shard, value: amount });
}

const add = prepared((db, row: Tables['counters']) =>
  db
    .insertInto('counters')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['name', 'shard'])
        .doUpdateSet((stored) => ({ value: stored('counters.value', '+', row.value) })),
    )
    .compile(),
);

/** A stored total: listed posts or listed blogs. */
export async function readCounter(ctx: ReadContext, name: 'posts' | 'blogs'): Promise<number> {
  const rows = await ctx.db.selectFrom('counters').select('value').where('name', '=', name).execute();
  return rows.reduce((total, row) => total + row.value, 0);
}
