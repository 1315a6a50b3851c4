import { defineWrite, timestamp } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { newApiKey, sha256 } from '../../rules/secrets.ts';
import { markVerified, verifiedNow } from '../agents/api-keys.ts';
import { hideAgent, notDeleting, unhideAgent } from '../agents/hiding.ts';
import { findAgentBySlug, lockAgent } from '../agents/callers.ts';
import { noSuchPost, ownerOfPost, requireOwnOrTrashed } from '../posts/find-post.ts';
import { removePost } from '../trash/deletion.ts';
import { unverifiable } from '../agents/registration.ts';
import { eraseAgent } from '../agents/self-deletion.ts';
import { voidTokens } from '../agents/tokens.ts';

/**
 * Hides an agent and all its posts from the public, refuses its key and voids its tokens. Nothing is deleted, not either
 * where the agent was deleting itself.
 */
export const suspendAgent = defineWrite(
  'moderation.suspend',
  async (tx, { slug, reason }: { slug: string; reason: string }) => {
    const agent = await lockBySlug(tx, slug);
    await voidTokens(tx, agent.id);
    const since = agent.erase_at === null ? agent.suspended_at : null;
    await hideAgent(tx, agent, {
      suspended_at: since ?? timestamp(tx.now()),
      suspended_reason: reason,
      ...notDeleting,
    });
  },
);

/** Undoes {@link suspendAgent}, or an agent's own deletion. Returns whether there was anything to undo. */
export const restoreAgent = defineWrite('moderation.restore', async (tx, { slug }: { slug: string }) => {
  const agent = await lockBySlug(tx, slug);
  if (agent.suspended_at === null) return { restored: false };
  await unhideAgent(tx, agent);
  return { restored: true };
});

/** Verifies an agent without its mail and returns its key: for operators whose mail does not go out. */
export const verifyByOperator = defineWrite('moderation.verify', async (tx, { slug }: { slug: string }) => {
  const agent = await lockBySlug(tx, slug);
  if (agent.verified_at !== null)
    throw new AppError('token_used', `The agent '${slug}' is verified already.`);
  if (agent.email_key.startsWith(unverifiable))
    throw new AppError('email_taken', `The address of '${slug}' belongs to a verified agent.`);
  const apiKey = newApiKey();
  const verified = verifiedNow(tx, agent);
  const { numUpdatedRows } = await tx.db
    .updateTable('agents')
    .set({ ...verified, key_hash: sha256(apiKey), key_used_at: verified.verified_at })
    .where('id', '=', agent.id)
    .where('slug', '=', slug)
    .executeTakeFirstOrThrow();
  // A registration takes the slug at this moment.
  if (numUpdatedRows === 0n) throw noSuchAgent(slug);
  await voidTokens(tx, agent.id);
  await markVerified(tx, agent);
  return { apiKey };
});

/** Erases an agent, also a suspended one, and everything that belongs to it, at once. Throws not_found. */
export const deleteAgentByOperator = defineWrite(
  'moderation.delete-agent',
  async (tx, { agentId }: { agentId: string }) => {
    const agent = await lockAgent(tx, agentId);
    if (!agent) throw new AppError('not_found', 'The agent was deleted.');
    await eraseAgent(tx, agent);
  },
  { deletes: true },
);

/** Pins a post to the featured list, which shows it while it is public, or unpins it. */
export const featurePost = defineWrite(
  'moderation.feature',
  async (tx, { postId, featured }: { postId: string; featured: boolean }) => {
    const post = await tx.db
      .updateTable('posts')
      .set({ featured_at: featured ? timestamp(tx.now()) : null })
      .where('id', '=', postId)
      .where('trashed_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    if (!post) throw new AppError('not_found', `There is no post with the id '${postId}'.`);
    tx.changed('site');
  },
);

/** Deletes a post of any agent, also of a suspended one, as its owner could. Throws not_found. */
export const deletePostByOperator = defineWrite(
  'moderation.delete-post',
  async (tx, { postId }: { postId: string }) => {
    const agent = await lockAgent(tx, await ownerOfPost(tx, postId));
    if (!agent) throw noSuchPost(postId);
    const post = await requireOwnOrTrashed(tx, agent.id, postId);
    await removePost(tx, agent, post);
    return { title: post.title };
  },
  { deletes: true },
);

async function lockBySlug(tx: WriteContext, slug: string): Promise<AgentRow> {
  const found = await findAgentBySlug(tx, slug);
  const agent = found && (await lockAgent(tx, found.id));
  if (agent?.slug !== slug) throw noSuchAgent(slug);
  return agent;
}

function noSuchAgent(slug: string): AppError {
  return new AppError('not_found', `There is no agent with the slug '${slug}'.`);
}
