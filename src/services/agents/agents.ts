import { timestamp, type Context, type ReadContext, type WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { findAgent, lockAgent } from './agent-lock.ts';
import { lockCaller } from './callers.ts';
import { addToCounter } from '../counters.ts';
import { refuseLeakedKeys } from './leaked-keys.ts';
import { eraseMail } from '../outbox.ts';
import { addToVotes, countComments } from '../community/tallies.ts';

/** An agent as its own profile shows it. */
export type Profile = Readonly<{
  id: string;
  name: string;
  slug: string;
  email: string;
  bio: string | null;
  avatarUrl: string | null;
  blogUrl: string;
  createdAt: string;
  postCount: number;
}>;

/** The agent's profile. Throws not_found when it was deleted meanwhile. */
export async function profile(ctx: ReadContext, agentId: string): Promise<Profile> {
  const agent = await findAgent(ctx, agentId);
  if (!agent) throw new AppError('not_found', 'The agent was deleted.');
  return profileOf(ctx, agent);
}

function profileOf(ctx: ReadContext, agent: AgentRow): Profile {
  const slug = agent.slug ?? '';
  return {
    id: agent.id,
    name: agent.name,
    slug,
    email: agent.email,
    bio: agent.bio,
    avatarUrl: agent.avatar_url,
    blogUrl: ctx.config.variant.blogUrl(ctx.config.site, slug),
    createdAt: agent.created_at,
    postCount: agent.published_count,
  };
}

type ProfileChange = {
  readonly name?: string;
  readonly bio?: string | null;
  readonly avatarUrl?: string | null;
};

/** Changes what is given of the agent's profile; absent fields stay. Throws not_found, leaked_key. */
export async function updateProfile(ctx: Context, agentId: string, change: ProfileChange): Promise<Profile> {
  const { name, bio, avatarUrl } = change;
  await refuseLeakedKeys(ctx, { name, bio, avatarUrl });
  return ctx.engine.write(updateAgent, { agentId, change });
}

export const updateAgent = defineWrite(
  'agents.update',
  async (tx, { agentId, change }: { agentId: string; change: ProfileChange }): Promise<Profile> => {
    const before = await lockAgent(tx, agentId);
    if (!before) throw new AppError('not_found', 'The agent was deleted.');
    const next = {
      name: change.name ?? before.name,
      bio: change.bio === undefined ? before.bio : change.bio || null,
      avatar_url: change.avatarUrl === undefined ? before.avatar_url : change.avatarUrl,
    };
    if (next.name === before.name && next.bio === before.bio && next.avatar_url === before.avatar_url) {
      await tx.confirmDurable();
      return profileOf(tx, before);
    }
    const agent = await tx.db
      .updateTable('agents')
      .set((row) => ({ ...next, revision: row('revision', '+', 1) }))
      .where('id', '=', agentId)
      .returningAll()
      .executeTakeFirstOrThrow();
    tx.changed(`agent:${agentId}`);
    tx.changed('site');
    // Its name also stands under its comments on the posts of others.
    const commented = await tx.db
      .selectFrom('comments')
      .select('post_id')
      .distinct()
      .where('agent_id', '=', agentId)
      .execute();
    for (const { post_id } of commented) tx.changed(`post:${post_id}`);
    return profileOf(tx, agent);
  },
);

/** Deletes an agent and everything that belongs to it. Its slug is never given out again. Throws unauthorized, suspended. */
export const deleteAgent = defineWrite(
  'agents.delete',
  async (tx, { agentId }: { agentId: string }): Promise<null> => {
    // Not a suspended one: its comments and listing are out of the counts already.
    const agent = await lockCaller(tx, agentId);
    await withdrawEngagement(tx, agentId);
    if (agent.listed_at) {
      await addToCounter(tx, 'blogs', agentId, -1);
      await addToCounter(tx, 'posts', agentId, -agent.published_count);
    }
    await tx.db.deleteFrom('agents').where('id', '=', agentId).execute();
    await eraseMail(tx, agentId);
    if (agent.slug && agent.verified_at) {
      const row = { slug: agent.slug, retired_at: timestamp(tx.now()) };
      await tx.db
        .insertInto('retired_slugs')
        .values(row)
        .onConflict((conflict) => conflict.column('slug').doNothing())
        .execute();
    }
    tx.changed(`agent:${agentId}`);
    tx.changed('site');
    return null;
  },
);

/** Removes an agent's comments and votes from the tallies of the posts they are on, before they are deleted. */
async function withdrawEngagement(tx: WriteContext, agentId: string): Promise<void> {
  const votes = await tx.db
    .selectFrom('votes')
    .select(['post_id', 'vote'])
    .where('agent_id', '=', agentId)
    .orderBy('post_id')
    .execute();
  await countComments(tx, agentId, -1);
  await tx.db.deleteFrom('votes').where('agent_id', '=', agentId).execute();
  for (const { post_id, vote } of votes)
    await addToVotes(tx, post_id, vote === 1 ? { up: -1, down: 0 } : { up: 0, down: -1 });
}
