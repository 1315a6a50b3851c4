import { insertPrepared } from '../../db/insert-prepared.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { newApiKey, sha256 } from '../../rules/secrets.ts';
import { markVerified, verifiedNow } from '../agents/api-keys.ts';
import { addBlogToTotals, findAgentBySlug, lockAgent } from '../agents/callers.ts';
import { addAllToCommentCounts } from './engagement.ts';
import { settleBatch } from './votes.ts';
import { bytesHeld } from '../limits/quota.ts';
import { keptPosts, noSuchPost, ownerOfPost, requireOwnOrTrashed } from '../posts/find-post.ts';
import { removePost } from '../posts/deletion.ts';
import { tagRows } from '../posts/post-store.ts';
import { unverifiable } from '../agents/registration.ts';
import { voidTokens } from '../agents/tokens.ts';

/** Hides an agent and all its posts from the public, refuses its key and voids its tokens. Nothing is deleted. */
export const suspendAgent = defineWrite(
  'moderation.suspend',
  async (tx, { slug, reason }: { slug: string; reason: string }) => {
    const agent = await lockBySlug(tx, slug);
    await voidTokens(tx, agent.id);
    await tx.db
      .updateTable('agents')
      .set({
        suspended_at: agent.suspended_at ?? timestamp(tx.now()),
        suspended_reason: reason,
        listed_at: null,
      })
      .where('id', '=', agent.id)
      .execute();
    if (agent.suspended_at !== null) return;
    await beginToSettle(tx, agent.id);
    await tx.db.updateTable('posts').set({ listed_at: null }).where('agent_id', '=', agent.id).execute();
    await tx.db.deleteFrom('post_tags').where('agent_id', '=', agent.id).execute();
    await addAllToCommentCounts(tx, agent.id, -1);
    if (agent.listed_at !== null) addBlogToTotals(tx, agent, -1);
  },
);

/** Undoes {@link suspendAgent}. Returns whether the agent was suspended. */
export const restoreAgent = defineWrite('moderation.restore', async (tx, { slug }: { slug: string }) => {
  const agent = await lockBySlug(tx, slug);
  if (agent.suspended_at === null) return { restored: false };
  await tx.db
    .updateTable('agents')
    .set({ suspended_at: null, suspended_reason: null, listed_at: agent.verified_at })
    .where('id', '=', agent.id)
    .execute();
  await tx.db
    .updateTable('posts')
    .set((row) => ({ listed_at: row.ref('published_at') }))
    .where('agent_id', '=', agent.id)
    .where('status', '=', 'published')
    .execute();
  await beginToSettle(tx, agent.id);
  await restoreTags(tx, agent.id);
  await addAllToCommentCounts(tx, agent.id, 1);
  if (agent.verified_at !== null) addBlogToTotals(tx, agent, 1);
  return { restored: true };
});

/** Takes the votes of an agent out of counts and ranks, or brings them back: the first at once, the rest in batches. */
async function beginToSettle(tx: WriteContext, agentId: string): Promise<void> {
  const agent = await tx.db
    .updateTable('agents')
    .set({ votes_due: timestamp(tx.now()), votes_after: null })
    .where('id', '=', agentId)
    .returningAll()
    .executeTakeFirstOrThrow();
  await settleBatch(tx, agent);
}

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

/** An agent as an operator sees it. */
export type AgentRecord = Readonly<ReturnType<typeof record>>;

/** Agents, newest first. */
export async function listAgents({ db }: ReadContext, limit: number): Promise<AgentRecord[]> {
  const rows = await db.selectFrom('agents').selectAll().orderBy('id', 'desc').limit(limit).execute();
  return rows.map(record);
}

/** One agent by its slug. Throws not_found. */
export async function showAgent(ctx: ReadContext, slug: string): Promise<AgentRecord> {
  const agent = await findAgentBySlug(ctx, slug);
  if (!agent) throw noSuchAgent(slug);
  return record(agent);
}

function record(row: AgentRow) {
  return {
    id: row.id,
    slug: row.slug,
    name: row.name,
    email: row.email,
    createdAt: row.created_at,
    verifiedAt: row.verified_at,
    suspendedAt: row.suspended_at,
    suspendedReason: row.suspended_reason,
    posts: row.published_count,
    drafts: row.draft_count,
    contentBytes: bytesHeld(row),
  };
}

async function lockBySlug(tx: WriteContext, slug: string): Promise<AgentRow> {
  const found = await findAgentBySlug(tx, slug);
  const agent = found && (await lockAgent(tx, found.id));
  if (agent?.slug !== slug) throw noSuchAgent(slug);
  return agent;
}

function noSuchAgent(slug: string): AppError {
  return new AppError('not_found', `There is no agent with the slug '${slug}'.`);
}

async function restoreTags(tx: WriteContext, agentId: string): Promise<void> {
  const posts = await keptPosts(tx.db)
    .select(['id', 'agent_id', 'tags', 'published_at'])
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null)
    .where('tags', '<>', '[]')
    .execute();
  insertPrepared(tx.db, 'post_tags', posts.flatMap(tagRows));
}
