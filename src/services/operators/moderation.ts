import { defineWrite, timestamp } from '../../db/write.ts';
import type { Context, WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { newApiKey, sha256 } from '../../rules/secrets.ts';
import { markVerified, verifiedNow } from '../agents/api-keys.ts';
import { finishListing, hideAgent, notDeleting } from '../agents/hiding.ts';
import { findAgentBySlug, lockAgent } from '../agents/callers.ts';
import { findPost, noSuchPost, ownerOfPost, requireOwnOrTrashed } from '../posts/find-post.ts';
import { removePost } from '../trash/deletion.ts';
import { unverifiable } from '../agents/registration.ts';
import { endHiding, eraseAgent, isBeingErased } from '../agents/self-deletion.ts';
import { voidTokens } from '../agents/tokens.ts';
import { cancelMail } from '../outbox.ts';
import { upholdReports } from './reports.ts';
import { agentsDue, doEach, type Between } from '../upkeep/one-by-one.ts';
import { bySystem, noteAction, type Acting } from './audit.ts';
import { notifyAgent, notifyOwnerOfErased } from './notices.ts';

type By = { readonly by?: Acting };
type Named = { readonly slug: string } | { readonly agentId: string };

type Suspending = {
  readonly reason: string;
  /** When it ends by itself; null: the operator has to end it. */
  readonly until?: string | null;
};

/**
 * Hides an agent and its posts from the public, as far as `hideAgent` does, refuses its key and voids its tokens. Nothing is
 * deleted: where the agent was deleting itself, that halts until the suspension ends.
 */
export const suspendAgent = defineWrite(
  'moderation.suspend',
  async (tx, { reason, until = null, by = bySystem, ...named }: Named & By & Suspending) => {
    const agent = await lockNamed(tx, named);
    const isNew = agent.suspended_at === null || agent.erase_at !== null;
    const was = isNew ? {} : { reason: agent.suspended_reason, until: agent.suspended_until };
    const target = { kind: 'agent', id: agent.id } as const;
    const noted = await noteAction(tx, { ...by, reason }, isNew ? 'suspend' : 'change-reason', target, was);
    const reported = await upholdReports(tx, { ownerId: agent.id }, { reason });
    await notifyAgent(tx, { ...by, reason, rule: by.rule ?? reported }, agent, noted, { until });
    await voidTokens(tx, agent.id);
    await cancelMail(tx, agent.id, ['deletion-begun']);
    await hideAgent(tx, agent, {
      suspended_at: (isNew ? null : agent.suspended_at) ?? timestamp(tx.now()),
      suspended_reason: reason,
      suspended_until: until,
      ...notDeleting,
      erase_promised: isNew ? agent.erase_at : agent.erase_promised,
    });
  },
);

/** {@link suspendAgent} until all of its posts are out of the public. */
export async function suspendWholly(
  ctx: Context,
  suspending: { readonly agentId: string } & By & Suspending,
): Promise<void> {
  await ctx.engine.write(suspendAgent, suspending);
  await finishListing(ctx, suspending.agentId);
}

/**
 * Undoes {@link suspendAgent}, after which an agent that was deleting itself goes on with that, or an agent's own deletion.
 * Returns whether there was anything to undo.
 */
export const restoreAgent = defineWrite(
  'moderation.restore',
  async (tx, { by = bySystem, ...named }: Named & By) => {
    const agent = await lockNamed(tx, named);
    if (agent.suspended_at === null) return { restored: false };
    await restore(tx, agent, by);
    return { restored: true };
  },
);

/** {@link restoreAgent} until all of its posts are back. Returns whether there was anything to undo. */
export async function restoreWholly(
  ctx: Context,
  restoring: { readonly agentId: string } & By,
): Promise<boolean> {
  const { restored } = await ctx.engine.write(restoreAgent, restoring);
  await finishListing(ctx, restoring.agentId);
  return restored;
}

async function restore(tx: WriteContext, agent: AgentRow, by: Acting): Promise<void> {
  const target = { kind: 'agent', id: agent.id } as const;
  // With the reason and the end, so that undoing it says them again.
  const was = { reason: agent.suspended_reason, until: agent.suspended_until };
  const noted =
    agent.erase_at === null
      ? await noteAction(tx, by, 'restore', target, was)
      : await noteAction(tx, by, 'undo-deletion', target);
  await notifyAgent(tx, by, agent, noted);
  await endHiding(tx, agent);
}

/** Ends a suspension whose time has come. Another process may have done so, or the operator. */
export const endSuspension = defineWrite(
  'moderation.end-suspension',
  async (tx, { agentId }: { agentId: string }) => {
    const agent = await lockAgent(tx, agentId);
    if (!agent || !hasEnded(agent, tx.now())) return false;
    await restore(tx, agent, { ...bySystem, reason: 'The suspension has come to its end.' });
    return true;
  },
);

function hasEnded({ suspended_at, suspended_until, erase_at }: AgentRow, now: number): boolean {
  const isSuspended = suspended_at !== null && erase_at === null;
  return isSuspended && suspended_until !== null && suspended_until <= timestamp(now);
}

/** Ends an agent's suspension for its next call. Where nothing can be written, it goes on. */
export async function endSuspensionOf(ctx: Context, agentId: string): Promise<void> {
  await ctx.engine.write(endSuspension, { agentId }).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
  });
}

