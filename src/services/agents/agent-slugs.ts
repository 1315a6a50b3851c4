import { expressionBuilder, sql } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { shortRandom } from '../../rules/secrets.ts';
import { agentSlugFromName, isReservedAgentSlug, mendSlug, nthSlug, suffixedSlug } from '../../rules/slug.ts';
import { clocksMayDiffer } from '../limits/rate-window.ts';
import { hour } from '../../platform/durations.ts';

/** How long an unverified registration holds its slug, ms. */
const slugHeldFor = hour;
/** How many registrations of one client address hold theirs: the newest. */
const mostHeld = 20;
/** A taken slug is numbered from 2 up to this. */
const lastNumber = 99;

/** Who has a slug. `id` is null where it was a deleted agent's. */
type Holder = {
  readonly slug: string;
  readonly id: string | null;
  readonly verified_at: string | null;
  readonly registered_at: string;
  /** Unverified registrations of the same client address that are newer, up to {@link mostHeld}. */
  readonly newer: number;
};

/** A slug that the agent may have, and the registration that held it too long, from which it is taken. */
export type FreeSlug = { readonly slug: string; readonly lapsed: Holder | null };

/** The slug that an agent sent. Throws slug_reserved, slug_taken. */
export async function claimGivenSlug(
  tx: WriteContext,
  { name, slug }: { readonly name: string; readonly slug: string },
  ownId: string | null,
): Promise<string> {
  await tx.lock(`slug:${slug}`);
  const [holder] = await holdersOf(tx, [slug]);
  if (ownId !== null && holder?.id === ownId) return slug;
  if (isReservedAgentSlug(slug) || holder?.id === null) {
    const stem = agentSlugFromName(name);
    throw new AppError('slug_reserved', `The slug '${slug}' is reserved. Choose another.`, {
      errors: [{ field: 'slug', message: 'is reserved' }],
      hint: `A free one: '${await freeSlug(tx, stem === null || isReservedAgentSlug(stem) ? 'agent' : stem)}'.`,
    });
  }
  const free = firstFree(tx, [slug], holder ? [holder] : [], ownId);
  if (free !== null && (await release(tx, free))) return slug;
  const detail = holder?.verified_at
    ? `The slug '${slug}' belongs to another agent. Choose another.`
    : `The slug '${slug}' is held for another registration, which has an hour to be verified. Choose another, or try again then.`;
  throw new AppError('slug_taken', detail, {
    errors: [{ field: 'slug', message: 'is taken' }],
    hint: `A free one: '${await freeSlug(tx, mendSlug(slug) ?? 'agent')}'.`,
  });
}

/** The slug derived from a name: the first free one. */
export async function claimDerivedSlug(
  tx: WriteContext,
  name: string,
  ownId: string | null,
): Promise<string> {
  const stem = stemOf(name);
  // So that those of one name are numbered without a gap; the unique index decides.
  await tx.lock(`slug:${stem}`);
  const free = await findFreeOf(tx, stem, ownId);
  return (await release(tx, free)) ? free.slug : longRandom(stem);
}

/** What slugs are made from: what a name gives, or something random where that is nothing, or reserved. */
function stemOf(name: string): string {
  const derived = agentSlugFromName(name);
  return derived === null || isReservedAgentSlug(derived) ? longRandom('agent') : derived;
}

/** A slug that hardly anybody has. */
function longRandom(stem: string): string {
  return suffixedSlug(stem, shortRandom(8));
}

/** A stem, its numbers, and where all are taken some endings: of thousands of one name short ones meet. */
function candidatesOf(stem: string): string[] {
  const numbers = Array.from({ length: lastNumber - 1 }, (_, i) => nthSlug(stem, i + 2));
  const endings = [4, 4, 4, 8].map((length) => suffixedSlug(stem, shortRandom(length)));
  return [stem, ...numbers, ...endings];
}

/**
 * The slug that a token confirms, or null if the agent cannot have it any more. Where slugs come from names, it is then
 * the next free one.
 */
export async function findConfirmedSlug(
  ctx: ReadContext,
  { name, slug }: { readonly name: string; readonly slug: string | null },
  ownId: string,
): Promise<FreeSlug | null> {
  const own = slug === null ? [] : [slug];
  if (ctx.config.variant.slugSource === 'client') return findFreeSlug(ctx, own, ownId);
  return findFreeOf(ctx, stemOf(name), ownId, own);
}

/** The first free slug of a stem, after those that are to come first. */
async function findFreeOf(
  ctx: ReadContext,
  stem: string,
  ownId: string | null,
  first: readonly string[] = [],
): Promise<FreeSlug> {
  const free = await findFreeSlug(ctx, [...first, ...candidatesOf(stem)], ownId);
  return free ?? { slug: longRandom(stem), lapsed: null };
}

/** The first of these slugs that the agent may have, by one query. */
async function findFreeSlug(
  ctx: ReadContext,
  candidates: readonly string[],
  ownId: string | null,
): Promise<FreeSlug | null> {
  const holders = candidates.length === 0 ? [] : await holdersOf(ctx, candidates);
  return firstFree(ctx, candidates, holders, ownId);
}

function firstFree(
  ctx: ReadContext,
  candidates: readonly string[],
  holders: readonly Holder[],
  ownId: string | null,
): FreeSlug | null {
  const bySlug = new Map(holders.map((holder) => [holder.slug, holder]));
  for (const slug of candidates) {
    const holder = bySlug.get(slug);
    // What an agent has is its own, also where no other could choose it now.
    if (ownId !== null && holder?.id === ownId) return { slug, lapsed: null };
    if (isReservedAgentSlug(slug)) continue;
    if (holder === undefined) return { slug, lapsed: null };
    if (hasLapsed(ctx, holder)) return { slug, lapsed: holder };
  }
  return null;
}

function hasLapsed(ctx: ReadContext, { verified_at, registered_at, newer }: Holder): boolean {
  const isHeld =
    registered_at > timestamp(ctx.now() - slugHeldFor) &&
    registered_at <= timestamp(ctx.now() + clocksMayDiffer);
  return verified_at === null && !(isHeld && newer < mostHeld);
}

/** Takes a slug from the registration that held it. False if that was verified or renewed at this moment. */
export async function release(tx: WriteContext, { lapsed }: FreeSlug): Promise<boolean> {
  if (lapsed === null) return true;
  const { numUpdatedRows } = await tx.db
    .updateTable('agents')
    .set({ slug: null })
    .where('id', '=', lapsed.id)
    .where('verified_at', 'is', null)
    .where('registered_at', '=', lapsed.registered_at)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

async function freeSlug(ctx: ReadContext, stem: string): Promise<string> {
  return (await findFreeOf(ctx, stem, null)).slug;
}

async function holdersOf({ db }: ReadContext, slugs: readonly string[]): Promise<readonly Holder[]> {
  const among = expressionBuilder<Tables, 'agents' | 'retired_slugs'>()('slug', 'in', slugs);
  const { rows } = await sql<Holder>`
    select slug, id, verified_at, registered_at, (
      select count(*) from (
        select 1 as one from agents as other
        where other.registered_from = agents.registered_from and other.verified_at is null
          and (other.registered_at, other.id) > (agents.registered_at, agents.id)
        limit ${sql.lit(mostHeld)}
      ) as others
    ) as newer
    from agents where ${among}
    union all
    select slug, null, retired_at, retired_at, 0 from retired_slugs where ${among}`.execute(db);
  return rows;
}
