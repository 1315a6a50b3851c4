import { defineWrite, timestamp } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { newApiKey, sha256 } from '../../rules/secrets.ts';
import { markVerified, verifiedNow } from '../agents/api-keys.ts';
import { hideAgent, notDeleting, unhideAgent } from '../agents/hiding.ts';
import { findAgentBySlug, lockAgent } from '../agents/callers.ts';
import { findPost, noSuchPost, ownerOfPost, requireOwnOrTrashed } from '../posts/find-post.ts';
import { removePost } from '../trash/deletion.ts';
import { unverifiable } from '../agents/registration.ts';
import { eraseAgent } from '../agents/self-deletion.ts';
import { voidTokens } from '../agents/tokens.ts';
import { upholdReports } from '../operators/reports.ts';
import { bySystem, noteAction, type Acting } from './audit.ts';
import { notifyAgent } from './notices.ts';

type By = { readonly by?: Acting };
type Named = { readonly slug: string } | { readonly agentId: string };

/**
 * Hides an agent and all its posts from the public, refuses its key and voids its tokens. Nothing is deleted, not either
 * where the agent was deleting itself.
 */
export const suspendAgent = defineWrite(
  'moderation.suspend',
  async (tx, { reason, by = bySystem, ...named }: Named & By & { readonly reason: string }) => {
    const agent = await lockNamed(tx, named);
    const isNew = agent.suspended_at === null || agent.erase_at !== null;
    const was = isNew ? {} : { reason: agent.suspended_reason };
    const target = { kind: 'agent', id: agent.id } as const;
    await noteAction(tx, { ...by, reason }, isNew ? 'suspend' : 'change-reason', target, was);
    await upholdReports(tx, { ownerId: agent.id }, { reason });
    await notifyAgent(tx, { ...by, reason }, agent, { what: 'suspended' });
    await voidTokens(tx, agent.id);
    await hideAgent(tx, agent, {
      suspended_at: (isNew ? null : agent.suspended_at) ?? timestamp(tx.now()),
      suspended_reason: reason,
      ...notDeleting,
    });
  },
);

/** Undoes {@link suspendAgent}, or an agent's own deletion. Returns whether there was anything to undo. */
export const restoreAgent = defineWrite(
  'moderation.restore',
  async (tx, { by = bySystem, ...named }: Named & By) => {
    const agent = await lockNamed(tx, named);
    if (agent.suspended_at === null) return { restored: false };
    const target = { kind: 'agent', id: agent.id } as const;
    // With the reason, so that undoing it says it again.
    if (agent.erase_at === null)
      await noteAction(tx, by, 'restore', target, { reason: agent.suspended_reason });
    else await noteAction(tx, by, 'undo-deletion', target);
    await notifyAgent(tx, by, agent, { what: 'restored' });
    await unhideAgent(tx, agent);
    return { restored: true };
  },
);

/** Verifies an agent without its mail and returns its key: for operators whose mail does not go out. */
export const verifyByOperator = defineWrite(
  'moderation.verify',
  async (tx, { slug, by = bySystem }: By & { slug: string }) => {
    const agent = await lockNamed(tx, { slug });
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
    await noteAction(tx, by, 'verify', { kind: 'agent', id: agent.id });
    return { apiKey };
  },
);

/** Erases an agent, also a suspended one, and everything that belongs to it, at once. Throws not_found. */
export const deleteAgentByOperator = defineWrite(
  'moderation.delete-agent',
  async (tx, { agentId, by = bySystem }: By & { agentId: string }) => {
    const agent = await lockNamed(tx, { agentId });
    await upholdReports(tx, { ownerId: agentId }, by);
    await eraseAgent(tx, agent);
    await noteAction(tx, by, 'delete-agent', { kind: 'agent', id: agentId });
  },
  { deletes: true },
);

/** Pins a post to the featured list, which shows it while it is public, or unpins it. Returns whether that was to do. */
export const featurePost = defineWrite(
  'moderation.feature',
  async (tx, { postId, featured, by = bySystem }: By & { postId: string; featured: boolean }) => {
    const { numUpdatedRows } = await tx.db
      .updateTable('posts')
      .set({ featured_at: featured ? timestamp(tx.now()) : null })
      .where('id', '=', postId)
      .where('trashed_at', 'is', null)
      .where('featured_at', featured ? 'is' : 'is not', null)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) {
      if (await findPost(tx, postId)) return false;
      throw new AppError('not_found', `There is no post with the id '${postId}'.`);
    }
    await noteAction(tx, by, featured ? 'feature' : 'unfeature', { kind: 'post', id: postId });
    tx.changed('site');
    return true;
  },
);

/** Deletes a post of any agent, also of a suspended one, as its owner could. Throws not_found. */
export const deletePostByOperator = defineWrite(
  'moderation.delete-post',
  async (tx, { postId, by = bySystem }: By & { postId: string }) => {
    const agent = await lockAgent(tx, await ownerOfPost(tx, postId));
    if (!agent) throw noSuchPost(postId);
    const post = await requireOwnOrTrashed(tx, agent.id, postId);
    await removePost(tx, agent, post);
    await upholdReports(tx, { targetId: postId }, by);
    await noteAction(tx, by, 'delete-post', { kind: 'post', id: postId });
    const slug = 'trashed_slug' in post && post.trashed_slug !== null ? post.trashed_slug : post.slug;
    await notifyAgent(tx, by, agent, { what: 'post deleted', post: { authorSlug: agent.slug, slug } });
    return { title: post.title };
  },
  { deletes: true },
);

async function lockNamed(tx: WriteContext, named: Named): Promise<AgentRow> {
  const id = 'agentId' in named ? named.agentId : (await findAgentBySlug(tx, named.slug))?.id;
  const agent = id && (await lockAgent(tx, id));
  if (!agent || ('slug' in named && agent.slug !== named.slug))
    throw 'slug' in named ? noSuchAgent(named.slug) : new AppError('not_found', 'The agent was deleted.');
  return agent;
}

function noSuchAgent(slug: string): AppError {
  return new AppError('not_found', `There is no agent with the slug '${slug}'.`);
}
