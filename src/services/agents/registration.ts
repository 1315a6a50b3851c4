import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { prose, recoverAt } from '../../rules/calls.ts';
import { parseEmail } from '../../rules/email.ts';
import { AppError, invalidField } from '../../errors.ts';
import { shortRandom, uuidOf, uuidv7 } from '../../rules/secrets.ts';
import { agentSlugFromName, mendSlug, nthSlug, reservedAgentSlugs } from '../../rules/slug.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import type { RegisterBody } from '../../schemas/agents.ts';
import { remember, type Effect, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { enqueueMail, mailboxIsFull, type Mailbox } from '../outbox.ts';
import { findAgentBySlug, findByEmail, isRetired, lockAgent } from './callers.ts';
import { refuseLeakedKeys } from './leaked-keys.ts';
import { mailToken, voidTokens } from './tokens.ts';

export type RegisterResult = {
  readonly agent: Readonly<{ id: string; name: string; slug: string; email: string }>;
  /** False if the mailbox has received enough messages. */
  readonly mailed: boolean;
  /** Present if nothing was mailed to an address that was registered before: all stays as the latest message says. */
  readonly kept?: true;
  /** Present if the address was registered before: its earlier tokens still work, or are void after a change. */
  readonly renewed?: 'same' | 'changed';
};

/**
 * Registers an agent, or renews an unverified registration, and queues the message with the token.
 * Throws invalid_input, slug_reserved, slug_taken, email_taken, leaked_key, and what idempotency does.
 */
export async function register(
  ctx: Context,
  input: RegisterBody,
  { ticket, replay = null }: { ticket?: Ticket | undefined; replay?: Replayable | null } = {},
): Promise<Remembered<RegisterResult> & { warnings: Warning[] }> {
  const { name } = input;
  await refuseLeakedKeys(ctx, { ...input, name: [name, agentSlugFromName(name) ?? ''] });
  const stored = await ctx.engine.write(registerAgent, { ...input, replay }, ticket);
  return { ...stored, warnings: slugWarnings(ctx, stored.result.agent) };
}

/** Warns of a slug that the name did not yield, since it is permanent once verified. */
function slugWarnings(ctx: Context, { name, slug }: RegisterResult['agent']): Warning[] {
  if (ctx.config.variant.slugSource === 'client' || !slug.startsWith('agent-')) return [];
  if (agentSlugFromName(name)?.startsWith('agent-')) return [];
  return [
    warning(
      'generated_slug',
      `no address can be made from this name, or it is reserved, so the slug is '${slug}'; for another, register again with another name before you verify`,
    ),
  ];
}

/** The message of the answer to a registration that sent no mail. */
export function noMailSentence({ agent, kept }: RegisterResult, asked: RegisterBody): string {
  const none = 'no message was sent: this address has had as many as an hour or a day allows.';
  if (!kept)
    return `Registered, but ${none} The latest one may be for another registration: if so, register again in an hour.`;
  const asAsked = agent.name === asked.name && agent.slug === (asked.slug ?? agent.slug);
  const still = asAsked
    ? ''
    : ` The registration was not changed: its name is still '${agent.name}' and its slug '${agent.slug}'.`;
  return `N${none.slice(1)}${still} Use the token of the latest message, or register again in an hour for another.`;
}

/** Prefix of `email_key` of a registration whose address already belongs to an agent, with PRIVATE_REGISTRATION. */
export const unverifiable = 'unverifiable:';

export const registerAgent = defineWrite(
  'agents.register',
  async (tx, input: RegisterBody & { replay: Replayable | null }): Promise<Remembered<RegisterResult>> =>
    remember(tx, input.replay, () => registerOnce(tx, input)),
);

async function registerOnce(tx: WriteContext, input: RegisterBody): Promise<Effect<RegisterResult>> {
  const email = parseEmail(input.email);
  if (!email.ok) throw invalidField('email', email.message);
  const { privateRegistration } = tx.config;
  await tx.lock(`email:${email.key}`);
  const known = await lockByEmail(tx, email.key);
  const owner = known?.verified_at ? known : null;
  if (owner && !privateRegistration) throw emailTaken(tx);
  // With an owner the caller must not learn that the address is known: its registration is stored like any other, but
  // can never be verified.
  const emailKey = owner ? unverifiable + email.key : email.key;
  const existing = owner ? await lockByEmail(tx, emailKey) : known;
  const { agent, mailed, kept, renewed } = await storeRegistration(tx, input, email, emailKey, existing);
  if (mailed && owner) await enqueueMail(tx, 'already-registered', owner, {}, email);
  else if (mailed) await mailToken(tx, agent);
  const result = {
    agent: {
      id: privateRegistration ? uuidOf(tx.secretKey, `agent:${email.key}`) : agent.id,
      name: agent.name,
      slug: agent.slug ?? '',
      email: agent.email,
    },
    mailed,
    ...(kept ? { kept } : {}),
    ...(renewed && !privateRegistration ? { renewed } : {}),
  };
  return { agentId: agent.id, result };
}

function emailTaken({ config: { site } }: WriteContext): AppError {
  return new AppError(
    'email_taken',
    'This e-mail address belongs to a verified agent. Register with another address.',
    {
      errors: [{ field: 'email', message: 'is taken' }],
      hint: prose`If the agent is yours and its key is lost: ${recoverAt(site.baseUrl)}.`,
    },
  );
}

type Stored = Omit<RegisterResult, 'agent'> & { readonly agent: AgentRow };

/** Creates or renews the registration. `mailed`: whether a message about it can be sent. */
async function storeRegistration(
  tx: WriteContext,
  input: RegisterBody,
  email: Mailbox,
  emailKey: string,
  existing: AgentRow | undefined,
): Promise<Stored> {
  const slug = await claimSlug(tx, input, existing);
  const mailed = !(await mailboxIsFull(tx, email));
  // The latest message names what it confirms, so that must not change while no other can be sent.
  if (!mailed && existing?.slug) return { agent: existing, mailed, kept: true };
  const fields = {
    name: input.name,
    slug,
    bio: input.bio || null,
    avatar_url: input.avatarUrl ?? null,
    email: email.address,
  };
  if (!existing) return { agent: await create(tx, { ...fields, email_key: emailKey }), mailed };
  // A picture is not part of what a token confirms.
  const isSame = existing.name === fields.name && existing.slug === slug && existing.bio === fields.bio;
  // Earlier tokens would confirm other values.
  if (!isSame) await voidTokens(tx, existing.id);
  const agent = await tx.db
    .updateTable('agents')
    .set({ ...fields, registered_at: timestamp(tx.now()) })
    .where('id', '=', existing.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { agent, mailed, ...(mailed ? { renewed: isSame ? 'same' : 'changed' } : {}) };
}

/** The agent with this address, locked so that nobody can verify it during this transaction. */
async function lockByEmail(tx: WriteContext, emailKey: string): Promise<AgentRow | undefined> {
  const agent = await findByEmail(tx, emailKey);
  return agent && lockAgent(tx, agent.id);
}

async function create(
  tx: WriteContext,
  fields: Pick<AgentRow, 'name' | 'slug' | 'bio' | 'avatar_url' | 'email' | 'email_key'>,
): Promise<AgentRow> {
  const now = timestamp(tx.now());
  return tx.db
    .insertInto('agents')
    .values({
      id: uuidv7(tx.now()),
      ...fields,
      created_at: now,
      registered_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** How long an unverified registration holds its slug, ms. */
const slugHeldFor = 3_600_000;

/** The slug of a registration: the one sent, or the first free one derived from the name. */
async function claimSlug(tx: WriteContext, input: RegisterBody, own: AgentRow | undefined): Promise<string> {
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
