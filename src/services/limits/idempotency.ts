import type { Context, WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { keyedHash, seal, sha256, unseal } from '../../rules/secrets.ts';
import { day } from '../../platform/durations.ts';

/** How long an answer is remembered, ms. */
export const rememberedFor = day;

/** A call that carries an Idempotency-Key. */
export type Replayable = {
  /** Whose key it is and for what: `{agent id or hash of the client address} {route}`. */
  readonly scope: string;
  readonly key: string;
  /** SHA-256 of the body, to tell a repeat from a mistake. */
  readonly requestHash: string;
};

/** The result of a call, and the agent it is about: the stored result is deleted with that agent. */
export type Effect<T> = { readonly result: T; readonly agentId: string };

/** A result, and whether an earlier call produced it. */
export type Remembered<T> = { readonly result: T; readonly replayed: boolean };

/**
 * Runs the body once per Idempotency-Key: its result is stored in the transaction of its effect, and returned
 * to later calls with the key. Throws idempotency_mismatch for another body. Failures are not stored.
 */
export async function remember<T>(
  tx: WriteContext,
  replay: Replayable | null,
  body: () => Promise<Effect<T>>,
): Promise<Remembered<T>> {
  if (!replay) return { result: (await body()).result, replayed: false };
  const earlier = await recall(tx, replay);
  if (earlier !== null) return { result: earlier.result as T, replayed: true };
  const { result, agentId } = await body();
  const { scope, key, requestHash, name } = placeOf(tx, replay);
  const row = {
    agent_id: agentId,
    request_hash: requestHash,
    // Sealed, since what it repeats may be deleted before it is forgotten.
    body: seal(tx.secretKey, JSON.stringify(result), name),
    created_at: timestamp(tx.now()),
  };
  await tx.db
    .insertInto('idempotency')
    .values({ scope, key, ...row })
    .onConflict((conflict) => conflict.columns(['scope', 'key']).doUpdateSet(row))
    .execute();
  return { result, replayed: false };
}

/**
 * Answers a call as an earlier one with its key was, whatever has become since of what it is about; else makes it. One
 * that fails looks again: another process may have made it meanwhile. `readEarlier` counts the call, and reads the answer.
 */
export async function unlessMade<T>(
  ctx: Context,
  replay: Replayable | null,
  readEarlier: (replay: Replayable) => Promise<T | null>,
  make: () => Promise<T>,
): Promise<T> {
  if (!replay) return make();
  // A read first, so that a call that was not made before costs no transaction more.
  const earlier = async () => ((await storedRows(ctx, replay)).length === 0 ? null : readEarlier(replay));
  return (
    (await earlier()) ??
    make().catch(async (error: unknown) => {
      const made = error instanceof AppError ? await earlier() : null;
      if (made === null) throw error;
      return made;
    })
  );
}

/**
 * The stored result of an earlier call with the same key, or null; from then on calls with that key wait. Throws
 * idempotency_mismatch for another body.
 */
export async function recall(tx: WriteContext, replay: Replayable): Promise<{ result: unknown } | null> {
  const { key, requestHash, name } = placeOf(tx, replay);
  await tx.lock(name);
  const rows = await storedRows(tx, replay);
  const earlier = rows.find((row) => row.key === key) ?? rows[0];
  if (!earlier) return null;
  if (earlier.request_hash !== (earlier.key === key ? requestHash : replay.requestHash)) {
    throw new AppError(
      'idempotency_mismatch',
      'This Idempotency-Key was used with another body within 24 hours. Use a new key for a new call.',
    );
  }
  // Those of 0.1.0 are in clear, for a day. Null: sealed with another secret.
  const stored = earlier.body.startsWith('{') ? earlier.body : unseal(tx.secretKey, earlier.body, name);
  if (stored === null) return null;
  await tx.confirmDurable();
  return { result: JSON.parse(stored) };
}

/** What is stored for the key of a call, and not forgotten yet. */
async function storedRows(ctx: Keyed, replay: Replayable) {
  const { scope, key, plainKey } = placeOf(ctx, replay);
  return ctx.db
    .selectFrom('idempotency')
    .selectAll()
    .where('scope', '=', scope)
    .where('key', 'in', [key, plainKey])
    .where('created_at', '>', timestamp(ctx.now() - rememberedFor))
    .execute();
}

type Keyed = Pick<WriteContext, 'db' | 'now' | 'secretKey'>;

/** Where the result of a call is stored, and as what. Rows of 0.1.1 have hashes without a secret, for a day. */
function placeOf({ secretKey }: Pick<Keyed, 'secretKey'>, { scope, key: sent, requestHash }: Replayable) {
  const plainKey = sha256(sent);
  return {
    scope,
    // Clients put anything there, and what is short could be found by trying all texts.
    key: keyedHash(secretKey, 'idempotency key', sent),
    plainKey,
    requestHash: keyedHash(secretKey, 'request', requestHash),
    name: `idempotency:${scope}:${plainKey}`,
  };
}
