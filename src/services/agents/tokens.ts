import type { ReadContext, WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow, TokenRow } from '../../db/tables.ts';
import { AppError, type ErrorCode } from '../../errors.ts';
import { call, prose, recoverAt, type Prose } from '../../rules/calls.ts';
import { newToken, sha256, uuidV4Pattern } from '../../rules/secrets.ts';
import { cancelMail, enqueueMail } from '../outbox.ts';
import { findAgent, lockAgent } from './callers.ts';
import { day } from '../../platform/durations.ts';

/** Lifetime of tokens, ms. */
export const tokenLifetime = day;

/** What verifying makes of an agent: what the mail of the token says. */
export type Confirmed = {
  readonly name: string;
  readonly slug: string | null;
  readonly bio: string | null;
  readonly avatarUrl: string | null;
  readonly email: string;
};

/**
 * Mails a new token, of which only the hash is stored: for the first key of an agent, or for another once it is verified.
 * `network` is that of the client that asked for it.
 */
export async function mailToken(tx: WriteContext, agent: AgentRow, network = ''): Promise<void> {
  const isVerified = agent.verified_at !== null;
  const token = newToken();
  await tx.db
    .insertInto('tokens')
    .values({
      hash: sha256(token),
      kind: isVerified ? 'recover' : 'verify',
      agent_id: agent.id,
      created_at: timestamp(tx.now()),
      expires_at: timestamp(tx.now() + tokenLifetime),
      confirms: isVerified ? null : JSON.stringify(asRegistered(agent)),
    })
    .execute();
  await enqueueMail(tx, isVerified ? 'recovery' : 'verification', agent, { token }, { network });
}

function asRegistered({ name, slug, bio, avatar_url, email }: AgentRow): Confirmed {
  return { name, slug, bio, avatarUrl: avatar_url, email };
}

/** What verifying with this token, which is unused, makes of its agent. */
export function confirmedBy({ row, agent }: FoundToken): Confirmed {
  // A release that voided the tokens of earlier registrations did not note it.
  return row.confirms === null ? asRegistered(agent) : (JSON.parse(row.confirms) as Confirmed);
}

/** What a used token still needs of it: the slug that its mail named, for a repeated answer. */
export function confirmedOnceUsed({ confirms }: TokenRow): string | null {
  if (confirms === null) return null;
  const { slug } = JSON.parse(confirms) as Confirmed;
  return JSON.stringify({ slug });
}

/** The slug that the mail of a token named, used or not. */
export function slugNamedBy({ row, agent }: FoundToken): string | null {
  if (row.confirms === null) return agent.slug;
  return (JSON.parse(row.confirms) as Pick<Confirmed, 'slug'>).slug;
}

/** Keeps the tokens of a registration that is erased, as hashes alone. */
export async function detachTokens(tx: WriteContext, agentId: string): Promise<void> {
  const erased = { agent_id: null, confirms: null, sealed_key: null };
  await tx.db.updateTable('tokens').set(erased).where('agent_id', '=', agentId).execute();
}

/** Voids the tokens of an agent except the one in use, and cancels undelivered messages that carry one. */
export async function voidTokens(tx: WriteContext, agentId: string, inUse = ''): Promise<void> {
  await voiding(tx).where('agent_id', '=', agentId).where('hash', '<>', inUse).execute();
  await cancelMail(tx, agentId, ['verification', 'recovery']);
}

/** Voids tokens that others may have read, by their hashes: used ones no longer repeat their key. */
export async function voidLeakedTokens(tx: WriteContext, hashes: readonly string[]): Promise<void> {
  await voiding(tx).where('hash', 'in', hashes).execute();
}

function voiding(tx: WriteContext) {
  const voided = { voided_at: timestamp(tx.now()), sealed_key: null, confirms: null };
  return tx.db.updateTable('tokens').set(voided).where('voided_at', 'is', null);
}

export type FoundToken = { readonly row: TokenRow; readonly agent: AgentRow };

/** The token, while no other transaction can use a token of the same agent. */
export async function lockToken(
  tx: WriteContext,
  token: string,
  kind: TokenRow['kind'],
): Promise<FoundToken> {
  const { agent } = await findToken(tx, token, kind);
  await lockAgent(tx, agent.id);
  return findToken(tx, token, kind);
}

/** What a token is for; null for one that was not sent. */
export async function kindOfToken(ctx: ReadContext, token: string): Promise<TokenRow['kind'] | null> {
  return (await readToken(ctx, token))?.kind ?? null;
}

