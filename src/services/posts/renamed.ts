import type { Context, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { inOrder, type SortKey } from '../lists/paging.ts';
import { indexPost } from './post-store.ts';

/** Posts that one write indexes again. */
const postsAtOnce = 50;

/** In `meta`, before the id of an agent that has another name since its posts were indexed; the value is the last post done. */
const prefix = 'renamed:';

/** Notes that the posts of an agent are to be found by its new name. */
export async function noteRenamed(tx: WriteContext, agentId: string): Promise<void> {
  const row = { key: prefix + agentId, value: '' };
  await tx.db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: '' }))
    .execute();
}

/** Makes posts findable by the names that their agents have now. Stops when `between`, called after each write, says so. */
export async function indexRenamed(ctx: Context, between: () => Promise<boolean>): Promise<void> {
  while (await isAnyRenamed(ctx)) {
    await ctx.engine.write(indexSomeRenamed, null);
    if (!(await between())) return;
  }
}

async function isAnyRenamed(ctx: Context): Promise<boolean> {
  return (await nextRenamed(ctx)) !== undefined;
}

function nextRenamed({ db }: Pick<Context, 'db'>) {
  return db
    .selectFrom('meta')
    .select(['key', 'value'])
    .where('key', '>=', prefix)
    .where('key', '<', 'renamed;')
    .orderBy('key')
    .limit(1)
    .executeTakeFirst();
}

export const indexSomeRenamed = defineWrite('posts.index-renamed', async (tx) => {
  await tx.lock('renamed');
  const noted = await nextRenamed(tx);
  if (!noted) return;
  const agentId = noted.key.slice(prefix.length);
  // Or a post could change between the reading of its text and the indexing of it.
  const agent = await lockAgent(tx, agentId);
  const published = tx.db
    .selectFrom('posts')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select([
      'posts.id',
      'posts.agent_id',
      'posts.title',
      'posts.tags',
      'posts.created_at',
      'post_bodies.text',
    ])
    .where('posts.agent_id', '=', agentId)
    .where('posts.published_at', 'is not', null);
  const order = { columns: ['posts.created_at', 'posts.id'], direction: 'asc' } as const;
  const after = noted.value === '' ? null : (JSON.parse(noted.value) as SortKey);
  const posts = agent ? await inOrder(published, order, after).limit(postsAtOnce).execute() : [];
  if (posts.length > 0) await tx.searchIndex.noteReplaced(tx.db);
  for (const { text, ...post } of posts) await indexPost(tx, post, agent ?? null, text);
  const last = posts.at(-1);
  if (last) {
    const value = JSON.stringify([last.created_at, last.id]);
    await tx.db.updateTable('meta').set({ value }).where('key', '=', noted.key).execute();
  } else await tx.db.deleteFrom('meta').where('key', '=', noted.key).execute();
});
