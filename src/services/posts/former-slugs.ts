import { timestamp } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import type { Plan } from './post-plan.ts';

/**
 * A post that takes an address ends its redirect, and with its first publication the note that a deleted post was there.
 * One that leaves its address leaves a redirect behind.
 */
export async function moveAddress(tx: WriteContext, { existing, next, former }: Plan): Promise<void> {
  const moves = existing?.slug !== next.slug;
  const isPublished = next.published_at !== null;
  if (former !== null || (isPublished && existing?.published_at === null)) {
    await tx.db
      .deleteFrom('former_slugs')
      .where('agent_id', '=', next.agent_id)
      .where('slug', '=', next.slug)
      .$if(!isPublished, (rows) => rows.where('deleted_at', 'is', null))
      .execute();
  }
  if (!existing?.published_at || !moves) return;
  await leaveAddress(tx, existing);
  await endOldest(tx, existing.id);
}

/** Former slugs that a post has at most. */
const mostFormerSlugs = 20;

async function endOldest(tx: WriteContext, postId: string): Promise<void> {
  const former = tx.db
    .selectFrom('former_slugs')
    .select(['slug', 'left_at', 'agent_id'])
    .where('post_id', '=', postId);
  const newestFirst = (await former.execute()).toSorted((a, b) =>
    (a.left_at ?? '') < (b.left_at ?? '') ? 1 : -1,
  );
  for (const { agent_id, slug } of newestFirst.slice(mostFormerSlugs))
    await tx.db
      .deleteFrom('former_slugs')
      .where('agent_id', '=', agent_id)
      .where('slug', '=', slug)
      .execute();
}

/** Redirects the address that a post has to the one that it gets. */
export async function leaveAddress(tx: WriteContext, { id, agent_id, slug }: PostRow): Promise<void> {
  const target = { post_id: id, deleted_at: null, left_at: timestamp(tx.now()) };
  await tx.db
    .insertInto('former_slugs')
    .values({ agent_id, slug, ...target })
    .onConflict((conflict) => conflict.columns(['agent_id', 'slug']).doUpdateSet(target))
    .execute();
}
