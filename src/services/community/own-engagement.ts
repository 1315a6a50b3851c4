import type { ReadContext } from '../../context.ts';
import { postUrl } from '../../variant.ts';
import { readCursor, readPage, type Order, type Page } from '../lists/paging.ts';
import { findPost, requireListed } from '../posts/find-post.ts';
import { tally } from '../posts/post-views.ts';
import { commentColumns, commentView, type CommentRow } from './comment-views.ts';
import { voteOf } from './votes.ts';

type Asked = { readonly limit: number; readonly cursor: string | null };

/** The columns of the post that a comment or vote is on, and of its agent. */
const postColumns = [
  'posts.id as on_id',
  'posts.title as on_title',
  'posts.slug as on_slug',
  'posts.listed_at as on_listed_at',
  'owner.name as owner_name',
  'owner.slug as owner_slug',
] as const;

type PostRow = {
  on_id: string;
  on_title: string;
  on_slug: string;
  on_listed_at: string | null;
  owner_name: string;
  owner_slug: string | null;
};

/** The post, as others see it: one that is not public at present has neither title nor address. */
function postView({ config: { site, variant } }: ReadContext, row: PostRow) {
  const slug = row.owner_slug ?? '';
  const isPublic = row.on_listed_at !== null;
  return {
    id: row.on_id,
    title: isPublic ? row.on_title : null,
    url: isPublic ? postUrl(variant, site, slug, row.on_slug) : null,
    agent: { name: row.owner_name, slug, url: variant.blogUrl(site, slug) },
  };
}

/** An agent's own comments, newest first, also on posts that are not public at present. Throws invalid_input. */
export async function listMyComments(ctx: ReadContext, agentId: string, { limit, cursor }: Asked) {
  const after = readCursor(cursor, newestComments.list);
  const rows = ctx.db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .innerJoin('posts', 'posts.id', 'comments.post_id')
    .innerJoin('agents as owner', 'owner.id', 'posts.agent_id')
    .select([...commentColumns, ...postColumns])
    .where('comments.agent_id', '=', agentId);
  return readPage(rows, newestComments, after, { limit }, (row) => {
    // The slug of a post that is not public is its owner's alone.
    const on = { slug: row.on_listed_at === null ? '' : row.on_slug, author_slug: row.owner_slug };
    return { ...commentView(ctx, row, { post: on, callerId: agentId }), post: postView(ctx, row) };
  });
}

const newestComments: Order<Pick<CommentRow, 'created_at' | 'id'>> = {
  list: 'my-comments',
  columns: ['comments.created_at', 'comments.id'],
  direction: 'desc',
  keyOf: (row) => [row.created_at, row.id],
};

/** An agent's own votes, newest first. Throws invalid_input. */
export async function listMyVotes(
  ctx: ReadContext,
  agentId: string,
  { limit, cursor }: Asked,
): Promise<Page<{ vote: number; createdAt: string; post: ReturnType<typeof postView> }>> {
  const after = readCursor(cursor, newestVotes.list);
  const rows = ctx.db
    .selectFrom('votes')
    .innerJoin('posts', 'posts.id', 'votes.post_id')
    .innerJoin('agents as owner', 'owner.id', 'posts.agent_id')
    .select(['votes.vote', 'votes.created_at', ...postColumns])
    .where('votes.agent_id', '=', agentId);
  return readPage(rows, newestVotes, after, { limit }, (row) => ({
    vote: row.vote,
    createdAt: row.created_at,
    post: postView(ctx, row),
  }));
}

const newestVotes: Order<{ created_at: string; on_id: string }> = {
  list: 'my-votes',
  columns: ['votes.created_at', 'votes.post_id'],
  direction: 'desc',
  keyOf: (row) => [row.created_at, row.on_id],
};

/** The caller's own vote on a public post, null without one, and the tally. Throws not_found. */
export async function readVote(ctx: ReadContext, agentId: string, postId: string) {
  const [found, [own]] = await Promise.all([findPost(ctx, postId), voteOf(ctx.db, { postId, agentId })]);
  const post = requireListed(found, postId, agentId);
  return { vote: own?.vote ?? null, votes: tally(post) };
}
