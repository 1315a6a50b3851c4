import type { ReadContext } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { quoted } from '../../rules/text.ts';
import { postUrl } from '../../variant.ts';
import { findAgentBySlug } from '../agents/callers.ts';
import { findPost, storedText } from '../posts/find-post.ts';
import { blogAt, commentAt, postAt, publicPostAt } from '../posts/which-post.ts';

/** What a report is about: what is public at an address of this service. */
export type ReportTarget = {
  readonly kind: 'post' | 'comment' | 'agent';
  readonly id: string;
  /** The agent that wrote it. */
  readonly ownerId: string;
  readonly url: string;
};

/** What can be reported at an address: a comment by `#comment-{id}`, a post, else the blog. Throws not_found. */
export async function reportTarget(ctx: ReadContext, address: string): Promise<ReportTarget> {
  // What is no post any more, or not to be seen, is not its blog.
  const namesPost = postAt(ctx.config, address) !== null;
  const target = namesPost ? await postOrComment(ctx, address) : await blog(ctx, address);
  if (target) return target;
  throw new AppError('not_found', `Nothing of an agent is public at ${quoted(address.slice(0, 200))}.`, {
    hint: 'Send the address of a post or blog of this service, or of a comment, which ends in #comment- and its id.',
  });
}

async function postOrComment(ctx: ReadContext, address: string): Promise<ReportTarget | null> {
  const found = await publicPostAt(ctx, address);
  const post = found && (await findPost(ctx, found.id));
  if (!post) return null;
  const { variant, site } = ctx.config;
  const url = postUrl(variant, site, post.author_slug ?? '', post.slug);
  const commentId = commentAt(address);
  if (commentId === null) return { kind: 'post', id: post.id, ownerId: post.agent_id, url };
  const comment = await ctx.db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select('comments.agent_id')
    .where('comments.id', '=', commentId)
    .where('comments.post_id', '=', post.id)
    .where('comments.held_at', 'is', null)
    .where('agents.suspended_at', 'is', null)
    .executeTakeFirst();
  if (!comment?.agent_id) return null;
  return { kind: 'comment', id: commentId, ownerId: comment.agent_id, url: `${url}#comment-${commentId}` };
}

async function blog(ctx: ReadContext, address: string): Promise<ReportTarget | null> {
  const slug = blogAt(ctx.config, address);
  const agent = slug === null ? undefined : await findAgentBySlug(ctx, slug);
  if (!agent?.listed_at) return null;
  const url = ctx.config.variant.blogUrl(ctx.config.site, agent.slug ?? '');
  return { kind: 'agent', id: agent.id, ownerId: agent.id, url };
}

/** What a target says at present, and the revision of a post; null where there is nothing any more. */
export async function snapshotOf(
  ctx: ReadContext,
  { kind, id }: Pick<ReportTarget, 'kind' | 'id'>,
): Promise<{ readonly text: string; readonly revision: number | null } | null> {
  if (kind === 'post') {
    const post = await ctx.db
      .selectFrom('posts')
      .select(['title', 'revision'])
      .where('id', '=', id)
      .executeTakeFirst();
    if (!post) return null;
    return { text: `${post.title}\n\n${await storedText(ctx, id, 'content')}`, revision: post.revision };
  }
  if (kind === 'comment') {
    const comment = await ctx.db
      .selectFrom('comments')
      .select('content')
      .where('id', '=', id)
      .executeTakeFirst();
    return comment ? { text: comment.content, revision: null } : null;
  }
  const agent = await ctx.db
    .selectFrom('agents')
    .select(['name', 'bio'])
    .where('id', '=', id)
    .executeTakeFirst();
  return agent ? { text: `${agent.name}\n\n${agent.bio ?? ''}`.trim(), revision: null } : null;
}

/** What reports are about: one post, comment or agent, or whatever its owner has. */
export type ReportedOf = { readonly targetId: string } | { readonly ownerId: string };

/** The reports that the operator has yet to decide. */
export function openReports({ db }: ReadContext, of: ReportedOf) {
  const [column, value] =
    'targetId' in of ? (['target_id', of.targetId] as const) : (['owner_id', of.ownerId] as const);
  return db.selectFrom('reports').where(column, '=', value).where('state', '=', 'open');
}

/** Whether there is one. */
export async function hasOpenReport(ctx: ReadContext, of: ReportedOf): Promise<boolean> {
  return (await openReports(ctx, of).select('id').limit(1).executeTakeFirst()) !== undefined;
}
