import { sql } from 'kysely';
import { isDeepStrictEqual } from 'node:util';
import type { ReadContext, WriteContext } from '../../context.ts';
import { prepared } from '../../db/prepared.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { disambiguatedPostSlug, postSlugFromTitle } from '../../rules/slug.ts';
import type { Preconditions } from '../preconditions.ts';
import { duplicatesIn, noDuplicates, postsAlike, type Duplicates, type Likeness } from './duplicates.ts';
import { keptPosts, requireOwnPost } from './find-post.ts';
import type { Plan } from './post-plan.ts';

/** What a call is about. */
export type Target = {
  readonly post: PostRow | null;
  /** The slug that the post will have. */
  readonly slug: string;
  readonly derivedFrom: string | null;
  /** What the slug led to before, if the post does not have it yet. */
  readonly former: Former | null;
  /** The former slug by which the post was found; null where it was found otherwise. */
  readonly foundBy: string | null;
  /** Posts like a new one, where they are looked for. */
  readonly duplicates: Duplicates;
};

/** What an address was before: a redirect to another post of the agent, or to none: that post is gone. */
export type Former = { readonly leadsTo: PostRow | null };

/** What a call names a post by. */
export type Naming = {
  readonly agentId: string;
  readonly postId: string | null;
  readonly sent: { readonly slug?: string; readonly title?: string };
  /** By what posts are looked for that are like a new one; without it, none are. */
  readonly likeness?: Likeness | null | undefined;
  /** Whether only a new post is wanted, so that former slugs are free. */
  readonly createsOnly?: boolean;
};

/** The post that a call means, and the slug that it will have. Throws slug_taken, and for a `postId` not_found, forbidden. */
export async function findExisting(ctx: ReadContext, naming: Naming): Promise<Target> {
  const { postId, sent } = naming;
  if (postId !== null) return ownTarget(ctx, postId, naming);
  return sent.slug === undefined ? byTitle(ctx, sent.title, naming) : bySlug(ctx, sent.slug, naming);
}

/** Whether preconditions ask for a post that does not exist. */
export function createsOnly({ ifNoneMatch }: Preconditions): boolean {
  return ifNoneMatch?.trim() === '*';
}

/** The post with this slug, else the one that had it, whose slug stays. */
async function bySlug(ctx: ReadContext, slug: string, naming: Naming): Promise<Target> {
  const { agentId, likeness } = naming;
  const { at, before, duplicates } = await addresses(ctx, { agentId, slug, other: slug, likeness });
  const [post, former] = [at(slug), before(slug)];
  if (post) return found(post);
  if (former?.leadsTo && !naming.createsOnly) return found(former.leadsTo, slug);
  return { post, slug, derivedFrom: null, former, foundBy: null, duplicates };
}

/** A post that keeps its slug. */
function found(post: PostRow, foundBy: string | null = null): Target {
  const { slug, derived_from } = post;
  return { post, slug, derivedFrom: derived_from, former: null, foundBy, duplicates: noDuplicates };
}

/**
 * The post with this title. A post of another title that has the derived slug, or had it, is never touched: the new one's
 * slug gets a hash of its title, by which it is found again.
 */
async function byTitle(ctx: ReadContext, title: string | undefined, naming: Naming): Promise<Target> {
  if (title === undefined) {
    const message = "is required, or the 'slug' of the post to change";
    throw new AppError('invalid_input', `'title' ${message}.`, { errors: [{ field: 'title', message }] });
  }
  const { slug: derived, other: hashed } = slugsOf(title);
  const { agentId, likeness } = naming;
  const { at, before, duplicates } = await addresses(ctx, {
    agentId,
    slug: derived,
    other: hashed,
    likeness,
  });
  for (const slug of [derived, hashed]) {
    const post = at(slug);
    if (post && (post.derived_from === title || post.title === title)) return found(post);
  }
  for (const slug of naming.createsOnly ? [] : [derived, hashed]) {
    const moved = before(slug)?.leadsTo;
    if (moved?.title === title) return found(moved, slug);
  }
  const slug = at(derived) || before(derived)?.leadsTo ? hashed : derived;
  if (at(slug)) throw slugTaken(slug);
  const former = before(slug);
  if (former?.leadsTo && !naming.createsOnly) throw slugTaken(slug, former.leadsTo);
  return { post: null, slug, derivedFrom: title, former, foundBy: null, duplicates };
}

/** The slugs that a title makes: its own, and that of one whose own is another's. */
function slugsOf(title: string) {
  return { slug: postSlugFromTitle(title), other: disambiguatedPostSlug(title) };
}

/** The post of this id, if the caller may change it, and the slug that it will have. */
async function ownTarget(ctx: ReadContext, postId: string, { agentId, sent }: Naming): Promise<Target> {
  const { slug } = sent;
  const post = await requireOwnPost(ctx, agentId, postId);
  if (slug === undefined || slug === post.slug) return found(post);
  const taken = await findBySlug(ctx, agentId, slug);
  if (taken.post) throw slugTaken(slug);
  const leadsTo = taken.former?.leadsTo ?? null;
  if (leadsTo && leadsTo.id !== post.id) throw slugTaken(slug, leadsTo);
  return { ...found(post), slug, derivedFrom: null, former: taken.former && { leadsTo: null } };
}

/** The post at a slug, and what the slug led to before. */
export async function findBySlug(ctx: ReadContext, agentId: string, slug: string) {
  const { at, before } = await addresses(ctx, { agentId, slug, other: slug });
  return { post: at(slug), former: before(slug) };
}

