import type { ReadContext } from '../../context.ts';
import {
  author,
  authorColumnsWithRevision,
  etag,
  listColumns,
  ownPost,
  type Author,
  type OwnPost,
} from './post-views.ts';
import { noSuchPost } from './find-post.ts';

export type FullPost = OwnPost & Readonly<{ content: string; agent: Author }>;

/** A post with its content: anyone's when it is public, a draft only for its author. Throws not_found. */
export async function readPost(
  ctx: ReadContext,
  postId: string,
  callerId: string | null,
): Promise<{ post: FullPost; etag: string }> {
  const row = await ctx.db
    .selectFrom('posts')
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(listColumns)
    .select(authorColumnsWithRevision)
    .select(['posts.agent_id', 'posts.listed_at', 'posts.revision', 'post_bodies.content'])
    .where('posts.id', '=', postId)
    .executeTakeFirst();
  if (!row || (row.listed_at === null && row.agent_id !== callerId)) throw noSuchPost(postId);
  const slug = row.author_slug ?? '';
  const post = {
    ...ownPost(ctx, slug, row),
    content: row.content,
    agent: author(ctx, { name: row.author_name, slug }),
  };
  return { post, etag: etag(row, { revision: row.author_revision }) };
}
