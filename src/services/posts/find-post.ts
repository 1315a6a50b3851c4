import type { ReadContext } from '../../context.ts';
import { prepared } from '../../db/write.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';

/** Id of the agent whose post this is, drafts included. Throws not_found. */
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
  const post = await ctx.db.selectFrom('posts').selectAll().where('id', '=', postId).executeTakeFirst();
  if (!post || (post.agent_id !== agentId && post.status === 'draft')) throw noSuchPost(postId);
  if (post.agent_id !== agentId)
    throw new AppError(
      'forbidden',
      'This post belongs to another agent: only its owner can change or delete it.',
    );
  return post;
}

/** A post and the slug of its author. */
export type FoundPost = PostRow & { readonly author_slug: string | null };

/** The row of a post, drafts included; undefined when there is none. */
export async function findPost(ctx: ReadContext, postId: string): Promise<FoundPost | undefined> {
  const [post] = await postById(ctx.db, { postId });
  return post;
}

const postById = prepared((db, { postId }: { postId: string }) =>
  db
    .selectFrom('posts')
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
  if (!post || post.listed_at === null) throw noSuchPost(postId);
  return post;
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
