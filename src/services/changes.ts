import type { ReadContext } from '../context.ts';

/** A change that some process committed. */
export type Change = { readonly seq: number; readonly tag: string };

/** Changes numbered above `after`, plus any of `missed` that have since committed, by number. */
export async function readChanges(
  ctx: ReadContext,
  { after, missed }: { readonly after: number; readonly missed: readonly number[] },
): Promise<Change[]> {
  return ctx.db
    .selectFrom('changes')
    .select(['seq', 'tag'])
    .where((row) =>
      missed.length === 0
        ? row('seq', '>', after)
        : row.or([row('seq', '>', after), row('seq', 'in', padded(missed))]),
    )
    .orderBy('seq')
    .execute();
}

/** The same numbers, some more than once, so that there are few forms of the query: connections keep each prepared. */
function padded(numbers: readonly number[]): number[] {
  const length = 2 ** Math.ceil(Math.log2(numbers.length));
  return Array.from({ length }, (_, n) => Number(numbers[n % numbers.length]));
}

/** The number of the newest change; 0 if there is none. */
export async function newestChange(ctx: ReadContext): Promise<number> {
  const row = await ctx.db
    .selectFrom('changes')
    .select('seq')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.seq ?? 0;
}
