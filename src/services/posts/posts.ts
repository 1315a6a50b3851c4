import type { Context } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import type { Ticket } from '../../db/write.ts';
import type { Stored } from '../../markdown/pool/jobs.ts';
import { asciiForm } from '../../rules/slug.ts';
import type { TextDiff } from '../../rules/edits/text-diff.ts';
import { scriptOf } from '../../rules/text/scripts.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { requireCallerRow, type Caller } from '../agents/callers.ts';
import { unlessMade, type Replayable } from '../limits/idempotency.ts';
import { readWindow, rateStatus } from '../limits/rate-window.ts';
import { storedText } from './find-post.ts';
import { noPreconditions, type Preconditions } from '../preconditions.ts';
import { inTurn, untilFresh } from './post-edits.ts';
import {
  changeOf,
  preparePost,
  type Aim,
  type PostFields,
  type PostInput,
  type Prepared,
} from './post-input.ts';
import { pictured } from '../media/post-pictures.ts';
import { etag, planPost, revisionName, type Plan } from './post-plan.ts';
import { findExisting } from './post-target.ts';
import { outcomeOf, recallSaved, savePost, type Noted, type Saved } from './post-store.ts';

export type Published = Saved & Noted & { readonly replayed: boolean };

type DryRunOptions = Omit<PublishOptions, 'ticket' | 'replay' | 'restored'> & {
  /** Whether the answer has the HTML that would be stored. */
  readonly html?: boolean | undefined;
};

type PublishOptions = {
  /** The post to change; without it, the one of the same slug or title, or a new one. */
  readonly postId?: string;
  readonly preconditions?: Preconditions;
  readonly ticket?: Ticket | undefined;
  /** The call's Idempotency-Key: a repeat is answered as the first call was. */
  readonly replay?: Replayable | null;
  /** Aborted when nobody waits for the answer any more: what was not begun to be stored is given up. */
  readonly signal?: AbortSignal;
  /** The text of an earlier revision, where what is sent is all that it had. */
  readonly restored?: Stored<string>;
};

/**
 * Creates or changes a post of the caller's. Throws invalid_input, too_large, leaked_key, unrenderable, edit_not_applied,
 * edit_conflict, precondition_failed, quota_exceeded, slug_taken, idempotency_mismatch, and for a `postId` not_found,
 * forbidden.
 */
export async function publish(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  options: PublishOptions = {},
): Promise<Published> {
  const { replay = null, ticket } = options;
  const recalled = async (call: Replayable) => {
    const earlier = await ctx.engine.write(recallSaved, call, ticket);
    return earlier && published(earlier, fields, true);
  };
  return unlessMade(ctx, replay, recalled, async () => make(ctx, caller, fields, options));
}

async function make(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  options: PublishOptions,
): Promise<Published> {
  if (changeOf(fields) === null) return save(ctx, caller, fields, options);
  const target = { agentId: caller.id, postId: options.postId ?? null, sent: fields };
  const { post } = await findExisting(ctx, target);
  return inTurn(post?.id ?? caller.id, async () =>
    untilFresh(async () => save(ctx, caller, fields, options)),
  );
}

async function save(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  { postId, preconditions = noPreconditions, ticket, replay = null, restored, signal }: PublishOptions,
): Promise<Published> {
  signal?.throwIfAborted();
  const aim = { postId: postId ?? null, preconditions };
  const prepared = await preparePost(ctx, caller.id, fields, {
    ...aim,
    isMeantAgain: replay !== null,
    restored,
    signal,
  });
  const { warnings, diff } = prepared;
  const noted = { warnings, diff: diff && { diff: diff.diff, truncated: diff.truncated } };
  const input = { ...inputFor(caller.id, prepared, aim), restores: restored !== undefined, replay, noted };
  const { result, replayed } = await ctx.engine.write(savePost, input, ticket);
  // The text of a revision is not among what was sent.
  const sent = restored ? { ...fields, content: '' } : fields;
  return published(result, sent, replayed);
}

function published(result: Saved & Noted, fields: PostFields, replayed: boolean): Published {
  return { ...result, replayed, warnings: [...result.warnings, ...addressWarnings(result, fields)] };
}

