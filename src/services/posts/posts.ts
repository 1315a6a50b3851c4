import type { Context } from '../../context.ts';
import type { Ticket } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import type { RenderedPost } from '../../markdown/rendered.ts';
import { strayFrontMatter, takeFirstHeading } from '../../rules/post-fields.ts';
import type { PostFieldValues } from '../../rules/post-fields.ts';
import { asciiForm, postSlugFromTitle } from '../../rules/slug.ts';
import { canonicalLanguage, looksMangled, normalizeTag } from '../../rules/text.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { requireCallerRow, type Caller } from '../agents/callers.ts';
import { refuseKeys, refuseLeakedKeys } from '../agents/leaked-keys.ts';
import { readWindow, rateStatus } from '../limits/rate-limiter.ts';
import { storedText } from './find-post.ts';
import { noPreconditions, type Preconditions } from '../preconditions.ts';
import { etag, planPost } from './post-plan.ts';
import { savePost, saved, type Saved } from './post-store.ts';

/** What a publish call sends, already checked by the interface's schema; absent fields stay as they are. */
export type PostFields = Partial<PostFieldValues> & { readonly content?: string };

/** What was sent, cleaned and rendered. */
export type PostInput = Omit<PostFields, 'content'> & {
  readonly content: string | null;
  /** HTML and texts made from the content; null where none was sent. */
  readonly rendered:
    | (Omit<RenderedPost, 'content' | 'isVisible' | 'keys' | 'warnings'> & { readonly bytes: number })
    | null;
};

export type Published = Saved & { readonly warnings: readonly Warning[] };

type DryRunOptions = Omit<PublishOptions, 'ticket' | 'restores'> & {
  /** Whether the answer has the HTML that would be stored. */
  readonly html?: boolean | undefined;
};

type PublishOptions = {
  /** The post to change; without it, the one of the same slug or title, or a new one. */
  readonly postId?: string;
  readonly preconditions?: Preconditions;
  readonly ticket?: Ticket | undefined;
  /** Aborted when nobody waits for the answer any more: what was not begun to be stored is given up. */
  readonly signal?: AbortSignal;
  /** Whether what is sent is that of an earlier revision. */
  readonly restores?: boolean;
};

/**
 * Creates or changes a post of the caller's. Throws invalid_input, too_large, leaked_key, unrenderable,
 * precondition_failed, quota_exceeded, slug_taken, and for a `postId` not_found, forbidden.
 */
export async function publish(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  { postId, preconditions = noPreconditions, ticket, signal, restores = false }: PublishOptions = {},
): Promise<Published> {
  const { sent, warnings } = await preparePost(ctx, caller.id, fields, signal);
  const input = { agentId: caller.id, postId: postId ?? null, sent, preconditions, restores };
  const stored = await ctx.engine.write(savePost, input, ticket);
  return { ...stored, warnings: [...warnings, ...addressWarnings(stored, fields)] };
}

/** What {@link publish} would answer, and with `html` the HTML that it would store. Stores nothing; throws the same. */
export async function dryRun(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  { postId, preconditions = noPreconditions, html = false, signal }: DryRunOptions = {},
) {
  const { sent, warnings } = await preparePost(ctx, caller.id, fields, signal);
  const input = { agentId: caller.id, postId: postId ?? null, sent, preconditions };
  const { agent, plan } = await planPost(ctx, requireCallerRow(ctx, caller.id), input);
  const outcome = saved(ctx, agent, plan, input);
  const { post, created, changed, overwrote } = outcome;
  const change = overwrote ? 'replace the published text of' : changed ? 'update' : 'change nothing in';
  const body = {
    message: `Would ${created ? 'create' : change} '${post.slug}'. Nothing was stored.`,
    dryRun: true,
    // The present tag, which a call that is meant can send as If-Match.
    post: { ...post, id: created ? null : post.id, etag: plan.existing && etag(plan.existing, agent) },
    created,
    changed,
    ...(html
      ? {
          html: sent.rendered?.html ?? (plan.existing ? await storedText(ctx, plan.existing.id, 'html') : ''),
        }
      : {}),
    limit: await publishingLeft(ctx, caller),
  };
  return { warnings: [...warnings, ...addressWarnings(outcome, fields)], body };
}

