import type { FastifyReply } from 'fastify';
import { AppError } from '../errors.ts';
import type { Replayable } from '../services/idempotency.ts';
import type { Answer } from './endpoint.ts';

/** Calls of this process that are under way, by scope and Idempotency-Key. */
const underWay = new Set<string>();

/** Runs a call that may carry an Idempotency-Key; a second one beside it is told to wait. Throws in_progress. */
export async function withReplay(
  replay: Replayable | null,
  reply: FastifyReply,
  run: () => Promise<Answer & { readonly replayed: boolean }>,
): Promise<Answer> {
  const name = replay && `${replay.scope} ${replay.key}`;
  if (name !== null && underWay.has(name)) {
    throw new AppError(
      'in_progress',
      'A call with this Idempotency-Key is under way. Repeat it in a moment.',
      { retryAfter: 1 },
    );
  }
  if (name !== null) underWay.add(name);
  try {
    const { replayed, ...answer } = await run();
    if (replayed) reply.header('idempotent-replayed', 'true');
    return answer;
  } finally {
    if (name !== null) underWay.delete(name);
  }
}