function inputFor(agentId: string, { sent, base }: Prepared, { postId, preconditions }: Aim) {
  // What was made from a base has met them there.
  return { agentId, postId, sent, base, preconditions: base ? noPreconditions : preconditions };
}

/** What {@link publish} would answer, and with `html` the HTML that it would store. Stores nothing; throws the same. */
export async function dryRun(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  { postId, preconditions = noPreconditions, html = false, signal }: DryRunOptions = {},
) {
  const aim = { postId: postId ?? null, preconditions };
  const { prepared, input, agent, plan } = await untilFresh(async () => {
    const made = await preparePost(ctx, caller.id, fields, { ...aim, isMeantAgain: false, signal });
    const planned = inputFor(caller.id, made, aim);
    const row = requireCallerRow(ctx, caller.id);
    return { prepared: made, input: planned, ...(await planPost(ctx, row, planned)) };
  });
  const { sent } = prepared;
  const outcome = outcomeOf(ctx, agent, plan, input);
  const { post, created, changed, overwrote } = outcome;
  const change = overwrote ? 'replace the published text of' : changed ? 'update' : 'change nothing in';
  const body = {
    message: `Would ${created ? 'create' : change} '${post.slug}'. Nothing was stored.`,
    dryRun: true,
    // The present tag, which a call that is meant can send as If-Match.
    post: { ...post, id: created ? null : post.id, etag: plan.existing && etag(plan.existing, agent) },
    created,
    changed,
    ...duplicateFields(outcome),
    ...diffFields(prepared.diff ?? (await contentDiff(ctx, plan, sent, signal))),
    ...(html ? { html: await shownHtml(ctx, agent, plan, sent) } : {}),
    limit: await publishingLeft(ctx, caller),
  };
  return { warnings: [...prepared.warnings, ...addressWarnings(outcome, fields, true)], body };
}

/** The HTML that readers of a planned post would be sent. */
async function shownHtml(
  ctx: Context,
  { id, slug }: Pick<AgentRow, 'id' | 'slug'>,
  { existing }: Plan,
  { rendered }: PostInput,
): Promise<string> {
  const html = rendered?.html ?? (existing ? await storedText(ctx, existing.id, 'html') : '');
  return (await pictured(ctx, { agentId: id, agentSlug: slug ?? '', html, image: null })).html;
}

/** What a plan changes of the content of a post; null where it creates one. */
async function contentDiff(
  ctx: Context,
  { existing, next, contentChanged }: Plan,
  { content }: PostInput,
  signal: AbortSignal | undefined,
): Promise<Pick<TextDiff, 'diff' | 'truncated'> | null> {
  if (!existing) return null;
  if (!contentChanged || content === null) return { diff: '', truncated: false };
  const names = [revisionName(existing), revisionName(next)] as const;
  const read = async () => {
    const before = await storedText(ctx, existing.id, 'content');
    return { before, after: content, names };
  };
  const bytes = existing.content_bytes + next.content_bytes;
  return ctx.renderer.diff({ bytes, read }, existing.agent_id, signal);
}

/** A diff as answers have it. */
export function diffFields(diff: Pick<TextDiff, 'diff' | 'truncated'> | null) {
  return diff ? { diff: diff.diff, ...(diff.truncated ? { diffTruncated: true } : {}) } : {};
}

/** What an author may not have meant about which post this is, and its address. */
function addressWarnings(done: Saved, { slug, title, content }: PostFields, isDry = false): Warning[] {
  const { post, created, tookOver, foundBy, duplicateOf, sameTitle, isLate } = done;
  const warnings: Warning[] = [];
  // A title without a letter that could stand in an address makes one that nobody can read.
  if (created && slug === undefined && title !== undefined && !/[a-z0-9]/.test(asciiForm(title)))
    warnings.push(
      warning(
        'generated_slug',
        `no letter of the title can be used in an address, so the slug '${post.slug}' was generated; send 'slug' to choose one`,
      ),
    );
  if (foundBy !== null)
    warnings.push(
      warning(
        'former_slug',
        `'${foundBy}' is a former slug of your post '${post.slug}', which is the post of this call; send the slug '${post.slug}' from now on`,
      ),
    );
  if (tookOver !== null)
    warnings.push(
      warning(
        'redirect_ended',
        `the address of '${post.slug}' redirected to your post '${tookOver}' and is now this post's; to change that post, send the slug '${tookOver}'`,
      ),
    );
  const script =
    content === undefined || post.lang !== null ? null : scriptOf(`${post.title} ${post.excerpt}`);
  if (script !== null)
    warnings.push(
      warning(
        'missing_lang',
        `no language is named, so pages name the script alone; send 'lang', such as '${script.language}', the language that is most often written in it`,
      ),
    );
  warnings.push(...heldWarnings(post));
  if (isLate)
    warnings.push(
      warning(
        'already_published',
        `'${post.slug}' is published already, so publishAt and status were ignored; to withdraw the post, send the status 'draft' without publishAt`,
      ),
    );
  if (duplicateOf !== null)
    warnings.push(warning('duplicate_content', `the content is that of your ${instead(duplicateOf, isDry)}`));
  if (sameTitle !== null)
    warnings.push(warning('duplicate_title', `the title is that of your ${instead(sameTitle, isDry)}`));
  return warnings;
}