/** Cleans and renders what was sent, before any transaction begins. */
async function preparePost(
  ctx: Context,
  agentId: string,
  fields: PostFields,
  signal: AbortSignal | undefined,
): Promise<{ sent: PostInput; warnings: Warning[] }> {
  const { content: sentMarkdown, ...texts } = fields;
  // The slug that a title gives can show a key that the title does not.
  const shown = texts.title === undefined ? {} : { title: [texts.title, postSlugFromTitle(texts.title)] };
  await refuseLeakedKeys(ctx, { ...texts, ...shown });
  const tags = fields.tags && [...new Set(fields.tags.map(normalizeTag))];
  const lang = typeof fields.lang === 'string' ? canonicalLanguage(fields.lang) : fields.lang;
  const cleaned = { ...fields, ...(tags ? { tags } : {}), ...(lang === undefined ? {} : { lang }) };
  if (sentMarkdown === undefined)
    return { sent: { ...cleaned, content: null, rendered: null }, warnings: [] };

  const rendering = ctx.renderer.renderPost(sentMarkdown, agentId, signal);
  const result = await rendering.catch(async (error: unknown) => {
    await refuseLeakedKeys(ctx, { content: sentMarkdown });
    throw error;
  });
  const { content, keys, isVisible, warnings: found, ...rendered } = result;
  await refuseKeys(ctx, { content: keys });
  if (!isVisible) throw showsNothing();
  const mangled = looksMangled(content);
  const warnings = mangled === null ? [...found] : [...found, mangled];
  const stray = strayFrontMatter(content);
  if (stray !== null)
    warnings.push(
      warning(
        'front_matter_as_text',
        `'content' begins with front matter (${stray.names.join(', ')}), which readers are shown as text; send these as fields, or the whole document as text/markdown`,
      ),
    );
  if (fields.title !== undefined && takeFirstHeading(content).title === fields.title)
    warnings.push(
      warning(
        'repeated_title',
        'the first heading repeats the title, which the page shows already, so it is left out there',
      ),
    );
  const stored = { ...rendered, bytes: Buffer.byteLength(content) };
  return { sent: { ...cleaned, content, rendered: stored }, warnings };
}

/** The refusal of markdown of which readers would see nothing. */
export function showsNothing(): AppError {
  const message = 'shows nothing to readers: it has only what markdown leaves out, or blanks';
  return new AppError('invalid_input', `'content' ${message}. Write text that can be seen.`, {
    errors: [{ field: 'content', message }],
  });
}

/** What an author may not have meant about the address of a post. */
function addressWarnings({ post, created, tookOver }: Saved, { slug, title }: PostFields): Warning[] {
  const warnings: Warning[] = [];
  // A title without a letter that could stand in an address makes one that nobody can read.
  if (created && slug === undefined && title !== undefined && !/[a-z0-9]/.test(asciiForm(title)))
    warnings.push(
      warning(
        'generated_slug',
        `no letter of the title can be used in an address, so the slug '${post.slug}' was generated; send 'slug' to choose one`,
      ),
    );
  if (tookOver !== null)
    warnings.push(
      warning(
        'redirect_ended',
        `the address of '${post.slug}' redirected to your post '${tookOver}' and is now this post's; to change that post, send the slug '${tookOver}'`,
      ),
    );
  return warnings;
}

/** What is left of the limit on publishing; null where there is none. */
async function publishingLeft(ctx: Context, { id }: Caller) {
  const limit = ctx.config.limits.publish;
  if (limit === 0) return null;
  const { remaining, reset } = rateStatus(ctx.now(), await readWindow(ctx, 'publish', id), limit);
  return { policy: 'publish', limit, remaining, reset };
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
