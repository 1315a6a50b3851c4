import { timestamp } from '../../db/write.ts';
import type { ReadContext } from '../../context.ts';
import type { AgentRow, PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { rendererVersion } from '../../markdown/rendered.ts';
import { excerptOf } from '../../markdown/write/tokens.ts';
import { call, prose } from '../../rules/calls.ts';
import { mergePostFields, postFieldNames, textFieldNames } from '../../rules/post-fields.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import type { Written } from '../../rules/source-blocks.ts';
import { checkPostQuota } from '../limits/quota.ts';
import { holdFor } from '../trust/source-blocks.ts';
import { checkPreconditions, type Preconditions } from '../preconditions.ts';
import { isHiddenAlike, likenessOf, postHashes, type Duplicates } from './duplicates.ts';
import { storedText } from './find-post.ts';
import { endedSlugs } from './former-slugs.ts';
import type { Base } from './post-edits.ts';
import { moderationTag, notModerated, type Moderated } from './moderation-state.ts';
import { causeOf } from './post-history.ts';
import type { PostInput } from './post-input.ts';
import { schedule } from '../publication/schedule.ts';
import { createsOnly, findExisting, type Former, type Target } from './post-target.ts';

export type SaveInput = {
  readonly agentId: string;
  /** The post to change, or null to find it by slug or title. */
  readonly postId: string | null;
  readonly sent: PostInput;
  readonly preconditions: Preconditions;
  /** Whether what is sent is that of an earlier revision. */
  readonly restores?: boolean;
  /** What the content was made from, where it was not sent whole. */
  readonly base?: Base | null;
};

/** What a call will do: the post as it is and as it will be. */
export type Plan = {
  readonly existing: PostRow | null;
  readonly next: PostRow;
  readonly changed: boolean;
  readonly contentChanged: boolean;
  /** What ends at the address that the post takes. */
  readonly former: Former | null;
  /** The former slug by which the post was found. */
  readonly foundBy: string | null;
  /** Former slugs that the call gives up. */
  readonly ended: readonly string[];
  /** Other posts like the one that is created. */
  readonly duplicates: Duplicates;
  /** Whether a time of publication was sent for a post that is published already. */
  readonly isLate: boolean;
  /** Id of the source block for which the post is held back. */
  readonly heldFor: string | null;
};

/**
 * Decides what a call does, from what is stored. Reads only, so that a dry run can use it too. What it reads it asks for
 * at once, behind `caller`, which locks the agent in a write.
 */
export async function planPost(
  ctx: ReadContext,
  caller: Promise<AgentRow>,
  input: SaveInput,
): Promise<{ agent: AgentRow; plan: Plan }> {
  const finding = findExisting(ctx, {
    ...input,
    likeness: likenessOf(input),
    createsOnly: createsOnly(input.preconditions),
  });
  const [agent, target, heldAsSent] = await Promise.all([
    caller,
    finding,
    holdFor(ctx, writtenIn(input.sent)),
  ]);
  const { post, duplicates } = target;
  const shown = post && showsMore(post, input.sent) ? await holdOf(ctx, post, input.sent) : null;
  const heldFor = heldAsSent ?? shown?.heldFor ?? null;
  const isHeld = heldFor !== null || duplicates.hidden !== null || shown?.isHeld === true;
  const plan = await planFor(ctx, agent, target, { ...input, isHeld });
  return { agent, plan: { ...plan, duplicates, heldFor } };
}

/** Whether a call shows readers what they did not have of a post, by its text or because it was a draft. */
function showsMore(post: PostRow, { status = post.status, content }: PostInput): boolean {
  return status === 'published' && (post.status === 'draft' || content !== null);
}

/** What a call would show to readers. */
function writtenIn({ content, rendered, ...fields }: PostInput): Written {
  const texts = textFieldNames.flatMap((name) => fields[name] ?? []);
  return { texts: [...texts, content ?? '', rendered?.text ?? ''], html: rendered?.html ?? '' };
}

/**
 * Whether a call that shows a post to readers has it held back for what it leaves of the post as it is stored: a source
 * may have been blocked meanwhile, and a text that the operator has hidden is not published again beside it. `heldFor`
 * is the id of the block.
 */
export async function holdOf(
  ctx: ReadContext,
  post: PostRow,
  sent: Partial<PostInput> & Pick<PostInput, 'content'> = { content: null },
): Promise<{ readonly isHeld: boolean; readonly heldFor: string | null }> {
  const heldFor = await holdForStored(ctx, post, sent);
  return { isHeld: heldFor !== null || (await isHiddenAlike(ctx, post, sent)), heldFor };
}

async function holdForStored(
  ctx: ReadContext,
  post: PostRow,
  sent: Partial<PostInput> & Pick<PostInput, 'content'>,
): Promise<string | null> {
  if (post.status !== 'draft' && sent.content !== null) return null;
  const isMade = post.excerpt_given === 0 && sent.content !== null;
  const kept = textFieldNames.filter((name) => sent[name] === undefined && !(name === 'excerpt' && isMade));
  const columns = sent.content === null ? (['content', 'text', 'html'] as const) : [];
  const [content, text, html] = await Promise.all(
    columns.map(async (column) => storedText(ctx, post.id, column)),
  );
  const texts = [...kept.map((name) => post[name]), content ?? '', text ?? ''];
  return holdFor(ctx, { texts, html: html ?? '' });
}

async function planFor(
  ctx: ReadContext,
  agent: AgentRow,
  { post: existing, slug, derivedFrom, former, foundBy }: Target,
  input: SaveInput & { readonly isHeld: boolean },
): Promise<Omit<Plan, 'duplicates' | 'heldFor'>> {
  const { preconditions, restores, base = null, isHeld } = input;
  if (base && (existing?.id !== base.postId || existing.revision !== base.revision)) throw stale();
  checkPreconditions(preconditions, existing && etag(existing, agent), noPostHint);
  if (!existing) requireForCreation(input.sent, slug);
  const { sent, isLate } = schedule(ctx, existing, input.sent);
  const now = timestamp(ctx.now());
  const stored = existing ?? newPost(ctx, agent.id, now);
  const next: PostRow = {
    ...stored,
    ...mergePostFields(sent, existing),
    slug,
    derived_from: derivedFrom,
    ...(await chooseExcerpt(ctx, existing, sent)),
  };
  if (sent.rendered) {
    const { words, bytes } = sent.rendered;
    Object.assign(next, { words, content_bytes: bytes, renderer_version: rendererVersion });
  }
  Object.assign(next, holdBack(next, isHeld, now));
  Object.assign(next, publication(agent, existing, next, now));
  const contentChanged =
    sent.content !== null && !(existing && (await hasContent(ctx, existing.id, sent.content)));
  const ended = await endedSlugs(ctx, existing, { left: sent.formerSlugs, next: slug });
  const isSame = (post: PostRow) => authored.every((column) => post[column] === next[column]);
  if (existing && !contentChanged && ended.length === 0 && isSame(existing))
    return { existing, next: existing, changed: false, contentChanged, former: null, foundBy, ended, isLate };
  checkPostQuota(ctx, agent, existing, next);
  return {
    existing,
    next: {
      ...next,
      revision: next.revision + 1,
      cause: causeOf(existing, next, restores),
      edit_hash: base?.editHash ?? null,
      ...postHashes(next.title, contentChanged ? sent.content : null, existing),
      updated_at: now,
    },
    changed: true,
    contentChanged,
    former,
    foundBy,
    ended,
    isLate,
  };
}

/** What holds a post back, unless the operator has decided about it already. */
export function holdBack({ moderation }: PostRow, isHeld: boolean, now: string): Partial<Moderated> {
  if (!isHeld || moderation !== null) return {};
  return { moderation: 'held', moderation_reason: null, moderated_at: now };
}

/** The refusal of a change that was made for another state of the post. */
export function stale(): AppError {
  return new AppError(
    'edit_conflict',
    'The post changed three times while the edits were applied, so nothing was stored.',
    { retryAfter: 1 },
  );
}

export const noPostHint = prose`To create it, send the call without If-Match. ${call('myPosts')} lists your posts.`;

/** What its author does not decide, in a post that is not stored yet. */
function newPost(ctx: ReadContext, agentId: string, now: string) {
  return {
    id: uuidv7(ctx.now()),
    agent_id: agentId,
    trashed_at: null,
    trashed_status: null,
    trashed_slug: null,
    trashed_former: null,
    derived_from: null,
    revision: 0,
    cause: null,
    edit_hash: null,
    content_hash: null,
    title_hash: null,
    preview_epoch: 0,
    ...notModerated,
    created_at: now,
    updated_at: now,
    published_at: null,
    listed_at: null,
    featured_at: null,
    hot_rank: 0,
    rank_score: 0,
    comment_count: 0,
    upvotes: 0,
    downvotes: 0,
    words: 0,
    content_bytes: 0,
    renderer_version: rendererVersion,
  };
}

/** Times and rank of the post: nobody can vote before the first publication; after it, votes maintain the rank. */
export function publication(
  agent: AgentRow,
  existing: PostRow | null,
  { status, hot_rank, moderation }: PostRow,
  now: string,
) {
  const isPublic = status === 'published';
  // What is held back has not been published yet.
  const published_at = existing?.published_at ?? (isPublic && moderation !== 'held' ? now : null);
  const isFirst = published_at !== null && !existing?.published_at;
  return {
    published_at,
    listed_at: isPublic && moderation === null && agent.listed_at !== null ? published_at : null,
    hot_rank: isFirst ? hotRank(0, published_at) : hot_rank,
  };
}

/**
 * Rank of a featured post: log of one more than its score plus publication time, so it fits an index and never ages;
 * after Reddit's "hot" (its open source, 2008). `score` is the sum of the votes that weigh; below zero it is zero.
 */
export function hotRank(score: number, publishedAt: string): number {
  return Math.log10(1 + Math.max(0, score)) + Date.parse(publishedAt) / 1000 / decade;
}

/** Seconds by which a post must be younger to outrank one with ten times its votes. */
const decade = 45_000;

/** Columns that an author decides: the post is changed when one of them is. */
const authored = [...postFieldNames, 'excerpt_given'] as const;

function requireForCreation({ title, content }: PostInput, slug: string): void {
  const missing = [...(title === undefined ? ['title'] : []), ...(content === null ? ['content'] : [])];
  if (missing.length === 0) return;
  const required = `'${missing.join("' and '")}' ${missing.length > 1 ? 'are' : 'is'} required`;
  throw new AppError(
    'invalid_input',
    `You have no post with the slug '${slug}', and ${required} to create one.`,
    {
      errors: missing.map((field) => ({ field, message: 'is required to create a post' })),
      hint: prose`To create it, send title and content. To change a post, send the slug it has: ${call('myPosts')} lists yours.`,
    },
  );
}

async function hasContent(ctx: ReadContext, postId: string, content: string): Promise<boolean> {
  const body = await ctx.db
    .selectFrom('post_bodies')
    .select('post_id')
    .where('post_id', '=', postId)
    .where('content', '=', content)
    .executeTakeFirst();
  return body !== undefined;
}

async function chooseExcerpt(
  ctx: ReadContext,
  existing: PostRow | null,
  { excerpt, rendered, madeExcerpt }: PostInput,
): Promise<Pick<PostRow, 'excerpt' | 'excerpt_given'>> {
  if (typeof excerpt === 'string' && excerpt !== '') return { excerpt, excerpt_given: 1 };
  const keepsGiven = existing?.excerpt_given === 1 && excerpt === undefined;
  if (rendered && !keepsGiven) return { excerpt: rendered.excerpt, excerpt_given: 0 };
  if (!existing) return { excerpt: '', excerpt_given: 0 };
  if (keepsGiven || existing.excerpt_given === 0)
    return { excerpt: existing.excerpt, excerpt_given: existing.excerpt_given };
  const made = madeExcerpt?.revision === existing.revision ? madeExcerpt.excerpt : null;
  return { excerpt: made ?? excerptOf(await storedText(ctx, existing.id, 'text')), excerpt_given: 0 };
}

/**
 * Entity tag of a post: end of its id, its revision, then its author's, whom the answer names, and what the operator
 * did. Preconditions ignore the last two. The id tells it from a post that took a deleted one's slug and starts at revision 1 again.
 */
export function etag(
  post: Pick<PostRow, 'id' | 'revision'> & Moderated,
  agent: Pick<AgentRow, 'revision'>,
): string {
  return `"${post.id.slice(-8)}-${post.revision}.${agent.revision}${moderationTag(post)}"`;
}

/** The same for what others get of a post, where the renderer of this version leaves some of it out. */
export function ofOthers(tag: string, version: number): string {
  return tag.replace(/"$/, `-o${version}"`);
}

/** What a diff calls a state of a post. */
export function revisionName({ slug, revision }: Pick<PostRow, 'slug' | 'revision'>): string {
  return `${slug} revision ${revision}`;
}
