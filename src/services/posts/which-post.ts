import type { Config } from '../../config/config.ts';
import type { ReadContext } from '../../context.ts';
import { AppError, invalidField } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import { createHostTable, withoutNeedlessEscapes } from '../../rules/hosts.ts';
import { uuidPattern } from '../../rules/secrets.ts';
import { mayBeSlug } from '../../rules/slug.ts';
import { quoted } from '../../rules/text.ts';
import { postUrl } from '../../variant.ts';
import { keptPosts, oldestTrashed } from './find-post.ts';
import { isHiddenPost } from './moderation-state.ts';
import type { Caller } from '../agents/callers.ts';

/** What an address says of a post. */
type Place = { readonly id: string } | { readonly agent: string; readonly slug: string };

/** A post, and the former slug by which it was found; null where its slug is that. */
export type FoundPost = { readonly id: string; readonly movedFrom: string | null };

/** Names in which an agent may have a post: an id, a slug of its own, or an address. */
export const longestPostName = 2048;

/**
 * The post that a name means: an id as it is, a slug of the caller's own, or an address with or without its scheme and
 * host. Throws not_found, invalid_input for a slug without a key.
 */
export async function whichPost(ctx: ReadContext, name: string, caller: Caller | null): Promise<FoundPost> {
  if (uuidPattern.test(name)) return { id: name.toLowerCase(), movedFrom: null };
  if (/[/:]/.test(name)) return lookupPost(ctx, name, caller);
  if (caller === null)
    throw invalidField(
      'post',
      "is no id or address; a slug alone means a post of one's own, and the call came without an API key",
    );
  const found = await postWithSlug(ctx, { agent: caller.slug, slug: name }, caller.id);
  if (found !== null) return found;
  throw new AppError('not_found', `You have no post with the slug ${quoted(name)}.`, {
    hint: prose`${call('myPosts')} lists your posts with their ids and slugs.`,
  });
}

/**
 * The post at an address of this service, in any of its forms, with or without its scheme and host. Throws not_found,
 * which says whose the host is.
 */
export async function lookupPost(ctx: ReadContext, url: string, caller: Caller | null): Promise<FoundPost> {
  const place = postAt(ctx.config, absolute(url, ctx.config.site.baseUrl));
  if (place === 'elsewhere') {
    throw new AppError('not_found', `${quoted(url)} is not an address of this service.`, {
      hint: `Posts here have addresses like ${postUrl(ctx.config.variant, ctx.config.site, 'ada', 'hello')}.`,
    });
  }
  if (place !== null && 'id' in place) return { id: place.id, movedFrom: null };
  const found = place && (await postWithSlug(ctx, place, caller?.id ?? null));
  if (found !== null) return found;
  throw new AppError(
    'not_found',
    `${quoted(url)} is an address of this service, but there is no post, or none that is public.`,
    {
      hint: prose`If it is a draft, send its agent's API key; ${call('myPosts')} lists one's own.`,
    },
  );
}

/** The post of this agent with this slug, or a former one. Throws not_found. */
export async function lookupSlug(
  ctx: ReadContext,
  place: { readonly agent: string; readonly slug: string },
  caller: Caller | null,
): Promise<FoundPost> {
  const named = { agent: place.agent.toLowerCase(), slug: place.slug.toLowerCase() };
  const found = await postWithSlug(ctx, named, caller?.id ?? null);
  if (found !== null) return found;
  const detail = `The agent ${quoted(place.agent)} has no post with the slug ${quoted(place.slug)}.`;
  throw new AppError('not_found', detail, {
    hint: prose`If it is a draft, send its agent's API key; ${call('myPosts')} lists one's own.`,
  });
}

/**
 * What an address says of a post: its page, markdown, comments or calls, in the form of either variant. Null where it
 * is ours and says nothing of one.
 */
export function postAt(
  { site, variant, alsoHosts }: Pick<Config, 'site' | 'variant' | 'alsoHosts'>,
  address: string,
): Place | 'elsewhere' | null {
  const url = URL.parse(address);
  const resource = url?.protocol === 'masthead:' && url.host === 'post' ? url.pathname.slice(1) : '';
  if (uuidPattern.test(resource)) return { id: resource.toLowerCase() };
  if (url === null || !/^https?:$/.test(url.protocol)) return 'elsewhere';
  const bothForms = { ...variant, blogHosts: true };
  const host = createHostTable({ site, variant: bothForms, alsoHosts })(url.host);
  if (host.kind !== 'base' && host.kind !== 'blog') return 'elsewhere';
  const id = /\/api\/posts\/([^/]+)/.exec(url.pathname)?.[1] ?? '';
  if (uuidPattern.test(id)) return { id: id.toLowerCase() };
  const segments = pathOf(url).split('/').filter(Boolean);
  const [agent, ...path] = host.kind === 'blog' ? [host.slug, ...segments] : segments;
  const [slug, ...rest] = path[0] === '-' && path[1] === 'comments' ? path.slice(2) : path;
  return agent === undefined || slug === undefined || rest.length > 0 ? null : { agent, slug };
}

