import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { Config } from '../../config/config.ts';
import type { Context, WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { prose, recoverAt } from '../../rules/calls.ts';
import { domainOf, parseEmail, type ParsedAddress } from '../../rules/email.ts';
import { AppError, invalidField } from '../../errors.ts';
import { uuidOf, uuidv7 } from '../../rules/secrets.ts';
import { agentSlugFromName } from '../../rules/slug.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import type { RegisterBody } from '../../schemas/agents.ts';
import { noteAction, type Acting } from '../operators/audit.ts';
import { remember, type Effect, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { mailboxIsFull, mailBudget, tooMuchWaits } from '../limits/mail-limits.ts';
import { storedAvatar } from '../media/avatars.ts';
import { enqueueMail, forgetMailOf } from '../outbox.ts';
import { isAddressBlocked, isClientBlocked } from '../trust/source-blocks.ts';
import { claimDerivedSlug, claimGivenSlug } from './agent-slugs.ts';
import { findByEmail, lockAgent } from './callers.ts';
import { refuseLeakedKeys } from './leaked-keys.ts';
import { detachTokens, mailToken } from './tokens.ts';
import { day } from '../../platform/durations.ts';

export type RegisterResult = {
  readonly agent: Readonly<{ id: string; name: string; slug: string; email: string }>;
  /** False if the mailbox has received enough messages. `later`: the hour's budget of mail is spent. */
  readonly mailed: boolean | 'later';
  /** Present if nothing was mailed to an address that was registered before: all stays as the latest message says. */
  readonly kept?: true;
  /** Present if the address was registered before: its earlier tokens still work. */
  readonly renewed?: true;
};

/** Whom a call came from, as keyed hashes: its client address, and the /24 or /48 around it. */
export type Origin = { readonly address: string; readonly network: string };

/** The same with the address itself, which is looked at and not stored. */
export type Client = Origin & { readonly client: string };

type Registration = RegisterBody & {
  readonly origin: Origin | null;
  readonly replay: Replayable | null;
  /** Whether the operator wants no registrations from the client's address. */
  readonly isBlocked?: boolean;
  /** The operator, who invites whoever may register. */
  readonly invitedBy?: Acting;
};

/**
 * Registers an agent, or renews an unverified registration, and queues the message with the token.
 * Throws forbidden where the operator does not admit the address, invalid_input, slug_reserved, slug_taken, email_taken, leaked_key, unavailable where too much mail waits, and
 * what idempotency does.
 */
export async function register(
  ctx: Context,
  input: RegisterBody,
  {
    ticket,
    origin: client = null,
    replay = null,
  }: { ticket?: Ticket | undefined; origin?: Client | null; replay?: Replayable | null } = {},
): Promise<Remembered<RegisterResult> & { warnings: Warning[] }> {
  const { name } = input;
  await refuseLeakedKeys(ctx, { ...input, name: [name, agentSlugFromName(name) ?? ''] });
  const origin = client && { address: client.address, network: client.network };
  const isBlocked = client !== null && (await isClientBlocked(ctx, client.client));
  const stored = await ctx.engine.write(registerAgent, { ...input, origin, replay, isBlocked }, ticket);
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

/** What an answer adds while the hour's budget of mail is spent. */
export const mailDelayed = 'Much mail is waiting: it may take up to an hour to arrive.';

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
  async (tx, input: Registration): Promise<Remembered<RegisterResult>> =>
    remember(tx, input.replay, () => registerOnce(tx, input)),
  // Those of one slug wait for its lock; they must not do so on all connections.
  { about: ({ name, slug }) => `slug:${slug ?? agentSlugFromName(name) ?? name}` },
);

async function registerOnce(tx: WriteContext, input: Registration): Promise<Effect<RegisterResult>> {
  const email = parseEmail(input.email);
  if (!email.ok) throw invalidField('email', email.message);
  if (!input.invitedBy) {
    requireAdmitted(tx, email);
    if (input.isBlocked || (await isAddressBlocked(tx, email)))
      throw notAdmitted(tx, 'This service takes no registrations from this e-mail address or network.');
  }
  const { privateRegistration } = tx.config;
  await tx.lock(`email:${email.key}`);
  const known = await lockByEmail(tx, email.key);
  const owner = known?.verified_at ? known : null;
  if (owner && !privateRegistration) throw emailTaken(tx);
  // With an owner the caller must not learn that the address is known: its registration is stored like any other, but
  // can never be verified.
  const emailKey = owner ? unverifiable + email.key : email.key;
  const existing = owner ? await lockByEmail(tx, emailKey) : known;
  const { agent, named, ...outcome } = await storeRegistration(tx, input, email, emailKey, existing);
  if (outcome.mailed && owner) await enqueueMail(tx, 'already-registered', owner, {}, { to: email });
  else if (outcome.mailed) await mailToken(tx, agent, input.origin?.network);
  if (input.invitedBy) await noteAction(tx, input.invitedBy, 'invite', { kind: 'agent', id: agent.id });
  const { renewed, ...told } = outcome;
  const result = {
    agent: {
      id: privateRegistration ? uuidOf(tx.secretKey, `agent:${email.key}`) : agent.id,
      ...named,
      email: agent.email,
    },
    ...told,
    ...(renewed && !privateRegistration ? { renewed } : {}),
  };
  return { agentId: agent.id, result };
}

/** Throws forbidden where `REGISTRATION` does not admit an address. */
function requireAdmitted({ config: { registration, contact } }: WriteContext, { key }: ParsedAddress): void {
  const { admits, domains } = registration;
  if (admits === 'open' || (admits === 'domains' && domains.includes(domainOf(key)))) return;
  const detail =
    admits === 'closed'
      ? 'This service takes no registrations.'
      : `Only addresses of these domains may register here: ${domains.join(', ')}.`;
  throw notAdmitted({ config: { contact } }, detail);
}

function notAdmitted(
  { config: { contact } }: { readonly config: Pick<Config, 'contact'> },
  detail: string,
): AppError {
  return new AppError('forbidden', detail, {
    hint:
      contact.email === null
        ? 'Only the operator of this service can register others.'
        : `To be registered all the same, write to the operator: ${contact.email}.`,
  });
}

/** Registers an agent whatever `REGISTRATION` says, and mails its token. Throws what {@link register} does. */
export async function inviteAgent(ctx: Context, input: RegisterBody, by: Acting): Promise<RegisterResult> {
  const { result } = await ctx.engine.write(registerAgent, {
    ...input,
    origin: null,
    replay: null,
    invitedBy: by,
  });
  return result;
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

type Stored = Omit<RegisterResult, 'agent'> & {
  readonly agent: AgentRow;
  /** What the answer calls the agent. */
  readonly named: Pick<RegisterResult['agent'], 'name' | 'slug'>;
};

/** Creates or renews the registration. `mailed`: whether a message about it can be sent. */
async function storeRegistration(
  tx: WriteContext,
  input: Registration,
  email: ParsedAddress,
  emailKey: string,
  existing: AgentRow | undefined,
): Promise<Stored> {
  const { name } = input;
  const slug = await claimSlug(tx, input, existing);
  const fields = {
    name,
    slug,
    bio: input.bio || null,
    avatar_url: input.avatarUrl === undefined ? null : await storedAvatar(tx, null, input.avatarUrl),
    email: email.address,
    registered_from: input.origin?.address ?? null,
  };
  if (await mailboxIsFull(tx, email)) {
    // What the latest message confirms must not change while no other can be sent, and without one no slug is held.
    const kept = existing?.slug ? { name: existing.name, slug: existing.slug } : null;
    const agent = existing ?? (await create(tx, { ...fields, slug: null, email_key: emailKey }));
    return { agent, named: kept ?? { name, slug }, mailed: false, ...(kept ? { kept: true } : {}) };
  }
  const named = { name, slug };
  const budget = await mailBudget(tx, input.origin?.network);
  if (budget === 'full') throw tooMuchWaits();
  const mailed = budget === 'spent' ? 'later' : true;
  if (!existing) return { agent: await create(tx, { ...fields, email_key: emailKey }), named, mailed };
  const agent = await tx.db
    .updateTable('agents')
    .set({ ...fields, registered_at: timestamp(tx.now()) })
    .where('id', '=', existing.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { agent, named, mailed, renewed: true };
}

/** The agent with this address, locked so that nobody can verify it during this transaction. */
async function lockByEmail(tx: WriteContext, emailKey: string): Promise<AgentRow | undefined> {
  const agent = await findByEmail(tx, emailKey);
  return agent && lockAgent(tx, agent.id);
}

async function create(
  tx: WriteContext,
  fields: Pick<AgentRow, 'name' | 'slug' | 'bio' | 'avatar_url' | 'email' | 'email_key' | 'registered_from'>,
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

/** The slug of a registration: the one sent, or the first free one derived from the name. */
async function claimSlug(
  tx: WriteContext,
  { name, slug = '' }: RegisterBody,
  own: AgentRow | undefined,
): Promise<string> {
  if (tx.config.variant.slugSource === 'client') return claimGivenSlug(tx, { name, slug }, own?.id ?? null);
  return own?.slug && own.name === name ? own.slug : claimDerivedSlug(tx, name, own?.id ?? null);
}

/** Registrations that one sweep erases at most. */
const mostErased = 200;
/** How long the data of a registration that nobody verified are kept, ms. */
const unverifiedKeptFor = 2 * day;

/**
 * Erases registrations that nobody verified in time. Their tokens stay, as hashes that say nothing of whom they were sent
 * to. Returns whether there may be more.
 */
export async function eraseUnverified(tx: WriteContext): Promise<boolean> {
  const before = timestamp(tx.now() - unverifiedKeptFor);
  const stale = await tx.db
    .selectFrom('agents')
    .select('id')
    .where('verified_at', 'is', null)
    .where('registered_at', '<', before)
    .orderBy('registered_at')
    .limit(mostErased)
    .execute();
  for (const { id } of stale) {
    const agent = await lockAgent(tx, id);
    if (!agent || agent.verified_at !== null || agent.registered_at >= before) continue;
    await detachTokens(tx, id);
    await forgetMailOf(tx, id);
    await tx.db.deleteFrom('agents').where('id', '=', id).execute();
  }
  return stale.length === mostErased;
}