/** As what a row was found. */
type Note = { readonly as: string | null; readonly deletedAt: string | null };
type Slugs = { readonly agentId: string; readonly slug: string; readonly other: string };
type Asked = Slugs & { readonly likeness: Likeness | null };

async function ask(db: ReadContext['db'], { likeness, ...slugs }: Asked): Promise<(PostRow & Note)[]> {
  return likeness === null ? rowsAt(db, slugs) : rowsAtAndAlike(db, { ...slugs, ...likeness });
}

/** What was asked ahead for the posts of one agent. */
type Ahead = { readonly asked: Asked; readonly rows: ReturnType<typeof ask> };
const nameOfAhead = (agentId: string) => `posts:${agentId}`;

/** Asks ahead for what {@link findExisting} needs. */
export function askAhead({ db, batchCache }: Pick<WriteContext, 'db' | 'batchCache'>, naming: Naming): void {
  const {
    agentId,
    postId,
    sent: { slug, title },
    likeness = null,
  } = naming;
  if (postId !== null || (slug === undefined && title === undefined)) return;
  const slugs = slug === undefined ? slugsOf(title ?? '') : { slug, other: slug };
  const asked = { agentId, ...slugs, likeness };
  const rows = ask(db, asked);
  rows.catch(() => undefined);
  const others = (batchCache.get(nameOfAhead(agentId)) ?? []) as Ahead[];
  batchCache.set(nameOfAhead(agentId), [...others, { asked, rows }]);
}

/** Drops what was asked ahead and is wrong once a post is new; all of its agent, where it is not, or ended a redirect. */
export function dropAhead(
  { batchCache }: Pick<WriteContext, 'batchCache'>,
  { existing, next, former }: Pick<Plan, 'existing' | 'next' | 'former'>,
): void {
  const ahead = batchCache.get(nameOfAhead(next.agent_id)) as Ahead[] | undefined;
  if (!ahead) return;
  const isRight = ({ asked: { slug, other, likeness } }: Ahead) =>
    slug !== next.slug &&
    other !== next.slug &&
    likeness?.content !== next.content_hash &&
    likeness?.title !== next.title_hash;
  batchCache.set(nameOfAhead(next.agent_id), existing || former ? [] : ahead.filter(isRight));
}

function rowsAskedAhead({ batchCache }: ReadContext, asked: Asked): Ahead['rows'] | undefined {
  const ahead = batchCache?.get(nameOfAhead(asked.agentId)) as Ahead[] | undefined;
  return ahead?.find((one) => isDeepStrictEqual(one.asked, asked))?.rows;
}

/** The posts at two slugs, what these led to before, and the posts that are like a new one. */
async function addresses(ctx: ReadContext, { likeness = null, ...asked }: Slugs & Pick<Naming, 'likeness'>) {
  const rows = await (rowsAskedAhead(ctx, { ...asked, likeness }) ?? ask(ctx.db, { ...asked, likeness }));
  const at = (slug: string) => withoutNote(rows.find((row) => row.as === isThere && row.slug === slug));
  const before = (slug: string): Former | null => {
    const former = rows.find((row) => row.as === wasThere + slug);
    return former ? { leadsTo: former.deletedAt === null ? withoutNote(former) : null } : null;
  };
  return { at, before, duplicates: likeness === null ? noDuplicates : duplicatesIn(rows) };
}

/** A row of posts; null for one of a join that found none. */
function withoutNote(row: (PostRow & Note) | undefined): PostRow | null {
  if (row === undefined || (row.id as string | null) === null) return null;
  const { as: _as, deletedAt: _at, ...post } = row;
  return post;
}

const isThere = 'at';
const wasThere = 'before ';

/** One statement, since every new post pays for each. */
const rowsAt = prepared((db, asked: Slugs) => rowsOf(db, asked).compile());
const rowsAtAndAlike = prepared((db, asked: Slugs & Likeness) =>
  rowsOf(db, asked)
    .unionAll(postsAlike(db, asked.agentId, asked))
    .compile(),
);

/** Slug by slug, since for two of few posts PostgreSQL would read all that the agent has. */
function rowsOf(db: ReadContext['db'], { agentId, slug, other }: Slugs) {
  const at = (one: string) =>
    keptPosts(db)
      .selectAll()
      .select([sql<string | null>`${sql.lit(isThere)}`.as('as'), sql<string | null>`null`.as('deletedAt')])
      .where('agent_id', '=', agentId)
      .where('slug', '=', one);
  const before = db
    .selectFrom('former_slugs')
    .leftJoin('posts', 'posts.id', 'former_slugs.post_id')
    .selectAll('posts')
    .select(sql<string | null>`${sql.lit(wasThere)} || former_slugs.slug`.as('as'))
    .select('former_slugs.deleted_at as deletedAt')
    .where('former_slugs.agent_id', '=', agentId)
    .where('former_slugs.slug', 'in', [slug, other])
    .$castTo<PostRow & Note>();
  return at(slug).unionAll(at(other)).unionAll(before);
}

function slugTaken(slug: string, leadsTo?: PostRow): AppError {
  const errors = [{ field: 'slug', message: 'is taken' }];
  if (leadsTo)
    return new AppError(
      'slug_taken',
      `The slug '${slug}' redirects to your post '${leadsTo.slug}'. Choose another.`,
      {
        errors,
        // As HTTP for all: the tool of MCP takes no former slugs.
        hint: `Send a slug of your own choice for this post, or give this one up first: PATCH /api/posts/${leadsTo.id} with {"formerSlugs": []}.`,
      },
    );
  return new AppError('slug_taken', `Another post of yours has the slug '${slug}'. Choose another.`, {
    errors,
    hint: 'Send a slug of your own choice for this post.',
  });
}