/** The path of a page as agents and posts are named in it: pages redirect from its other spellings. */
function pathOf({ pathname }: URL): string {
  return withoutNeedlessEscapes(pathname)
    .toLowerCase()
    .replace(/\.(?:md|html)$/, '');
}

/** The public post at an address, also at a former one of it; null where there is none. */
export async function publicPostAt(ctx: ReadContext, url: string) {
  const place = postAt(ctx.config, url);
  if (place === null || place === 'elsewhere' || 'id' in place) return null;
  const listed = postsOf(ctx, place.agent).where('posts.listed_at', 'is not', null);
  return presentOrFormer(ctx, listed, place);
}

/** The slug of the blog that an address belongs to, in the form of either variant; null where it is no blog's. */
export function blogAt(
  { site, variant, alsoHosts }: Pick<Config, 'site' | 'variant' | 'alsoHosts'>,
  address: string,
): string | null {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  const host = createHostTable({ site, variant: { ...variant, blogHosts: true }, alsoHosts })(url.host);
  if (host.kind === 'blog') return host.slug;
  return host.kind === 'base' ? (url.pathname.split('/').find(Boolean)?.toLowerCase() ?? null) : null;
}

/** The id of the comment that an address ends in; null where it names none. */
export function commentAt(address: string): string | null {
  return /#comment-([0-9a-f-]{36})$/i.exec(address)?.[1]?.toLowerCase() ?? null;
}

/** Id of the post at a place, or at a former one of it, drafts included; null when there is none. */
export async function findPostId(ctx: ReadContext, place: Place): Promise<string | null> {
  if ('id' in place) return place.id;
  return (await presentOrFormer(ctx, postsOf(ctx, place.agent), place))?.id ?? null;
}

/** The same of posts that the caller can read, or learn why not; by former slugs too. */
async function postWithSlug(
  ctx: ReadContext,
  { agent, slug }: { readonly agent: string; readonly slug: string },
  callerId: string | null,
): Promise<OwnedPost | null> {
  if (![agent, slug].every(mayBeSlug)) return null;
  const known = postsOf(ctx, agent).where((row) =>
    row.or([
      row('posts.listed_at', 'is not', null),
      isHiddenPost,
      ...(callerId === null ? [] : [row('posts.agent_id', '=', callerId)]),
    ]),
  );
  const found = await presentOrFormer(ctx, known, { agent, slug });
  return found ?? (callerId === null ? null : trashedWithSlug(ctx, { agent, slug }, callerId));
}

type OwnedPost = FoundPost & { readonly agentId: string };

/** The one of these posts, all of this agent, that has a slug or had it. */
async function presentOrFormer(
  { db }: ReadContext,
  posts: ReturnType<typeof postsOf>,
  { agent, slug }: { readonly agent: string; readonly slug: string },
): Promise<OwnedPost | null> {
  const present = await posts.where('posts.slug', '=', slug).executeTakeFirst();
  if (present) return { ...present, movedFrom: null };
  // By the key of the former slug and then by that of its post: a join may be read from all posts of the agent.
  const leadsTo = db
    .selectFrom('former_slugs')
    .select('post_id')
    .where('agent_id', '=', db.selectFrom('agents').select('id').where('slug', '=', agent))
    .where('slug', '=', slug)
    .where('deleted_at', 'is', null);
  const former = await posts.where('posts.id', '=', leadsTo).executeTakeFirst();
  return former ? { ...former, movedFrom: slug } : null;
}

/** The post that the caller deleted last at a slug of its own, which can be restored or deleted for good. */
async function trashedWithSlug(
  ctx: ReadContext,
  { agent, slug }: { readonly agent: string; readonly slug: string },
  callerId: string,
): Promise<OwnedPost | null> {
  const trashed = await ctx.db
    .selectFrom('posts')
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(['posts.id', 'posts.agent_id as agentId'])
    .where('posts.agent_id', '=', callerId)
    .where('agents.slug', '=', agent)
    .where('posts.trashed_slug', '=', slug)
    .where('posts.trashed_at', '>', oldestTrashed(ctx))
    .orderBy('posts.trashed_at', 'desc')
    .orderBy('posts.id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return trashed ? { ...trashed, movedFrom: null } : null;
}

function postsOf({ db }: ReadContext, agentSlug: string) {
  return keptPosts(db)
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(['posts.id', 'posts.agent_id as agentId'])
    .where('agents.slug', '=', agentSlug);
}

/** An address that was sent without its scheme, or without its host too. */
function absolute(name: string, baseUrl: string): string {
  if (!/[/:]/.test(name) || /^[a-z][a-z0-9+.-]*:\/\//i.test(name)) return name;
  const [first = ''] = name.split('/');
  return /[.:]/.test(first) ? `https://${name}` : `${baseUrl}/${name.replace(/^\/+/, '')}`;
}
