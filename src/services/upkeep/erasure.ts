import type { ReadContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';

/** In `meta`: `due` since something was deleted from the search index, `begun` while its terms are being erased. */
const searchErasure = 'search_erasure';

/** Whether terms of deleted posts are still in the storage of the search index. */
export async function areTermsLeft(ctx: ReadContext): Promise<boolean> {
  const noted = ctx.db.selectFrom('meta').select('value').where('key', '=', searchErasure);
  return (await noted.executeTakeFirst()) !== undefined;
}

/**
 * Erases the terms of deleted posts from the search index, a part at a time. Returns whether that was the last part.
 * What is deleted meanwhile is due again.
 */
export const eraseTerms = defineWrite(
  'maintenance.erase-terms',
  async (tx, { part }: { part: 'first' | 'next' }): Promise<boolean> => {
    const noted = tx.db.updateTable('meta').where('key', '=', searchErasure);
    if (part === 'first') await noted.set({ value: 'begun' }).execute();
    const done = await tx.searchIndex.eraseDeleted(tx.db, part);
    if (done)
      await tx.db.deleteFrom('meta').where('key', '=', searchErasure).where('value', '=', 'begun').execute();
    return done;
  },
);
