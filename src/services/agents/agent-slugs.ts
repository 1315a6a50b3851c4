import type { ReadContext, WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { shortRandom } from '../../rules/secrets.ts';
import { agentSlugFromName, mendSlug, nthSlug, reservedAgentSlugs } from '../../rules/slug.ts';
import type { RegisterBody } from '../../schemas/agents.ts';
import { findAgentBySlug, isRetired } from './callers.ts';

/** How long an unverified registration holds its slug, ms. */
const slugHeldFor = 3_600_000;

/** The slug of a registration: the one sent, or the first free one derived from the name. */
export async function claimSlug(
  tx: WriteContext,
  input: RegisterBody,
  own: AgentRow | undefined,
): Promise<string> {
  if (tx.config.variant.slugSource === 'client') return claimGivenSlug(tx, input, own);
  if (own?.slug && own.name === input.name) return own.slug;
  const derived = agentSlugFromName(input.name);
  const first = derived === null || (await isReserved(tx, derived)) ? `agent-${shortRandom(8)}` : derived;
  await tx.lock(`slug:${first}`);
  for (let n = 1; ; n++) {
    const slug = n === 1 ? first : nthSlug(first, n);
    if ((await takeSlug(tx, slug, own)) && !(await isReserved(tx, slug))) return slug;
  }
}

async function claimGivenSlug(
  tx: WriteContext,
  { name, slug = '' }: RegisterBody,
  own: AgentRow | undefined,
): Promise<string> {
  await tx.lock(`slug:${slug}`);
  const free = await takeSlug(tx, slug, own);
  if (await isReserved(tx, slug)) {
    throw new AppError('slug_reserved', `The slug '${slug}' is reserved. Choose another.`, {
      errors: [{ field: 'slug', message: 'is reserved' }],
      hint: `A free one: '${await freeSlug(tx, agentSlugFromName(name) ?? 'agent', 1)}'.`,
    });
  }
  if (free) return slug;
  const detail = (await findAgentBySlug(tx, slug))?.verified_at
    ? `The slug '${slug}' belongs to another agent. Choose another.`
    : `The slug '${slug}' is held for another registration, which has an hour to be verified. Choose another, or try again then.`;
  throw new AppError('slug_taken', detail, {
    errors: [{ field: 'slug', message: 'is taken' }],
    hint: `A free one: '${await freeSlug(tx, mendSlug(slug) ?? 'agent', 2)}'.`,
  });
}

/**
 * Whether the caller may have the slug; takes it from a registration that was not verified in time. Called
 * before {@link isReserved}, so that an agent deleted between the two is still noticed by its retired slug.
 */
async function takeSlug(tx: WriteContext, slug: string, own: AgentRow | undefined): Promise<boolean> {
  const holder = await findAgentBySlug(tx, slug);
  if (!holder || holder.id === own?.id) return true;
  const heldSince = timestamp(tx.now() - slugHeldFor);
  if (holder.verified_at || holder.registered_at > heldSince) return false;
  // The conditions are repeated, since the holder may verify or register again at this moment.
  const { numUpdatedRows } = await tx.db
    .updateTable('agents')
    .set({ slug: null })
    .where('id', '=', holder.id)
    .where('verified_at', 'is', null)
    .where('registered_at', '<=', heldSince)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

async function freeSlug(tx: ReadContext, stem: string, from: 1 | 2): Promise<string> {
  for (let n: number = from; n < 50; n++) {
    const candidate = n === 1 ? stem : nthSlug(stem, n);
    if (!(await findAgentBySlug(tx, candidate)) && !(await isReserved(tx, candidate))) return candidate;
  }
  return `${nthSlug(stem, 2)}-${shortRandom(4)}`.slice(-63);
}

async function isReserved(tx: ReadContext, slug: string): Promise<boolean> {
  return reservedAgentSlugs.has(slug) || isRetired(tx, slug);
}
