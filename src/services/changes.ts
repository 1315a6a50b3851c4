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
        : row.or([row('seq', '>', after), row('seq', 'in', [...missed])]),
    )
    .orderBy('seq')
    .execute();
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
