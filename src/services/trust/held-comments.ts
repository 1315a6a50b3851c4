import { defineWrite, timestamp } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { bySystem, noteAction, type Acting } from '../community/audit.ts';
import { addToCommentCount } from '../community/engagement.ts';

/** Holds a comment back, or publishes one that is held. Returns whether that was to do. */
export const setCommentHeld = defineWrite(
  'trust.hold-comment',
  async (
    tx,
    { commentId, isHeld, by = bySystem }: { commentId: string; isHeld: boolean; by?: Acting },
  ): Promise<boolean> => {
    const find = () =>
      tx.db
        .selectFrom('comments')
        .select(['agent_id', 'post_id', 'held_at'])
        .where('id', '=', commentId)
        .executeTakeFirst();
    const author = (await find())?.agent_id;
    const agent = author && (await lockAgent(tx, author));
    if (!agent) return false;
    const change = agent.suspended_at === null ? 1 : 0;
    const comment = await find();
    if (!comment?.agent_id || (comment.held_at !== null) === isHeld) return false;
    // The post is locked by its count, as where a comment is added.
    await addToCommentCount(tx, comment.post_id, isHeld ? -change : change);
    const held_at = isHeld ? timestamp(tx.now()) : null;
    await tx.db.updateTable('comments').set({ held_at }).where('id', '=', commentId).execute();
    // Readers of the inbox have read on meanwhile, so its events come once more.
    if (!isHeld)
      await tx.db.updateTable('inbox').set({ seq: null }).where('comment_id', '=', commentId).execute();
    const action = isHeld ? 'hold-comment' : 'release-comment';
    await noteAction(tx, by, action, { kind: 'comment', id: commentId });
    return true;
  },
);
