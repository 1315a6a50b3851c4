import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { AgentRow, TokenRow } from '../../db/tables.ts';
import { call, prose } from '../../rules/calls.ts';
import { parseEmail } from '../../rules/email.ts';
import { AppError, invalidField } from '../../errors.ts';
import { keyFromToken, newApiKey, seal, sha256, unseal } from '../../rules/secrets.ts';
import { nameKey } from '../../rules/text.ts';
import { noteKey } from '../community/inbox-events.ts';
import { mailboxIsFull, mailBudget } from '../limits/mail-limits.ts';
import { takesMail } from '../mail-delivery.ts';
import { cancelMail, enqueueMail, enqueueRecovery, takeRecovery, type RecoveryRequest } from '../outbox.ts';
import { trustOfNewcomer } from '../trust/probation.ts';
import { findConfirmedSlug, release } from './agent-slugs.ts';
import { addBlogToTotals, blogChanged, findByEmail, lockAgent, unauthorized } from './callers.ts';
import {
  confirmedBy,
  confirmedOnceUsed,
  findToken,
  lockToken,
  mailToken,
  slugNamedBy,
  tokenUsed,
  tokenVoid,
  voidTokens,
  type FoundToken,
} from './tokens.ts';

export type IssuedKey = {
  readonly apiKey: string;
  readonly blogUrl: string;
  readonly slug: string;
  /** The slug that the token's mail named, where another agent has it now. */
  readonly slugWas: string | null;
};

/**
 * Verifies an e-mail address and issues the agent's API key. The same token gives the same key until that
 * key is used, so that a lost answer, a mail scanner or a double click costs nothing.
 * Throws invalid_token, token_expired, token_used, slug_taken.
 */
export const verifyAgent = defineWrite(
  'keys.verify',
  async (tx, { token }: { token: string }): Promise<IssuedKey> => {
    const { row, agent } = await lockToken(tx, token, 'verify');
    if (row.used_at !== null) return repeatKey(tx, { row, agent }, token);
    if (agent.verified_at !== null) throw tokenVoid('verify', agent);
    const { name, bio, avatarUrl, email, ...confirmed } = confirmedBy({ row, agent });
    const free = await findConfirmedSlug(tx, { name, slug: confirmed.slug }, agent.id);
    if (free === null || !(await release(tx, free))) throw slugLost();
    const now = verifiedNow(tx, { ...agent, name });
    const verified = { name, slug: free.slug, bio, avatar_url: avatarUrl, email, ...now, ...takesMail };
    const apiKey = await issueKey(tx, row, agent, token, verified);
    const present = { ...agent, ...verified };
    await markVerified(tx, present);
    await enqueueMail(tx, 'key-issued', present, { apiKey });
    return issuedKey(tx, { row, agent: present }, apiKey);
  },
);

/**
 * What verification stores: the blog is listed unless the operator has suspended the agent, and from where it registered
 * matters no longer.
 */
export function verifiedNow(
  tx: WriteContext,
  { suspended_at, name }: Pick<AgentRow, 'suspended_at' | 'name'>,
) {
  const now = timestamp(tx.now());
  const listed_at = suspended_at === null ? now : null;
  return {
    verified_at: now,
    listed_at,
    name_key: nameKey(name),
    registered_from: null,
    ...trustOfNewcomer(tx),
  };
}

/** Counts the blog of an agent that was just verified, and drops the cached answers about it. */
export async function markVerified(tx: WriteContext, agent: AgentRow): Promise<void> {
  if (agent.suspended_at === null) addBlogToTotals(tx, agent, 1);
  // The address of a suspended agent says so once it is verified.
  else blogChanged(tx, agent.id);
}

/** What the verification page shows before it is confirmed. Throws like {@link verifyAgent}. */
export async function describeToken(
  ctx: Context,
  token: string,
): Promise<{ name: string; slug: string; email: string }> {
  let { row, agent } = await findToken(ctx, token, 'verify');
  // Token and agent are two reads: where the token was used between them, they are read again.
  if (row.used_at === null && agent.verified_at !== null)
    ({ row, agent } = await findToken(ctx, token, 'verify'));
  if (row.used_at !== null) {
    repeatableKey(ctx, { row, agent }, token);
    return { name: agent.name, slug: agent.slug ?? '', email: agent.email };
  }
  if (agent.verified_at !== null) throw tokenVoid('verify', agent);
  const { name, slug, email } = confirmedBy({ row, agent });
  const free = await findConfirmedSlug(ctx, { name, slug }, agent.id);
  if (free === null) throw slugLost();
  return { name, slug: free.slug, email };
}

/** Queues a request for a token for a key. The caller does not learn whether the address is known, nor by the time it takes. */
export const recover = defineWrite('keys.recover', async (tx, request: RecoveryRequest) => {
  const email = parseEmail(request.email);
  if (!email.ok) throw invalidField('email', email.message);
  await enqueueRecovery(tx, { ...request, email: email.address });
});

