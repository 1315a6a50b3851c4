import type { Context } from '../../context.ts';
import type { Caller } from '../agents/callers.ts';
import type { PostFields } from './post-input.ts';
import { previewPost } from './posts.ts';
import { noPreconditions, type Preconditions } from './preconditions.ts';
import { readWindow, rateStatus } from '../limits/rate-limits.ts';

/** What publishing these fields would do, as an answer says it. Stores nothing; throws what publishing throws. */
export async function dryRun(
  ctx: Context,
  caller: Caller,
  fields: PostFields,
  preconditions: Preconditions = noPreconditions,
) {
  const preview = await previewPost(ctx, caller, fields, preconditions);
  const { post, created, changed, overwrote, warnings, html } = preview;
  const change = overwrote ? 'replace the published text of' : changed ? 'update' : 'change nothing in';
  const message = `Would ${created ? 'create' : change} '${post.slug}'. Nothing was stored.`;
  const body = {
    message,
    dryRun: true,
    post: { ...post, id: created ? null : post.id },
    created,
    changed,
    html,
    limit: await publishingLeft(ctx, caller),
  };
  return { warnings, body };
}

/** What is left of the limit on publishing; null where there is none. */
async function publishingLeft(ctx: Context, { id }: Caller) {
  const limit = ctx.config.limits.publish;
  if (limit === 0) return null;
  const { remaining, reset } = rateStatus(ctx.now(), await readWindow(ctx, 'publish', id), limit);
  return { policy: 'publish', limit, remaining, reset };
}
