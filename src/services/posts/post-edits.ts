import type { Context } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import type { EditedPost } from '../../markdown/pool/jobs.ts';
import { longWork } from '../../platform/slices.ts';
import { call, prose } from '../../rules/calls.ts';
import { sha256 } from '../../rules/secrets.ts';
import { normalizeNewlines } from '../../rules/text.ts';
import type { TextChange } from '../../rules/edits/text-edits.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { requireCallerRow } from '../agents/callers.ts';
import { checkPreconditions, matchesTag, type Preconditions } from '../preconditions.ts';
import { keptPosts } from './find-post.ts';
import { etag, noPostHint, revisionName, stale } from './post-plan.ts';
import { findExisting, type Naming, type Target } from './post-target.ts';

/** The state of a post that a change of its content was made for; else the change is stale. */
export type Base = {
  readonly postId: string;
  readonly revision: number;
  /** Identifies the change: a post whose newest change has the same hash has been changed so already. */
  readonly editHash: string;
};

/** What a change of a content comes to. */
export type Edited = {
  readonly base: Base;
  /** The content as it becomes; null where the change was made before. */
  readonly edited: EditedPost | null;
  readonly warnings: readonly Warning[];
};

export type Editing = {
  readonly target: Naming;
  readonly change: TextChange;
  readonly preconditions: Preconditions;
  /** Whether a change that was made before is to be made once more. */
  readonly isMeantAgain: boolean;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Applies a change to the present content of a post, and renders what comes of it. Throws edit_not_applied, too_large,
 * unrenderable, precondition_failed, and invalid_input where there is no such post.
 */
export async function applyEdits(ctx: Context, editing: Editing): Promise<Edited> {
  const { target, change, preconditions, isMeantAgain, signal } = editing;
  const { agentId } = target;
  const [agent, found] = await Promise.all([requireCallerRow(ctx, agentId), findExisting(ctx, target)]);
  if (!found.post) checkPreconditions(preconditions, null, noPostHint);
  const { post } = found;
  if (!post) throw needsPost(change, found);
  const editHash = hashOf(change);
  const base = { postId: post.id, revision: post.revision, editHash };
  const present = etag(post, agent);
  if (post.edit_hash === editHash && !isMeantAgain) {
    // A repeat brings the tag of the revision that it changed.
    const before = etag({ ...post, revision: post.revision - 1 }, agent);
    const isRepeat = preconditions.ifMatch !== null && matchesTag(preconditions.ifMatch, before);
    if (!isRepeat) checkPreconditions(preconditions, present);
    return { base, edited: null, warnings: [alreadyApplied(post)] };
  }
  checkPreconditions(preconditions, present);
  const slug = target.sent.slug !== undefined && target.postId !== null ? target.sent.slug : post.slug;
  const names = [revisionName(post), revisionName({ slug, revision: post.revision + 1 })] as const;
  const read = async () => ({ content: await textOf(ctx, post), change, names });
  const edited = await ctx.renderer
    .editPost({ bytes: post.content_bytes, read }, agentId, signal)
    .catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'edit_not_applied') throw error;
      throw new AppError(error.code, error.detail, { ...error.extra, etag: present });
    });
  return { base, edited, warnings: [] };
}

/** The content of a post in the state of its row. Throws edit_conflict where it has changed. */
async function textOf(ctx: Context, { id, revision }: PostRow): Promise<string> {
  const row = await keptPosts(ctx.db)
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select('post_bodies.content')
    .where('posts.id', '=', id)
    .where('posts.revision', '=', revision)
    .executeTakeFirst();
  if (!row) throw stale();
  return row.content;
}

function hashOf({ edits = [], append }: TextChange): string {
  const exactly = edits.map((edit) => [
    normalizeNewlines(edit.old),
    normalizeNewlines(edit.new),
    edit.all === true,
  ]);
  return sha256(JSON.stringify([exactly, append === undefined ? null : normalizeNewlines(append)]));
}

function alreadyApplied({ slug }: PostRow): Warning {
  return warning(
    'already_applied',
    `the newest change of '${slug}' was made by these same edits, so they were not applied again; if they are meant again, send them with an Idempotency-Key`,
  );
}

function needsPost(change: TextChange, { slug }: Target): AppError {
  const fields = ['edits', 'append'].filter((name) => Object.hasOwn(change, name));
  const message = 'needs an existing post';
  return new AppError(
    'invalid_input',
    `You have no post with the slug '${slug}', and '${fields.join("' and '")}' can only change one that exists.`,
    {
      errors: fields.map((field) => ({ field, message })),
      hint: prose`${call('myPosts')} lists your posts. To create one, send its whole text as content.`,
    },
  );
}

/** Attempts to store an edited content before other changes of the post are said to be in the way. */
const mostAttempts = 3;

/** Runs an attempt again while it finds its base out of date. Throws edit_conflict after the third time. */
export async function untilFresh<T>(attempt: () => Promise<T>): Promise<T> {
  const nextTurn = longWork();
  for (let n = 1; ; n++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'edit_conflict' || n === mostAttempts) throw error;
      // Whoever changed it may be about to do so again.
      await nextTurn();
    }
  }
}

/** The last of the edits that wait here for one another, by what they are about. */
const last = new Map<string, Promise<unknown>>();

/** Edits of one post by this process take turns: else all but one of them would find that it has changed. */
export async function inTurn<T>(about: string, edit: () => Promise<T>): Promise<T> {
  const turn = (last.get(about) ?? Promise.resolve()).then(edit, edit);
  last.set(about, turn);
  try {
    return await turn;
  } finally {
    if (last.get(about) === turn) last.delete(about);
  }
}
