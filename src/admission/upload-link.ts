import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { findAgent, isOver, suspensionOf } from '../services/agents/callers.ts';
import { endSuspensionOf } from '../services/operators/moderation.ts';
import { agentOfLink, type UploadLink } from '../services/media/upload-links.ts';
import type { Credential } from './admission.ts';

/** What an upload link amounts to: the agent that made it, whatever has become of it. Refuses nothing itself. */
export async function credentialOfLink(ctx: Context, link: UploadLink): Promise<Credential> {
  try {
    const maker = await agentOfLink(ctx, link);
    const agent = isOver(ctx, suspensionOf(ctx, maker)) ? await afterSuspension(ctx, maker) : maker;
    const { id, slug, key_hash: keyHash, suspended_at: since } = agent;
    const suspended = since === null ? null : suspensionOf(ctx, agent);
    const caller = { id, slug: slug ?? '', keyHash: keyHash ?? '', suspended, version: '' };
    return { kind: 'caller', caller, calls: null };
  } catch (error) {
    if (error instanceof AppError) return { kind: 'refused', error };
    throw error;
  }
}

type Agent = Awaited<ReturnType<typeof agentOfLink>>;

async function afterSuspension(ctx: Context, agent: Agent): Promise<Agent> {
  await endSuspensionOf(ctx, agent.id);
  return (await findAgent(ctx, agent.id)) ?? agent;
}
