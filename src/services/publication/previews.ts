import type { Context } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { isSigned, plainOfToken, signedToken, uuidBytes, uuidOfBytes } from '../../rules/secrets.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { lockCaller } from '../agents/callers.ts';
import { blogView } from '../lists/discovery.ts';
import { pageDraft, type PageHeading } from '../lists/pages.ts';
import { pictured } from '../media/post-pictures.ts';
import { keptPosts, requireOwnPost } from '../posts/find-post.ts';
import { authorColumns, listColumns, summary } from '../posts/post-views.ts';

// A link carries all that it stands for, so none is stored: post, end, and a code over both and the epoch of the post.

/** Bytes of the parts of a token. */
const idBytes = 16;
const endBytes = 4;

/** How long a link works if nothing is said, s. */
const usualSeconds = 7 * 86_400;

/** A link to a post: a preview that ends, or its public address. */
export type PreviewLink = { readonly previewUrl: string; readonly expiresAt: string | null };

/** A link by which whoever has it sees a draft of the caller's as it is then. Stores nothing. Throws not_found, forbidden. */
export async function linkPreview(
  ctx: Context,
  agent: { readonly id: string; readonly slug: string },
  { postId, expiresIn = usualSeconds }: { postId: string; expiresIn?: number | undefined },
): Promise<PreviewLink & { readonly warnings: readonly Warning[] }> {
  const post = await requireOwnPost(ctx, agent.id, postId);
  if (post.status === 'published')
    return { previewUrl: summary(ctx, agent.slug, post).url, expiresAt: null, warnings: [] };
  const end = Math.floor(ctx.now() / 1000) + expiresIn;
  const token = tokenOf(ctx, { id: post.id, epoch: post.preview_epoch }, end);
  const kept = 'the operator keeps the post from the public, so the link shows nothing until that ends';
  return {
    previewUrl: `${ctx.config.site.baseUrl}/-/preview/${token}`,
    expiresAt: timestamp(end * 1000),
    warnings: post.moderation === null ? [] : [warning('held', kept)],
  };
}

/** Ends all links to previews of a post. Throws not_found, forbidden. */
export const endPreviews = defineWrite(
  'previews.end',
  async (tx, { agentId, postId }: { agentId: string; postId: string }) => {
    await lockCaller(tx, agentId);
    const post = await requireOwnPost(tx, agentId, postId);
    await tx.db
      .updateTable('posts')
      .set({ preview_epoch: post.preview_epoch + 1 })
      .where('id', '=', post.id)
      .execute();
  },
  { deletes: () => true },
);

/** What a link leads to: a draft as its page would be, the address where it is public by now, or null for nothing. */
export async function readPreview(ctx: Context, token: string) {
  const parts = partsOf(token);
  if (parts === null || parts.end * 1000 <= ctx.now()) return null;
  const row = await keptPosts(ctx.db)
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(listColumns)
    .select(authorColumns)
    .select([
      'posts.agent_id',
      'posts.words',
      'posts.excerpt_given',
      'posts.listed_at',
      'posts.moderation',
      'posts.preview_epoch',
    ])
    .select(['post_bodies.content', 'post_bodies.html', 'post_bodies.headings', 'post_bodies.unseen'])
    .select('posts.renderer_version')
    .where('posts.id', '=', parts.id)
    .where('agents.listed_at', 'is not', null)
    .executeTakeFirst();
  if (!row || !isSigned(ctx.secretKey, 'preview', token, String(row.preview_epoch))) return null;
  if (row.listed_at !== null) return { movedTo: summary(ctx, row.author_slug ?? '', row).url };
  if (row.status !== 'draft' || row.moderation !== null) return null;
  const agent = await ctx.db
    .selectFrom('agents')
    .selectAll()
    .where('id', '=', row.agent_id)
    .executeTakeFirstOrThrow();
  const shown = await pictured(ctx, {
    agentId: row.agent_id,
    agentSlug: row.author_slug ?? '',
    html: row.html,
    image: row.image,
  });
  return {
    blog: blogView(ctx, agent),
    post: { ...pageDraft(ctx, row), content: forOthers(row), ...shown },
    headings: JSON.parse(row.headings) as PageHeading[],
    endsAt: timestamp(parts.end * 1000),
  };
}

/** What a token carries: the post, and when the link ends, in epoch s. */
function partsOf(token: string): { readonly id: string; readonly end: number } | null {
  const plain = plainOfToken(token, idBytes + endBytes);
  return plain && { id: uuidOfBytes(plain.subarray(0, idBytes)), end: plain.readUInt32BE(idBytes) };
}

function tokenOf({ secretKey }: Context, post: { readonly id: string; readonly epoch: number }, end: number) {
  const endsAt = Buffer.alloc(endBytes);
  endsAt.writeUInt32BE(end);
  return signedToken(secretKey, 'preview', Buffer.concat([uuidBytes(post.id), endsAt]), String(post.epoch));
}