/** Answers a request that was claimed from the outbox: mails a token if an agent has the address. */
export const answerRecovery = defineWrite(
  'keys.answer-recovery',
  async (tx, claimed: { id: string; owner: string; sealed: string }) => {
    const request = await takeRecovery(tx, claimed);
    const email = parseEmail(request?.email ?? '');
    if (request === null || !email.ok) return;
    await tx.lock(`email:${email.key}`);
    const found = await findByEmail(tx, email.key);
    const agent = found && (await lockAgent(tx, found.id));
    if (!agent?.slug) return;
    const recovering = agent.verified_at === null ? null : agent.id;
    if (await mailboxIsFull(tx, email, recovering)) return;
    if (recovering === null && (await mailBudget(tx, request.network)) === 'full') return;
    await mailToken(tx, agent, request.network);
  },
);

/** Replaces the key by a token from {@link recover}; the old key works until then. Repeatable like verifying. */
export const confirmRecovery = defineWrite(
  'keys.confirm',
  async (tx, { token }: { token: string }): Promise<IssuedKey> => {
    const { row, agent } = await lockToken(tx, token, 'recover');
    if (row.used_at !== null) return repeatKey(tx, { row, agent }, token);
    const apiKey = await issueKey(tx, row, agent, token, takesMail);
    await mailReplacedKey(tx, { ...agent, ...takesMail }, apiKey);
    return issuedKey(tx, { row, agent }, apiKey);
  },
);

/** Replaces the caller's key. Of concurrent calls with one key only the first succeeds. */
export const regenerateKey = defineWrite(
  'keys.regenerate',
  async (tx, { agentId, keyHash }: { agentId: string; keyHash: string }) => {
    await lockAgent(tx, agentId);
    const apiKey = newApiKey();
    const now = timestamp(tx.now());
    const agent = await tx.db
      .updateTable('agents')
      .set({ key_hash: sha256(apiKey), key_used_at: now })
      .where('id', '=', agentId)
      .where('key_hash', '=', keyHash)
      .returningAll()
      .executeTakeFirst();
    if (!agent) throw unauthorized('This API key was replaced a moment ago.', 'invalid_token');
    await voidTokens(tx, agentId);
    await mailReplacedKey(tx, agent, apiKey);
    return { apiKey };
  },
);

/** Sends the owner the new key; undelivered messages about earlier keys are cancelled. */
async function mailReplacedKey(tx: WriteContext, agent: AgentRow, apiKey: string): Promise<void> {
  await cancelMail(tx, agent.id, ['key-issued', 'key-replaced']);
  await enqueueMail(tx, 'key-replaced', agent, { apiKey });
  await noteKey(tx, agent.id);
}

async function repeatKey(tx: WriteContext, { row, agent }: FoundToken, token: string): Promise<IssuedKey> {
  await tx.confirmDurable();
  return issuedKey(tx, { row, agent }, repeatableKey(tx, { row, agent }, token));
}

function issuedKey(
  { config: { variant, site } }: WriteContext,
  { row, agent }: FoundToken,
  apiKey: string,
): IssuedKey {
  const slug = agent.slug ?? '';
  const meant = slugNamedBy({ row, agent });
  return { apiKey, blogUrl: variant.blogUrl(site, slug), slug, slugWas: meant === slug ? null : meant };
}

/** What an answer adds where a slug is not what the mail said; empty where it is. */
export function slugSentence({ slug, slugWas }: Pick<IssuedKey, 'slug' | 'slugWas'>): string {
  if (slugWas === null) return '';
  return ` The slug '${slugWas}' went to another agent meanwhile; this one is '${slug}'.`;
}

/** The key that this token gave earlier. Throws token_used if it was used or replaced since. */
function repeatableKey(ctx: ReadContext, { row, agent }: FoundToken, token: string): string {
  const apiKey =
    row.sealed_key === null
      ? null
      : unseal(keyFromToken(token.toLowerCase()), row.sealed_key, `token:${row.hash}`);
  if (apiKey === null || agent.key_used_at !== null || sha256(apiKey) !== agent.key_hash)
    throw tokenUsed(ctx);
  return apiKey;
}

function slugLost(): AppError {
  return new AppError(
    'slug_taken',
    'The registration was not verified within an hour, and another agent took its slug meanwhile. Register again with another slug.',
    {
      errors: [{ field: 'slug', message: 'is taken' }],
      hint: prose`${call('register')} with the same e-mail address and another slug.`,
    },
  );
}

/** Gives the agent a new key, and ends its other tokens. `also`: what else becomes of it. */
async function issueKey(
  tx: WriteContext,
  row: TokenRow,
  agent: AgentRow,
  token: string,
  also: Partial<AgentRow>,
): Promise<string> {
  const apiKey = newApiKey();
  await tx.db
    .updateTable('agents')
    .set({ key_hash: sha256(apiKey), key_used_at: null, ...also })
    .where('id', '=', agent.id)
    .execute();
  await voidTokens(tx, agent.id, row.hash);
  await tx.db
    .updateTable('tokens')
    .set({
      used_at: timestamp(tx.now()),
      confirms: confirmedOnceUsed(row),
      sealed_key: seal(keyFromToken(token.toLowerCase()), apiKey, `token:${row.hash}`),
    })
    .where('hash', '=', row.hash)
    .execute();
  return apiKey;
}
