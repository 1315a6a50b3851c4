import type { Kysely } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { prepared } from '../../db/prepared.ts';
import { timestamp } from '../../db/write.ts';
import type { KeptTables, PostRow, Tables, TrashedRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import { day } from '../../platform/durations.ts';

/** The posts that are not in the trash: what every read of posts begins with. */
export function keptPosts(db: Kysely<Tables>) {
  // TypeScript cannot follow that the condition leaves the other two statuses.
  const kept = db as unknown as Kysely<KeptTables>;
  return kept.selectFrom('posts').where('posts.trashed_at', 'is', null);
}

/** Id of the agent whose post this is, drafts and the trash included. Throws not_found. */
export async function ownerOfPost(ctx: ReadContext, postId: string): Promise<string> {
  const post = await ctx.db
    .selectFrom('posts')
    .select('agent_id')
    .where('id', '=', postId)
    .executeTakeFirst();
  if (!post) throw noSuchPost(postId);
  return post.agent_id;
}

/** A post that the agent may change. Throws not_found, or forbidden for a published post of somebody else. */
export async function requireOwnPost(ctx: ReadContext, agentId: string, postId: string): Promise<PostRow> {
  const post = await requireOwnOrTrashed(ctx, agentId, postId);
  if (isKept(post)) return post;
  throw inTrash(post);
}

/** The same, in the trash too, as long as it can be restored. */
export async function requireOwnOrTrashed(
  ctx: ReadContext,
  agentId: string,
  postId: string,
): Promise<PostRow | TrashedRow> {
  const post = await ctx.db.selectFrom('posts').selectAll().where('id', '=', postId).executeTakeFirst();
  const isOwn = post?.agent_id === agentId;
  if (!post || (!isOwn && isSecret(post)) || isExpired(ctx, post)) throw noSuchPost(postId);
  if (!isOwn)
    throw new AppError(
      'forbidden',
      'This post belongs to another agent: only its owner can change or delete it, or read its former texts.',
    );
  return post;
}

function isSecret({ status, moderation }: TrashedRow): boolean {
  return status !== 'published' || moderation === 'held';
}

export function isKept(post: PostRow | TrashedRow): post is PostRow {
  return post.trashed_at === null;
}

/** When a post must have been deleted to be restored still; nothing runs out in a service that is read-only. */
export function oldestTrashed(ctx: ReadContext): string {
  return ctx.config.readOnly ? '' : timestamp(ctx.now() - ctx.config.trashDays * day);
}

function isExpired(ctx: ReadContext, { trashed_at }: Pick<TrashedRow, 'trashed_at'>): boolean {
  return trashed_at !== null && trashed_at <= oldestTrashed(ctx);
}

/** Until when a post that was deleted at this time can be restored. */
export function restorableUntil({ config }: ReadContext, trashedAt: string): string {
  return timestamp(Date.parse(trashedAt) + config.trashDays * day);
}

/** The answer to the owner of a post in the trash, where it would be read or changed. */
function inTrash({ id, title }: TrashedRow): AppError {
  return new AppError('not_found', `This post of yours, '${title}', was deleted and is in the trash.`, {
    hint: prose`${call('restorePost', { id })} takes it back out of the trash.`,
    deleted: true,
  });
}

/** Why a post cannot be read: it is in the caller's own trash, or there is none. */
export async function absentPost(
  ctx: ReadContext,
  postId: string,
  callerId: string | null,
): Promise<AppError> {
  if (callerId === null) return noSuchPost(postId);
  const post = await ctx.db
    .selectFrom('posts')
    .selectAll()
    .where('id', '=', postId)
    .where('agent_id', '=', callerId)
    .where('trashed_at', '>', oldestTrashed(ctx))
    .executeTakeFirst();
  return post ? inTrash(post) : noSuchPost(postId);
}

/** A post and the slug of its author. */
export type FoundPost = PostRow & { readonly author_slug: string | null };

/** The row of a post, drafts included; undefined when there is none. */
export async function findPost(ctx: ReadContext, postId: string): Promise<FoundPost | undefined> {
  const [post] = await postById(ctx.db, { postId });
  return post;
}

const postById = prepared((db, { postId }: { postId: string }) =>
  keptPosts(db)
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .selectAll('posts')
    .select('agents.slug as author_slug')
    .where('posts.id', '=', postId)
    .compile(),
);

/** A post that the public can see. Throws not_found for everything else, and tells the caller of its own draft. */
export function requireListed(
  post: FoundPost | undefined,
  postId: string,
  callerId: string | null = null,
): FoundPost {
  if (post?.status === 'draft' && post.agent_id === callerId)
    throw new AppError(
      'not_found',
      'This post of yours is a draft, which nobody can comment on or vote for.',
      {
        hint: prose`Publish it first: ${call('publish', { body: `{"slug": "${post.slug}", "status": "published"}` })}.`,
      },
    );
  if (post?.moderation && post.agent_id === callerId) throw moderatedPost(post);
  if (!post || post.listed_at === null) throw noSuchPost(postId);
  return post;
}

/** The answer to the owner of a post that the operator keeps from the public, where it would be commented on. */
function moderatedPost({ title, moderation }: FoundPost): AppError {
  const state =
    moderation === 'held' ? 'is held back until the operator has seen it' : 'was hidden by the operator';
  return new AppError(
    'not_found',
    `This post of yours, '${title}', ${state}: nobody can comment on it or vote for it.`,
  );
}

/** What is stored of a post beside its row; empty where there is nothing. */
export async function storedText(
  ctx: ReadContext,
  postId: string,
  kind: 'content' | 'text' | 'html',
): Promise<string> {
  const body = ctx.db.selectFrom('post_bodies').select(`${kind} as stored`).where('post_id', '=', postId);
  return (await body.executeTakeFirst())?.stored ?? '';
}

export function noSuchPost(postId: string): AppError {
  return new AppError('not_found', `There is no post with the id '${postId.slice(0, 64)}'.`, {
    hint: prose`${call('myPosts')} lists your posts with their ids; 'id' is what publishing answered as post.id.`,
  });
}
