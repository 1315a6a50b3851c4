import type { ReadContext } from '../../context.ts';

/** A fact about the instance, of the table `meta`; null where it was never recorded. */
export async function readFact(db: ReadContext['db'], key: string): Promise<string | null> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst();
  return row?.value ?? null;
}
