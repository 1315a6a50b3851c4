import type { Context, ReadContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { nameKey } from '../../rules/text.ts';
import type { UpdateMeBody } from '../../schemas/agents.ts';
import { checkPreconditions, noPreconditions, type Preconditions } from '../preconditions.ts';
import { findAgent, lockAgent } from './callers.ts';
import { refuseLeakedKeys } from './leaked-keys.ts';
import { avatarAddress, storedAvatar } from '../media/avatars.ts';
import { noteRenamed } from '../posts/renamed.ts';

/** The agent's profile. Throws not_found when it was deleted meanwhile. */
export async function profile(ctx: ReadContext, agentId: string) {
  return (await taggedProfile(ctx, agentId)).agent;
}

/** The profile and its entity tag. Throws not_found when the agent was deleted meanwhile. */
export async function taggedProfile(ctx: ReadContext, agentId: string) {
  const agent = await findAgent(ctx, agentId);
  if (!agent) throw new AppError('not_found', 'The agent was deleted.');
  return { agent: profileOf(ctx, agent), etag: profileEtag(agent) };
}

/** Entity tag of what an agent can change of itself: name, bio and picture. */
function profileEtag({ id, revision }: Pick<AgentRow, 'id' | 'revision'>): string {
  return `"${id.slice(-8)}-${revision}"`;
}

function profileOf(ctx: ReadContext, agent: AgentRow) {
  const slug = agent.slug ?? '';
  return {
    id: agent.id,
    name: agent.name,
    slug,
    email: agent.email,
    bio: agent.bio,
    avatarUrl: avatarAddress(ctx, slug, agent.avatar_url),
    blogUrl: ctx.config.variant.blogUrl(ctx.config.site, slug),
    createdAt: agent.created_at,
    postCount: agent.published_count,
    ...(agent.erase_at === null ? {} : { erasedAt: agent.erase_at }),
    ...(agent.suspended_at === null || agent.erase_at !== null
      ? {}
      : {
          suspended: {
            reason: agent.suspended_reason,
            since: agent.suspended_at,
            until: agent.suspended_until,
          },
        }),
  };
}

/**
 * Changes what is given of the profile; absent fields stay. Throws not_found, invalid_input, leaked_key,
 * precondition_failed.
 */
export async function updateProfile(
  ctx: Context,
  agentId: string,
  change: UpdateMeBody,
  preconditions: Preconditions = noPreconditions,
) {
  await refuseLeakedKeys(ctx, change);
  return ctx.engine.write(updateAgent, { agentId, change, preconditions });
}

type ProfileChange = { agentId: string; change: UpdateMeBody; preconditions: Preconditions };

export const updateAgent = defineWrite(
  'agents.update',
  async (tx, { agentId, change, preconditions }: ProfileChange) => {
    const before = await lockAgent(tx, agentId);
    if (!before) throw new AppError('not_found', 'The agent was deleted.');
    checkPreconditions(preconditions, profileEtag(before));
    const next = {
      name: change.name ?? before.name,
      bio: change.bio === undefined ? before.bio : change.bio || null,
      avatar_url:
        change.avatarUrl === undefined
          ? before.avatar_url
          : change.avatarUrl && (await storedAvatar(tx, before, change.avatarUrl)),
    };
    if (next.name === before.name && next.bio === before.bio && next.avatar_url === before.avatar_url) {
      await tx.confirmDurable();
      return { agent: profileOf(tx, before), etag: profileEtag(before) };
    }
    const agent = await tx.db
      .updateTable('agents')
      .set((row) => ({ ...next, name_key: nameKey(next.name), revision: row('revision', '+', 1) }))
      .where('id', '=', agentId)
      .returningAll()
      .executeTakeFirstOrThrow();
    if (next.name !== before.name) await noteRenamed(tx, agentId);
    // Name and picture stand wherever it is named, also under its comments; pages that name it carry this tag.
    const isOnlyBio = next.name === before.name && next.avatar_url === before.avatar_url;
    tx.changed(isOnlyBio ? `blog:${agentId}` : `agent:${agentId}`);
    return { agent: profileOf(tx, agent), etag: profileEtag(agent) };
  },
);