/** A token that can be used, or used again. Throws invalid_token, token_expired, token_used. */
export async function findToken(
  ctx: ReadContext,
  token: string,
  kind: TokenRow['kind'],
): Promise<FoundToken> {
  const row = await readToken(ctx, token);
  if (row && row.kind !== kind) throw otherToken(row.kind);
  const agent = row?.agent_id && (await findAgent(ctx, row.agent_id));
  if (row?.agent_id === null) throw tokenTooOld(kind);
  if (!row || !agent) {
    const detail =
      'This token is not one that this service sent. Copy the whole token from the newest message.';
    const lost = kind === 'verify' ? prose` Where a key was lost, ${call('recover')} does.` : '';
    const hint = prose`${sendsAnother(kind)}${lost}`;
    throw tokenError('invalid_token', detail, 'is not one that was sent', hint);
  }
  const expired = row.expires_at <= timestamp(ctx.now());
  if (row.used_at !== null && (expired || row.voided_at !== null)) throw tokenUsed(ctx);
  if (row.voided_at !== null) throw tokenVoid(kind, agent);
  if (expired) throw tokenTooOld(agent.verified_at === null ? kind : 'recover');
  return { row, agent };
}

/** `next`: what sends another. */
function tokenTooOld(next: TokenRow['kind']): AppError {
  const message = 'is older than 24 hours';
  return tokenError('token_expired', `This token ${message}.`, message, sendsAnother(next));
}

/** The error for a token that was voided before it was used. */
export function tokenVoid(kind: TokenRow['kind'], agent: AgentRow): AppError {
  const verifiedSince = kind === 'verify' && agent.verified_at !== null;
  const detail = verifiedSince
    ? 'This token is void, since the agent was verified without it: use the API key that was given then.'
    : 'This token was made void after it was sent: use the token of a newer message, or ask for another.';
  const hint = verifiedSince ? prose`If the key is lost: ${sendsAnother('recover')}` : sendsAnother(kind);
  return tokenError('token_expired', detail, 'was made void', hint);
}

function sendsAnother(kind: TokenRow['kind']): Prose {
  return kind === 'verify'
    ? prose`${call('register')} again sends another.`
    : prose`${call('recover')} sends another.`;
}

const verifies = call('verify', { query: '?token=…' });
const confirms = call('confirmRecovery', { body: '{"token": "…"}' });

/** If a token was sent in place of a key: what it is and which call takes it. Else null. */
export async function tokenAsKey(ctx: ReadContext, key: string): Promise<Prose | null> {
  if (!uuidV4Pattern.test(key.toLowerCase())) return null;
  const row = await readToken(ctx, key);
  if (!row) return null;
  if (row.used_at !== null)
    return 'This is the token of a mail, not an API key: use the apiKey that the service answered when the token was used.';
  if (row.voided_at !== null || row.expires_at <= timestamp(ctx.now()))
    return prose`This is the token of a mail, not an API key, and it works no more: ${sendsAnother('recover')}`;
  return row.kind === 'verify'
    ? prose`This is a verification token, not an API key: ${verifies} with it gives the key.`
    : prose`This is a recovery token, not an API key: ${confirms} gives the key.`;
}

async function readToken({ db }: ReadContext, token: string): Promise<TokenRow | undefined> {
  const hash = sha256(token.toLowerCase());
  return db.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst();
}

/** The token is for the other call; whoever holds it may know. */
function otherToken(kind: TokenRow['kind']): AppError {
  const [purpose, other, hint] =
    kind === 'recover'
      ? ['recovering a key', 'verifying an address', prose`${confirms}.`]
      : ['verifying an address', 'recovering a key', prose`${verifies} with this token.`];
  const detail = `This token is for ${purpose}, not for ${other}.`;
  return tokenError('invalid_token', detail, `is for ${purpose}`, hint);
}

/** The error for a token that was used. */
export function tokenUsed(ctx: ReadContext): AppError {
  const hint = prose`If the key is lost: ${recoverAt(ctx.config.site.baseUrl)}.`;
  const detail = 'This token has been used, and gives its API key no more.';
  return tokenError('token_used', detail, 'has been used', hint);
}

function tokenError(code: ErrorCode, detail: string, message: string, hint: Prose): AppError {
  return new AppError(code, detail, { errors: [{ field: 'token', message }], hint });
}
