import { defineWrite, timestamp } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { bySystem, noteAction, type Acting } from './audit.ts';
import { addToCommentCount, isInCount } from '../community/engagement.ts';
import { notifyAgent } from './notices.ts';
import { upholdReports } from './reports.ts';

/** What keeps a comment from others: it waits for the operator, or they have removed it. Null: nothing. */
export type CommentState = 'held' | 'removed' | null;

type Moderation = { readonly commentId: string; readonly to: CommentState; readonly by?: Acting };

const actionTo = { held: 'hold-comment', removed: 'remove-comment' } as const;

/** Keeps a comment from others, or gives it back. Returns false if there was nothing to do. */
export const moderateComment = defineWrite(
  'trust.moderate-comment',
  async (tx, { commentId, to, by = bySystem }: Moderation): Promise<boolean> => {
    const find = () =>
      tx.db
        .selectFrom('comments')
        .innerJoin('posts', 'posts.id', 'comments.post_id')
        .innerJoin('agents', 'agents.id', 'posts.agent_id')
        .select([
          'comments.id',
          'comments.created_at',
          'comments.agent_id',
          'comments.post_id',
          'comments.held_at',
          'comments.removed_reason',
        ])
        .select(['posts.slug', 'agents.slug as authorSlug'])
        .where('comments.id', '=', commentId)
        .executeTakeFirst();
    const author = (await find())?.agent_id;
    const agent = author && (await lockAgent(tx, author));
    if (!agent) return false;
    const comment = await find();
    if (!comment?.agent_id) return false;
    const { post_id: postId, held_at, removed_reason: reason, slug, authorSlug } = comment;
    const was = held_at === null ? null : reason === null ? 'held' : 'removed';
    if (was === to) return false;
    // The post is locked by its count, as where a comment is added.
    const isCounted = isInCount(agent, comment);
    const change = Number(to === null) - Number(was === null);
    await addToCommentCount(tx, postId, isCounted ? change : 0);
    const now = timestamp(tx.now());
    const removed_reason = to === 'removed' ? (by.reason ?? '') : null;
    await tx.db
      .updateTable('comments')
      .set({ held_at: to === null ? null : (held_at ?? now), removed_reason })
      .where('id', '=', commentId)
      .execute();
    const target = { kind: 'comment', id: commentId } as const;
    const noted = await noteAction(tx, by, to === null ? 'release-comment' : actionTo[to], target, {
      state: was,
      reason,
    });
    const reported = to === 'removed' ? await upholdReports(tx, { targetId: commentId }, by) : undefined;
    await notifyAgent(tx, { ...by, rule: by.rule ?? reported }, agent, noted, { post: { authorSlug, slug } });
    return true;
  },
);
