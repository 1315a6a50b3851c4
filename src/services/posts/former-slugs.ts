import type { ReadContext, WriteContext } from '../../context.ts';
import { preparedInsert } from '../../db/prepared.ts';
import { timestamp } from '../../db/write.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { blogChanged } from '../agents/callers.ts';
import { keptPosts } from './find-post.ts';
import { keepRevision } from './post-history.ts';
import type { Plan } from './post-plan.ts';

/** Former slugs that a post has at most. */
const mostFormerSlugs = 20;

/** The slugs that a post had and that still lead to it, the latest first. */
export async function formerSlugsOf(ctx: ReadContext, postId: string): Promise<string[]> {
  return (await formerAddresses(ctx, postId)).map(({ slug }) => slug);
}

/** A slug that a post had, and when it left it. */
export type FormerAddress = { readonly slug: string; readonly left_at: string | null };

/** The same, with the times. */
export async function formerAddresses({ db }: ReadContext, postId: string): Promise<FormerAddress[]> {
  const rows = await db
    .selectFrom('former_slugs')
    .select(['slug', 'left_at'])
    .where('post_id', '=', postId)
    .where('deleted_at', 'is', null)
    .orderBy('slug')
    .execute();
  // Sorted here, since the two databases disagree on where null stands.
  const leftAt = ({ left_at }: FormerAddress) => (left_at === null ? 0 : Date.parse(left_at));
  return rows.toSorted((a, b) => leftAt(b) - leftAt(a));
}

/**
 * The former slugs of a post that are not among those to be left; what it is about to leave counts as one. Throws
 * invalid_input for one that it does not have.
 */
export async function endedSlugs(
  ctx: ReadContext,
  post: PostRow | null,
  { left, next }: { readonly left: readonly string[] | undefined; readonly next: string },
): Promise<readonly string[]> {
  if (post === null || left === undefined) return [];
  const present = [...(post.slug === next ? [] : [post.slug]), ...(await formerSlugsOf(ctx, post.id))];
  const errors = left.flatMap((slug, i) =>
    present.includes(slug) ? [] : [{ field: `formerSlugs[${i}]`, message: 'is no former slug of this post' }],
  );
  if (errors.length > 0)
    throw new AppError(
      'invalid_input',
      `'${errors[0]?.field}' ${errors[0]?.message}. Slugs are added by renaming.`,
      {
        errors,
        hint: present.length === 0 ? 'It has none.' : `It has: ${present.join(', ')}. Send those to be left.`,
      },
    );
  return present.filter((slug) => !left.includes(slug));
}

/**
 * A post that takes an address ends its redirect, and with its first publication the note that a deleted post was there.
 * One that leaves its address goes on having that slug: it redirects where it was public, and finds the post.
 */
export async function moveAddress(tx: WriteContext, { existing, next, former, ended }: Plan): Promise<void> {
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
  if (former?.leadsTo) await loseSlug(tx, former.leadsTo);
  if (existing && moves) await leaveAddress(tx, existing);
  if (ended.length > 0) await endSlugs(tx, next, ended);
  if (existing && moves)
    await endSlugs(tx, existing, (await formerSlugsOf(tx, existing.id)).slice(mostFormerSlugs));
}

/** Another post has taken a former slug of this one: it is not the post that it was. */
async function loseSlug(tx: WriteContext, post: PostRow): Promise<void> {
  const next = {
    revision: post.revision + 1,
    cause: 'changed',
    edit_hash: null,
    updated_at: timestamp(tx.now()),
  } as const;
  keepRevision(tx, { existing: post, next: { ...post, ...next }, contentChanged: false });
  await tx.db.updateTable('posts').set(next).where('id', '=', post.id).execute();
  tx.changed(`post:${post.id}`);
  if (post.listed_at !== null) blogChanged(tx, post.agent_id);
}

async function endSlugs(
  tx: WriteContext,
  { agent_id }: Pick<PostRow, 'agent_id'>,
  slugs: readonly string[],
): Promise<void> {
  if (slugs.length === 0) return;
  await tx.db
    .deleteFrom('former_slugs')
    .where('agent_id', '=', agent_id)
    .where('slug', 'in', slugs)
    .where('deleted_at', 'is', null)
    .execute();
}

/** Lets the slug that a post has lead to it from now on. That a deleted post was there matters more than a draft. */
async function leaveAddress(tx: WriteContext, { id, agent_id, slug, published_at }: PostRow): Promise<void> {
  const target = { post_id: id, deleted_at: null, left_at: timestamp(tx.now()) };
  await tx.db
    .insertInto('former_slugs')
    .values({ agent_id, slug, ...target })
    .onConflict((conflict) => {
      const taken = conflict.columns(['agent_id', 'slug']);
      return published_at === null ? taken.doNothing() : taken.doUpdateSet(target);
    })
    .execute();
}

/** What is left of the addresses of a post that is deleted: of one that was public, that it is gone. */
export async function endAddresses(tx: WriteContext, post: PostRow): Promise<void> {
  if (post.published_at === null) {
    await tx.db.deleteFrom('former_slugs').where('post_id', '=', post.id).execute();
    return;
  }
  await leaveAddress(tx, post);
  const deleted = { deleted_at: timestamp(tx.now()) };
  await tx.db.updateTable('former_slugs').set(deleted).where('post_id', '=', post.id).execute();
}

/**
 * Lets former slugs lead again to a post that comes back at the slug `at`: those that are still free. Returns whether all
 * of them do.
 */
export async function redirectAgain(
  tx: WriteContext,
  { id, agent_id, published_at }: PostRow,
  { at, former }: { readonly at: string; readonly former: readonly FormerAddress[] },
): Promise<boolean> {
  const slugs = former.map(({ slug }) => slug).filter((slug) => slug !== at);
  const isPublic = published_at !== null;
  const free = slugs.length === 0 ? [] : await freeAmong(tx, agent_id, slugs, isPublic);
  const ended = [...(isPublic ? [at] : []), ...free];
  if (ended.length > 0)
    await tx.db
      .deleteFrom('former_slugs')
      .where('agent_id', '=', agent_id)
      .where('slug', 'in', ended)
      .execute();
  const again = former.filter(({ slug }) => free.includes(slug)).slice(0, mostFormerSlugs);
  const rows = again.map((address) => ({ agent_id, post_id: id, ...address, deleted_at: null }));
  if (rows.length > 0) insertAddresses(tx.db, rows);
  return again.length === former.length;
}

const insertAddresses = preparedInsert('former_slugs');

/** Those that no post of the agent has, and that lead to none; for a draft, where no deleted post was either. */
async function freeAmong(
  tx: WriteContext,
  agentId: string,
  slugs: readonly string[],
  isPublic: boolean,
): Promise<string[]> {
  const [posts, former] = await Promise.all([
    keptPosts(tx.db).select('slug').where('agent_id', '=', agentId).where('slug', 'in', slugs).execute(),
    tx.db
      .selectFrom('former_slugs')
      .select('slug')
      .where('agent_id', '=', agentId)
      .where('slug', 'in', slugs)
      .$if(isPublic, (row) => row.where('deleted_at', 'is', null))
      .execute(),
  ]);
  const taken = new Set([...posts, ...former].map(({ slug }) => slug));
  return slugs.filter((slug) => !taken.has(slug));
}
