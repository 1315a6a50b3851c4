import { timestamp, type Context, type WriteContext } from '../../context.ts';
import { defineWrite, type Ticket } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { parseEmail } from '../../rules/email.ts';
import { AppError, invalidField } from '../../errors.ts';
import { alreadyRegisteredMail } from '../../mail/messages.ts';
import { uuidOf, uuidv7 } from '../../rules/secrets.ts';
import { lockAgent } from './agent-lock.ts';
import { claimSlug } from './agent-slugs.ts';
import { remember, type Effect, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { agentSlugFromName } from '../../rules/slug.ts';
import { refuseLeakedKeys } from './leaked-keys.ts';
import { enqueueMail, mailboxIsFull, mailedAgent, type Mailbox } from '../outbox.ts';
import { mailVerification, voidTokens } from './tokens.ts';

/** Fields of a registration, already checked by the interface's schema. */
export type Registration = {
  readonly email: string;
  readonly name: string;
  /** Where the variant takes it from the client. */
  readonly slug?: string;
  readonly bio?: string;
  readonly avatarUrl?: string;
};

type RegisteredAgent = Readonly<{ id: string; name: string; slug: string; email: string }>;
/** `mailed` is false if the mailbox has received enough messages. */
export type RegisterResult = {
  readonly agent: RegisteredAgent;
  readonly mailed: boolean;
  /** Present if nothing was mailed to an address that was registered before: all stays as the latest message says. */
  readonly kept?: true;
  /** Present if the address was registered before: its earlier tokens still work, or are void after a change. */
  readonly renewed?: 'same' | 'changed';
};

/**
 * Registers an agent, or renews a registration that was not verified yet, and queues the verification
 * message. Throws invalid_input, slug_reserved, slug_taken, email_taken, leaked_key, and what idempotency does.
 */
export async function register(
  ctx: Context,
  input: Registration,
  { ticket, replay = null }: { ticket?: Ticket | undefined; replay?: Replayable | null } = {},
): Promise<Remembered<RegisterResult> & { warnings: string[] }> {
  const { email, name, slug, bio, avatarUrl } = input;
  await refuseLeakedKeys(ctx, { email, name: [name, agentSlugFromName(name) ?? ''], slug, bio, avatarUrl });
  const stored = await ctx.engine.write(registerAgent, { ...input, replay }, ticket);
  return { ...stored, warnings: slugWarnings(ctx, stored.result.agent) };
}

/** A slug that the name does not show is worth a word before it is verified, and is the agent's for good. */
function slugWarnings(ctx: Context, { name, slug }: RegisteredAgent): string[] {
  if (ctx.config.variant.slugSource === 'client' || !slug.startsWith('agent-')) return [];
  if (agentSlugFromName(name)?.startsWith('agent-')) return [];
  return [
    `no address can be made from this name, or it is reserved, so the slug is '${slug}'; for another, register again with another name before you verify`,
  ];
}

/** What a registration that sent no message amounts to, as a sentence or two. */
export function noMailSentence({ agent, kept }: RegisterResult, asked: Registration): string {
  const none = 'no message was sent: this address has had as many as an hour or a day allows.';
  if (!kept)
    return `Registered, but ${none} The latest one may be for another registration: if so, register again in an hour.`;
  const asAsked = agent.name === asked.name && agent.slug === (asked.slug ?? agent.slug);
  const still = asAsked
    ? ''
    : ` The registration was not changed: its name is still '${agent.name}' and its slug '${agent.slug}'.`;
  return `N${none.slice(1)}${still} Use the token of the latest message, or register again in an hour for another.`;
}

/** Begins the key under which an address that is an agent's already is kept again, with PRIVATE_REGISTRATION. */
export const unverifiable = 'unverifiable:';

export const registerAgent = defineWrite(
  'agents.register',
  async (tx, input: Registration & { replay: Replayable | null }): Promise<Remembered<RegisterResult>> =>
    remember(tx, input.replay, () => registerOnce(tx, input)),
);

async function registerOnce(tx: WriteContext, input: Registration): Promise<Effect<RegisterResult>> {
  const email = parseEmail(input.email);
  if (!email.ok) throw invalidField('email', email.message);
  const { privateRegistration } = tx.config;
  await tx.lock(`email:${email.key}`);
  const known = await lockByEmail(tx, email.key);
  if (known?.verified_at && !privateRegistration) {
    throw new AppError(
      'email_taken',
      'This e-mail address belongs to a verified agent. Register with another address.',
      {
        errors: [{ field: 'email', message: 'is taken' }],
        hint: `If the agent is yours and its key is lost: POST ${tx.config.site.baseUrl}/api/recover with {"email": "…"}.`,
      },
    );
  }
  // The caller must not learn that the address is known: what it registers is kept like any other registration,
  // only that it can never be verified.
  const owner = known?.verified_at ? known : null;
  const emailKey = owner ? unverifiable + email.key : email.key;
  const existing = owner ? await lockByEmail(tx, emailKey) : known;
  const shownId = privateRegistration ? uuidOf(tx.secretKey, `agent:${email.key}`) : null;
  const registered = (
    { id, name, email: address }: AgentRow,
    shownSlug: string,
    rest: Omit<RegisterResult, 'agent'>,
  ) => ({
    agentId: id,
    result: { agent: { id: shownId ?? id, name, slug: shownSlug, email: address }, ...rest },
  });

  const slug = await claimSlug(tx, input, existing);
  const full = await mailboxIsFull(tx, email);
  const fields = { name: input.name, slug, bio: input.bio || null, avatar_url: input.avatarUrl ?? null };
  // The latest message names what it confirms, so that must not change while no other can be sent.
  if (full && existing?.slug) return registered(existing, existing.slug, { mailed: false, kept: true });
  const agent = existing
    ? await renew(tx, existing, { ...fields, email: email.address })
    : await create(tx, {
        id: uuidv7(tx.now()),
        ...fields,
        email: email.address,
        email_key: emailKey,
      });
  if (full) return registered(agent, slug, { mailed: false });
  if (owner) await mailOwner(tx, owner, email);
  else await mailVerification(tx, agent, slug, email);
  if (!existing || privateRegistration) return registered(agent, slug, { mailed: true });
  return registered(agent, slug, { mailed: true, renewed: isSame(existing, fields) ? 'same' : 'changed' });
}

/** The agent with this address, locked so that nobody can verify it during this transaction. */
async function lockByEmail(tx: WriteContext, emailKey: string): Promise<AgentRow | undefined> {
  const agent = await tx.db
    .selectFrom('agents')
    .select('id')
    .where('email_key', '=', emailKey)
    .executeTakeFirst();
  return agent && lockAgent(tx, agent.id);
}

/** Tells the owner of an address that somebody registered it again. */
async function mailOwner(tx: WriteContext, owner: AgentRow, email: Mailbox): Promise<void> {
  const text = alreadyRegisteredMail({
    baseUrl: tx.config.site.baseUrl,
    agent: mailedAgent(tx, owner, owner.slug ?? ''),
    address: email.address,
  });
  await enqueueMail(tx, 'already-registered', owner.id, email, text);
}

async function create(
  tx: WriteContext,
  fields: Pick<AgentRow, 'id' | 'name' | 'bio' | 'avatar_url' | 'email' | 'email_key'> & { slug: string },
): Promise<AgentRow> {
  const now = timestamp(tx.now());
  return tx.db
    .insertInto('agents')
    .values({
      ...fields,
      key_hash: null,
      key_used_at: null,
      created_at: now,
      registered_at: now,
      verified_at: null,
      suspended_at: null,
      suspended_reason: null,
      listed_at: null,
      last_published_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Whether a registration leaves the unverified agent what its tokens are good for: a picture does not count. */
function isSame(agent: AgentRow, fields: Pick<AgentRow, 'name' | 'bio'> & { slug: string }): boolean {
  return agent.name === fields.name && agent.slug === fields.slug && agent.bio === fields.bio;
}

/** Registers an unverified agent again. A change voids earlier tokens: they would confirm something else. */
async function renew(
  tx: WriteContext,
  agent: AgentRow,
  fields: Pick<AgentRow, 'name' | 'bio' | 'avatar_url' | 'email'> & { slug: string },
): Promise<AgentRow> {
  if (!isSame(agent, fields)) {
    await voidTokens(tx, agent.id);
  }
  return tx.db
    .updateTable('agents')
    .set({ ...fields, registered_at: timestamp(tx.now()) })
    .where('id', '=', agent.id)
    .returningAll()
    .executeTakeFirstOrThrow();
}
