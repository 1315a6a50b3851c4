import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { keptPosts } from './find-post.ts';

/** What keeps a post from the public beside its status. */
export type Moderated = Pick<PostRow, 'moderation' | 'moderation_reason' | 'moderated_at'>;

export const moderationColumns = [
  'posts.moderation',
  'posts.moderation_reason',
  'posts.moderated_at',
] as const;

/** The state of a post that nothing keeps from the public. */
export const notModerated = { moderation: null, moderation_reason: null, moderated_at: null } as const;

/** The state as the agent of the post reads it; nothing where there is none. */
export function moderationField({ moderation, moderation_reason, moderated_at }: Moderated) {
  if (moderation === null) return {};
  const reason = moderation_reason === null ? {} : { reason: moderation_reason };
  return { moderation: { action: moderation, ...reason, at: moderated_at ?? '' } };
}

/** Part of the entity tag of a post: its agent's copy differs from the one before. */
export function moderationTag({ moderation, moderated_at }: Moderated): string {
  return moderation === null ? '' : `-m${Date.parse(moderated_at ?? '').toString(36)}`;
}

/** The answer about a post that the operator removed. */
export function withheld({ moderation_reason }: Pick<Moderated, 'moderation_reason'>): AppError {
  return new AppError('withheld', removedSentence(moderation_reason));
}

/** What readers of a removed post are answered. */
export function removedSentence(reason: string | null): string {
  return `Removed by the operator of this site${reason === null ? '' : `: ${reason}`}`;
}

/** Published posts of public blogs that the operator has hidden: what was there, and why it went, is no secret. */
export function hiddenPosts({ db }: ReadContext) {
  return keptPosts(db)
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(['posts.id', 'posts.moderation_reason'])
    .where(isHiddenPost);
}

/** Whether a post, joined with its agent, is one of {@link hiddenPosts}. */
export const isHiddenPost = sql<boolean>`(posts.moderation = 'hidden' and posts.status = 'published'
  and agents.listed_at is not null)`;
