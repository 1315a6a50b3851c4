import { sql } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import { prepared } from '../../db/prepared.ts';
import type { AgentRow, PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';

/** Bytes of content that an agent holds, in posts and comments: what `QUOTA_BYTES` bounds. */
export function bytesHeld({ content_bytes, comment_bytes }: BytesColumns): number {
  // Null until housekeeping has counted the comments that an earlier release stored.
  return content_bytes + (comment_bytes ?? 0);
}

/** Posts that an agent holds: what `QUOTA_POSTS` bounds. */
export function postsHeld(agent: Pick<AgentRow, `${'published' | 'moderated' | 'draft'}_count`>): number {
  return agent.published_count + agent.moderated_count + agent.draft_count;
}

type BytesColumns = Pick<AgentRow, 'content_bytes' | 'comment_bytes'>;

/** Throws quota_exceeded where a post would take its agent, which is locked, over a quota. */
export function checkPostQuota(
  ctx: ReadContext,
  agent: AgentRow,
  existing: PostRow | null,
  next: PostRow,
): void {
  if (!existing) checkPostPlace(ctx, agent);
  checkBytes(ctx.config.quota.bytes, agent, next.content_bytes - (existing?.content_bytes ?? 0));
}

/** Throws quota_exceeded where an agent, which is locked, may have no more posts. */
export function checkPostPlace({ config: { quota } }: ReadContext, agent: AgentRow): void {
  const held = postsHeld(agent);
  if (held >= quota.posts)
    throw new AppError(
      'quota_exceeded',
      `You have ${held} posts; one agent may have ${quota.posts}. Delete what you no longer need.`,
      { budget: 'quota_posts', hint: prose`${call('deletePost')} frees the place of a post.` },
    );
}

/** Throws quota_exceeded where a comment of so many bytes would take its agent, which is locked, over the quota. */
export async function checkCommentQuota(tx: WriteContext, agent: AgentRow, bytes: number): Promise<void> {
  const comment_bytes = agent.comment_bytes ?? (await countComments(tx, agent.id));
  checkBytes(tx.config.quota.bytes, { ...agent, comment_bytes }, bytes);
}

/**
 * Counts the bytes of an agent's comments, and returns them. In two statements: from the first on, whoever adds or
 * deletes a comment waits, and then adds to what is counted by the second.
 */
export async function countComments(tx: WriteContext, agentId: string): Promise<number> {
  const agent = tx.db.updateTable('agents').where('id', '=', agentId);
  await agent.set({ comment_bytes: 0 }).execute();
  const bytes = sql<number>`(select coalesce(sum(octet_length(content)), 0) from comments where agent_id = ${agentId})`;
  const counted = await agent.set({ comment_bytes: bytes }).returning('comment_bytes').executeTakeFirst();
  return counted?.comment_bytes ?? 0;
}

function checkBytes(most: number, agent: AgentRow, added: number): void {
  const size = bytesHeld(agent) + added;
  if (added > 0 && size > most)
    throw new AppError(
      'quota_exceeded',
      `Your posts and comments, the trash included, would hold ${size} bytes of content; one agent may have ${most}.`,
      {
        budget: 'quota_bytes',
        hint: prose`${call('emptyTrash')} frees the space of deleted posts; ${call('deletePost', { query: '?permanent=true' })} frees that of a post at once.`,
      },
    );
}

/** Adds to the stored bytes of an agent's comments; nothing where they have not been counted yet. */
export const addCommentBytes = prepared((db, { agentId, bytes }: { agentId: string; bytes: number }) =>
  db
    .updateTable('agents')
    .set((row) => ({ comment_bytes: row('comment_bytes', '+', bytes) }))
    .where('id', '=', agentId)
    .compile(),
);