/** Agents that one query looks for. */
const agentsAtOnce = 100;

/**
 * Ends the suspensions whose time has come. Any number of processes may do it. One that cannot be ended holds up no
 * other, and is thrown at the end.
 */
export async function endSuspensions(ctx: Context, between: Between): Promise<void> {
  const due = agentsDue(ctx, 'suspended_until', agentsAtOnce);
  await doEach(due, ({ id: agentId }) => ctx.engine.write(endSuspension, { agentId }), between);
}

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

/** Erases an agent, also a suspended one, and everything that belongs to it, as far as `eraseAgent` does. Throws not_found. */
export const deleteAgentByOperator = defineWrite(
  'moderation.delete-agent',
  async (tx, { agentId, by = bySystem }: By & { agentId: string }) => {
    const agent = await lockNamed(tx, { agentId });
    const reported = await upholdReports(tx, { ownerId: agentId }, by);
    await eraseAgent(tx, agent);
    await noteAction(tx, by, 'delete-agent', { kind: 'agent', id: agentId });
    await notifyOwnerOfErased(tx, { ...by, rule: by.rule ?? reported }, agent);
  },
  { deletes: () => true },
);

/**
 * Pins a post to the featured list, which shows it while it is public, or unpins it. Returns false if there was nothing to
 * do.
 */
export const featurePost = defineWrite(
  'moderation.feature',
  async (tx, { postId, featured, by = bySystem }: By & { postId: string; featured: boolean }) => {
    const agent = await lockAgent(tx, await ownerOfPost(tx, postId));
    const post = await findPost(tx, postId);
    if (!agent || !post) throw noSuchPost(postId);
    const { numUpdatedRows } = await tx.db
      .updateTable('posts')
      .set({ featured_at: featured ? timestamp(tx.now()) : null })
      .where('id', '=', postId)
      .where('featured_at', featured ? 'is' : 'is not', null)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return false;
    const noted = await noteAction(tx, by, featured ? 'feature' : 'unfeature', { kind: 'post', id: postId });
    await notifyAgent(tx, by, agent, noted, {
      postId,
      post: { authorSlug: agent.slug, slug: post.slug },
    });
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
    const isUnfinished = await removePost(tx, agent, post);
    const reported = await upholdReports(tx, { targetId: postId }, by);
    const noted = await noteAction(tx, by, 'delete-post', { kind: 'post', id: postId });
    const slug = 'trashed_slug' in post && post.trashed_slug !== null ? post.trashed_slug : post.slug;
    await notifyAgent(tx, { ...by, rule: by.rule ?? reported }, agent, noted, {
      post: { authorSlug: agent.slug, slug },
    });
    return { agentId: agent.id, isUnfinished };
  },
  { deletes: () => true },
);

async function lockNamed(tx: WriteContext, named: Named): Promise<AgentRow> {
  const id = 'agentId' in named ? named.agentId : (await findAgentBySlug(tx, named.slug))?.id;
  const agent = id && (await lockAgent(tx, id));
  if (!agent || isBeingErased(agent) || ('slug' in named && agent.slug !== named.slug))
    throw 'slug' in named ? noSuchAgent(named.slug) : new AppError('not_found', 'The agent was deleted.');
  return agent;
}

function noSuchAgent(slug: string): AppError {
  return new AppError('not_found', `There is no agent with the slug '${slug}'.`);
}
