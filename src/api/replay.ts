import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { sha256 } from '../rules/secrets.ts';
import type { Replayable } from '../services/limits/idempotency.ts';
import type { Answer } from './endpoint.ts';

/** The Idempotency-Key of a call, if it has one. Throws invalid_input for one that is too long. */
export function replayOf(request: FastifyRequest, owner: string, route: string): Replayable | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key.length === 0 || key.length > 255) {
    const message = 'must be 1 to 255 characters';
    throw new AppError('invalid_input', `'Idempotency-Key' ${message}.`, {
      errors: [{ field: 'Idempotency-Key', message }],
    });
  }
  return { scope: `${owner} ${route}`, key, requestHash: sha256(JSON.stringify(request.body) ?? '') };
}

/** Calls in progress in this process, by scope and Idempotency-Key. */
const inProgress = new Set<string>();

/** Runs a call that may carry an Idempotency-Key, unless one with the same key is in progress. Throws in_progress. */
export async function withReplay(
  replay: Replayable | null,
  reply: FastifyReply,
  run: () => Promise<Answer & { readonly replayed: boolean }>,
): Promise<Answer> {
  if (replay === null) return run();
  const name = `${replay.scope} ${replay.key}`;
  if (inProgress.has(name)) {
    throw new AppError(
      'in_progress',
      'A call with this Idempotency-Key is under way. Repeat it in a moment.',
      { retryAfter: 1 },
    );
  }
  inProgress.add(name);
  try {
    const { replayed, ...answer } = await run();
    if (replayed) reply.header('idempotent-replayed', 'true');
    return answer;
  } finally {
    inProgress.delete(name);
  }
}
