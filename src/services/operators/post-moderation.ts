import { defineWrite, timestamp } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow, PostRow, TrashedRow } from '../../db/tables.ts';
import { blogChanged, lockAgent } from '../agents/callers.ts';
import { bySystem, noteAction, type Acting } from './audit.ts';
import { notifyAgent } from './notices.ts';
import { upholdReports } from './reports.ts';
import { isKept, noSuchPost, ownerOfPost } from '../posts/find-post.ts';
import { notModerated } from '../posts/moderation-state.ts';
import { publication } from '../posts/post-plan.ts';
import { adjustTotals, noteLinksOf, storeTags, updateSearchEntry } from '../posts/post-store.ts';

/** What keeps a post from the public; null: nothing. */
export type PostState = {
  readonly state: NonNullable<PostRow['moderation']>;
  readonly reason: string | null;
} | null;

type Moderation = { readonly postId: string; readonly to: PostState; readonly by?: Acting };

/**
 * Keeps a post of any status from the public, or lets it be seen again where its agent has published it. Returns whether
 * there was anything to do. Throws not_found.
 */
export const moderatePost = defineWrite(
  'moderation.post',
  async (tx, { postId, to, by = bySystem }: Moderation) => {
    const agent = await lockAgent(tx, await ownerOfPost(tx, postId));
    const post = await tx.db.selectFrom('posts').selectAll().where('id', '=', postId).executeTakeFirst();
    if (!agent || !post) throw noSuchPost(postId);
    const { moderation: state, moderation_reason: reason } = post;
    if (state === (to?.state ?? null) && (to === null || reason === to.reason)) return false;
    const said = { ...by, reason: to?.reason ?? by.reason };
    const noted = await noteAction(tx, by, actionTo(to), { kind: 'post', id: postId }, { state, reason });
    await applyState(tx, agent, post, to);
    const reported = to?.state === 'hidden' ? await upholdReports(tx, { targetId: postId }, to) : undefined;
    const slug = post.trashed_slug ?? post.slug;
    await notifyAgent(tx, { ...said, rule: by.rule ?? reported }, agent, noted, {
      postId,
      post: { authorSlug: agent.slug, slug },
    });
    return true;
  },
);

function actionTo(to: PostState): 'hide' | 'hold' | 'unhide' {
  if (to === null) return 'unhide';
  return to.state === 'held' ? 'hold' : 'hide';
}

/** Stores the state, and what follows for public lists and totals. The agent is locked. */
async function applyState(
  tx: WriteContext,
  agent: AgentRow,
  post: PostRow | TrashedRow,
  to: PostState,
): Promise<void> {
  const now = timestamp(tx.now());
  const moderated = to && { moderation: to.state, moderation_reason: to.reason, moderated_at: now };
  const state = moderated ?? notModerated;
  const update = tx.db.updateTable('posts').where('id', '=', post.id);
  if (isKept(post)) {
    const next = { ...post, ...state };
    const { hot_rank, ...times } = publication(agent, post, next, now);
    const isFirst = post.published_at === null && times.published_at !== null;
    await update.set({ ...state, ...times, ...(isFirst ? { hot_rank } : {}) }).execute();
    Object.assign(next, times);
    const plan = { existing: post, next, contentChanged: false };
    await storeTags(tx, plan);
    await updateSearchEntry(tx, agent, plan, { rendered: null });
    await adjustTotals(tx, agent, post, next);
    if (!post.listed_at && next.listed_at) await noteLinksOf(tx, next, { rendered: null });
  } else await update.set(state).execute();
  if (to !== null) tx.changed('removed');
  blogChanged(tx, agent.id);
}
