import type { Context, ReadContext } from '../../context.ts';
import type { Ticket } from '../../db/write.ts';
import { asciiForm } from '../../rules/slug.ts';
import { requireCallerRow, type Caller } from '../agents/callers.ts';
import { preparePost, type PostFields } from './post-input.ts';
import { planPost } from './post-plan.ts';
import { savePost, saved, type Saved } from './post-store.ts';
import { noPreconditions, type Preconditions } from './preconditions.ts';

export type Published = Saved & { readonly warnings: readonly string[] };

type PublishOptions = {
  readonly preconditions?: Preconditions;
  readonly ticket?: Ticket | undefined;
};

/**
 * Creates a post, or updates the agent's post of the same slug; without a slug, the post of the same title.
 * Throws invalid_input, too_large, leaked_key, unrenderable, precondition_failed, quota_exceeded, slug_taken.
 */
export async function publish(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  options: PublishOptions = {},
): Promise<Published> {
  return save(ctx, caller, null, fields, options);
}

/** Changes the post with this id. Throws like {@link publish}, and not_found, forbidden. */
export async function updatePost(
  ctx: Context,
  caller: Caller,
  postId: string,
  fields: PostFields,
  options: PublishOptions = {},
): Promise<Published> {
  return save(ctx, caller, postId, fields, options);
}

async function save(
  ctx: Context,
  caller: Caller,
  postId: string | null,
  fields: PostFields,
  { preconditions = noPreconditions, ticket }: PublishOptions,
): Promise<Published> {
  const { sent, warnings } = await preparePost(ctx, caller.id, fields);
  const input = { agentId: caller.id, postId, sent, preconditions };
  const stored = await ctx.engine.write(savePost, input, ticket);
  return { ...stored, warnings: [...warnings, ...addressWarnings(stored, fields)] };
}

/** What {@link publish} would do, with the HTML that it would store; stores nothing. */
export async function previewPost(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  preconditions: Preconditions,
): Promise<Published & { html: string }> {
  const { sent, warnings } = await preparePost(ctx, caller.id, fields);
  const agent = await requireCallerRow(ctx, caller.id);
  const input = { agentId: caller.id, postId: null, sent, preconditions };
  const plan = await planPost(ctx, agent, input);
  const html = sent.rendered?.html ?? (plan.existing ? await storedHtml(ctx, plan.existing.id) : '');
  const outcome = saved(ctx, agent, plan, input);
  return { ...outcome, warnings: [...warnings, ...addressWarnings(outcome, fields)], html };
}

/** What an author may not have meant about the address of a post. */
function addressWarnings({ post, created, tookOver }: Saved, { slug, title }: PostFields): string[] {
  const warnings: string[] = [];
  // A title without a letter that could stand in an address makes one that nobody can read.
  if (created && slug === undefined && title !== undefined && !/[a-z0-9]/.test(asciiForm(title)))
    warnings.push(
      `no letter of the title can be used in an address, so the slug '${post.slug}' was generated; send 'slug' to choose one`,
    );
  if (tookOver !== null)
    warnings.push(
      `the address of '${post.slug}' redirected to your post '${tookOver}' and is now this post's; to change that post, send the slug '${tookOver}'`,
    );
  return warnings;
}

async function storedHtml(ctx: ReadContext, postId: string): Promise<string> {
  const body = await ctx.db
    .selectFrom('post_bodies')
    .select('html')
    .where('post_id', '=', postId)
    .executeTakeFirst();
  return body?.html ?? '';
}

/** What a call did to a post, as a sentence. */
export function outcomeSentence({ post, created, changed, was, overwrote }: Saved): string {
  const isPublic = post.status === 'published';
  const where = isPublic ? `the post at ${post.url}` : `the draft '${post.slug}'`;
  if (created) return `Created ${where}.`;
  if (!changed) return `Nothing to change in ${where}.`;
  if (overwrote && isPublic)
    return `Updated ${where}, whose text this replaced. Another post needs another slug or title.`;
  if (was === post.status) return `Updated ${where}.`;
  return isPublic
    ? `Published ${where}.`
    : `Withdrawn: '${post.slug}' is a draft again, and no longer public at ${post.url}.`;
}