function instead({ slug, status, url }: NonNullable<Saved['duplicateOf']>, isDry: boolean): string {
  const what = `${status === 'draft' ? 'draft' : 'post'} '${slug}' (${url})`;
  return isDry
    ? `${what}; to change that one instead of creating another, send the slug '${slug}'`
    : `${what}; if this was to change it, delete the new one and send the slug '${slug}'`;
}

/** A duplicate as answers name it. */
export function duplicateFields({ duplicateOf }: Pick<Saved, 'duplicateOf'>) {
  return duplicateOf ? { duplicateOf } : {};
}

/** What is left of the limit on publishing, or null. */
async function publishingLeft(ctx: Context, { id }: Caller) {
  const limit = ctx.config.limits.publish;
  if (limit === 0) return null;
  const { remaining, reset } = rateStatus(ctx.now(), await readWindow(ctx, 'publish', id), limit);
  return { policy: 'publish', limit, remaining, reset };
}

/** What a call did to a post, in sentences; `carry` says what to do with a slug that a title no longer makes. */
export function outcomeSentence(
  done: Saved,
  carry = (slug: string) => `Your file should now carry slug: ${slug}.`,
): string {
  const { post, movedFrom, isRetitled } = done;
  const redirects = movedFrom !== null && post.status === 'published' ? ' The old address redirects.' : '';
  const toSend = movedFrom !== null || isRetitled ? ` ${carry(post.slug)}` : '';
  return `${whatHappened(done)}${redirects}${toSend}${keptBack(post)}`;
}

/** What restoring a revision did, as a sentence. */
export function revisionSentence(done: Published, revision: number): string {
  return `${done.changed ? `Restored revision ${revision}. ` : ''}${outcomeSentence(done)}`;
}

/** The revision that takes a change back; null where there is nothing to take back, or no former texts are kept. */
export function restorableRevision({ config }: Context, { changed, former }: Published): number | null {
  return changed && config.revisionDays > 0 ? (former ?? null) : null;
}

/** What else keeps a post from the public. */
export function keptBack({ moderation }: Saved['post']): string {
  if (!moderation) return '';
  return moderation.action === 'held' ? ` ${heldBack}` : ' The operator keeps it hidden all the same.';
}

/** The warning about a post that is held back. */
export function heldWarnings({ moderation }: Saved['post']): Warning[] {
  return moderation?.action === 'held' ? [warning('held', heldBack)] : [];
}

const heldBack = 'It is held back: nobody else sees it until the operator has looked at it.';

function whatHappened({ post, created, changed, was, overwrote }: Saved): string {
  const isPublic = post.status === 'published';
  const draft = `the draft '${post.slug}'${post.publishAt === null ? '' : `, which becomes public at ${post.publishAt}`}`;
  const where = isPublic ? `the post at ${post.url}` : draft;
  if (created) return `Created ${where}.`;
  if (!changed) return `Nothing to change in ${where}.`;
  if (overwrote && isPublic)
    return `Updated ${where}, whose text this replaced. Another post needs another slug or title.`;
  if (was === post.status) return `Updated ${where}.`;
  return isPublic
    ? `Published ${where}.`
    : `Withdrawn: '${post.slug}' is a draft again, and no longer public at ${post.url}${post.publishAt === null ? '' : ` until ${post.publishAt}`}.`;
}
