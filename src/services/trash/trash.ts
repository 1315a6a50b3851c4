import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { AgentRow, PostRow, TrashedRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import type { PostColumns } from '../../rules/post-fields.ts';
import type { Warning } from '../../rules/warnings.ts';
import { blogChanged, lockCaller, type Caller } from '../agents/callers.ts';
import { checkPostPlace } from '../limits/quota.ts';
import { countRows, readCursor, readPage, type Order, type Page } from '../lists/paging.ts';
import { isKept, oldestTrashed, requireOwnOrTrashed, restorableUntil } from '../posts/find-post.ts';
import { redirectAgain, type FormerAddress } from '../posts/former-slugs.ts';
import { keepRevision } from '../posts/post-history.ts';
import { refuseStoredKeys } from '../posts/post-input.ts';
import { holdBack, holdOf, publication } from '../posts/post-plan.ts';
import { findBySlug } from '../posts/post-target.ts';
import { adjustTotals, noteHold, noteLinksOf, storeTags, updateSearchEntry } from '../posts/post-store.ts';
import { taggedPost, type TaggedPost } from '../posts/post-views.ts';
import { heldWarnings, keptBack } from '../posts/posts.ts';

/** A deleted post in the list of its agent's trash. */
export type TrashedPost = Readonly<ReturnType<typeof trashedPost>>;

/** The posts that an agent has deleted and can restore, the last one first. */
export async function listTrash(
  ctx: ReadContext,
  agentId: string,
  { limit, cursor }: { limit: number; cursor: string | null },
): Promise<Page<TrashedPost> & { total: number }> {
  const after = readCursor(cursor, lastFirst.list);
  const rows = restorable(ctx, agentId)
    .select(['id', 'title', 'trashed_slug', 'trashed_status', 'trashed_at'])
    .select('comment_count');
  const page = await readPage(rows, lastFirst, after, { limit }, (row) => trashedPost(ctx, row));
  return { ...page, total: await countRows(restorable(ctx, agentId)) };
}

function restorable(ctx: ReadContext, agentId: string) {
  return ctx.db
    .selectFrom('posts')
    .where('agent_id', '=', agentId)
    .where('trashed_at', '>', oldestTrashed(ctx));
}

type ListedRow = Pick<
  TrashedRow,
  'id' | 'title' | 'trashed_slug' | 'trashed_status' | 'trashed_at' | 'comment_count'
>;

const lastFirst: Order<Pick<ListedRow, 'trashed_at' | 'id'>> = {
  list: 'trash',
  columns: ['trashed_at', 'id'],
  direction: 'desc',
  keyOf: (row) => [row.trashed_at ?? '', row.id],
};

function trashedPost(ctx: ReadContext, row: ListedRow) {
  const { id, title, trashed_slug, trashed_status, trashed_at, comment_count } = row;
  const deletedAt = trashed_at ?? '';
  return {
    id,
    title,
    slug: trashed_slug ?? '',
    status: trashed_status ?? 'draft',
    deletedAt,
    restoreUntil: restorableUntil(ctx, deletedAt),
    comments: comment_count,
  };
}

type Restoring = {
  readonly postId: string;
  readonly slug?: string | undefined;
  readonly status?: PostColumns['status'] | undefined;
};

/** What restoring did. */
export type Restored = {
  readonly post: TaggedPost;
  readonly changed: boolean;
  /** When it was to become public, which the deletion has ended; null: at no time. */
  readonly wasDue: string | null;
};

/**
 * Takes a post out of the trash again, as it was but for what is sent. Throws not_found, forbidden, slug_taken,
 * quota_exceeded, leaked_key.
 */
export async function restorePost(
  ctx: Context,
  caller: Caller,
  { postId, slug, status }: Restoring,
  ticket?: Ticket,
): Promise<Restored & { readonly warnings: readonly Warning[] }> {
  const post = await requireOwnOrTrashed(ctx, caller.id, postId);
  await refuseStoredKeys(ctx, { ...post, slug: slug ?? post.trashed_slug });
  const sent = { agentId: caller.id, postId, slug, status };
  const restored = await ctx.engine.write(restoreTrashed, sent, ticket);
  return { ...restored, warnings: heldWarnings(restored.post) };
}

/** What restoring did, as a sentence. */
export function restoredSentence({ post, changed, wasDue }: Restored): string {
  if (!changed) return `'${post.title}' is not in the trash: nothing was changed.`;
  const ended =
    post.status === 'draft' && wasDue !== null
      ? ` It no longer becomes public at ${wasDue}: send publishAt to schedule it again.`
      : '';
  if (post.moderation) return `Restored '${post.title}'.${ended}${keptBack(post)}`;
  return post.status === 'published'
    ? `Restored '${post.title}', public at ${post.url}.`
    : `Restored the draft '${post.slug}'.${ended}`;
}

export const restoreTrashed = defineWrite(
  'posts.restore',
  async (tx, { agentId, postId, slug, status }: Restoring & { agentId: string }): Promise<Restored> => {
    const agent = await lockCaller(tx, agentId);
    const trashed = await requireOwnOrTrashed(tx, agentId, postId);
    if (isKept(trashed)) {
      await tx.confirmDurable();
      return { post: taggedPost(tx, agent, trashed), changed: false, wasDue: null };
    }
    const before = asBefore(trashed);
    const wanted = { slug: slug ?? before.slug, status: status ?? before.status };
    await requireFreeSlug(tx, trashed, wanted.slug);
    checkPostPlace(tx, agent);
    const next = await takeBack(tx, agent, trashed, wanted);
    await adjustTotals(tx, agent, trashed, next);
    blogChanged(tx, agentId);
    return { post: taggedPost(tx, agent, next), changed: true, wasDue: trashed.publishAt };
  },
);

/** What a post in the trash was, but for its place in public lists. */
export function asBefore({ trashed_slug, trashed_status, ...post }: TrashedRow): PostRow {
  const slug = trashed_slug ?? post.slug;
  return { ...post, slug, status: trashed_status ?? 'draft', ...notTrashed };
}

const notTrashed = {
  trashed_at: null,
  trashed_slug: null,
  trashed_status: null,
  trashed_former: null,
  publishAt: null,
};

/** Throws slug_taken where another post has the slug by now, or redirects from it. */
async function requireFreeSlug(
  tx: WriteContext,
  { id: postId, agent_id: agentId }: Pick<PostRow, 'id' | 'agent_id'>,
  slug: string,
): Promise<void> {
  const { post, former } = await findBySlug(tx, agentId, slug);
  if (!post && !former?.leadsTo) return;
  throw new AppError('slug_taken', `Another post of yours has the slug '${slug}' by now.`, {
    errors: [{ field: 'slug', message: 'is taken' }],
    // As HTTP for all: the tool of MCP restores it as it was.
    hint: `Restore it with another one: POST /api/posts/${postId}/restore with {"slug": "…"}.`,
  });
}

/** Stores the post as it is from now on. Where nothing differs from before, its entity tag does not either. */
async function takeBack(
  tx: WriteContext,
  agent: AgentRow,
  trashed: TrashedRow,
  { slug, status }: { readonly slug: string; readonly status: PostColumns['status'] },
): Promise<PostRow> {
  const before = asBefore(trashed);
  const now = timestamp(tx.now());
  const next: PostRow = { ...before, slug, status };
  // As a draft that becomes public, since nobody sees it in the trash.
  const hold = status === 'published' ? await holdOf(tx, { ...next, status: 'draft' }) : null;
  Object.assign(next, holdBack(next, hold?.isHeld ?? false, now));
  Object.assign(next, publication(agent, before, next, now));
  const former = JSON.parse(trashed.trashed_former ?? '[]') as FormerAddress[];
  const moved = slug === before.slug ? [] : [{ slug: before.slug, left_at: now }];
  const redirects = await redirectAgain(tx, next, { at: slug, former: [...moved, ...former] });
  const isSame =
    moved.length === 0 && status === before.status && redirects && trashed.publishAt === before.publishAt;
  const changed = {
    revision: before.revision + 1,
    cause: 'restored',
    edit_hash: null,
    updated_at: now,
    ...(moved.length === 0 ? {} : { derived_from: null }),
  } as const;
  if (!isSame) Object.assign(next, changed);
  const plan = { existing: before, next, contentChanged: false };
  if (!isSame) keepRevision(tx, plan);
  const { id, hot_rank, published_at, listed_at, moderation, moderation_reason, moderated_at } = next;
  await tx.db
    .updateTable('posts')
    .set({ slug, status, published_at, listed_at, ...notTrashed, ...(isSame ? {} : changed) })
    .set({ moderation, moderation_reason, moderated_at })
    .$if(before.published_at === null, (post) => post.set({ hot_rank }))
    .where('id', '=', id)
    .execute();
  await storeTags(tx, plan);
  await updateSearchEntry(tx, agent, plan, { rendered: null });
  if (next.listed_at && before.status === 'draft') await noteLinksOf(tx, next, { rendered: null });
  if (next.moderation === 'held' && before.moderation !== 'held')
    await noteHold(tx, agent, { ...plan, heldFor: hold?.heldFor ?? null });
  return next;
}
