import type { FastifyRequest } from 'fastify';
import { beginUsage } from '../admission/admission.ts';
import type { Context } from '../context.ts';
import { keywordsOf } from '../schemas/openapi.ts';
import { dryRunQuery, sentDryRun } from '../schemas/posts.ts';
import { createCheck } from '../schemas/validate.ts';
import type { RateLimiter } from '../services/limits/rate-limiter.ts';
import type { Operation } from './endpoint.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether a call that has dry runs asks for one; false until its body is checked. */
    isDryRun: boolean;
  }
}

/** Whether a call can be asked what it would do. */
export function hasDryRun(operation: Pick<Operation, 'query'> | undefined): boolean {
  return Object.hasOwn(keywordsOf(operation?.query).properties ?? {}, 'dryRun');
}

const checkDryRun = createCheck(dryRunQuery, { coerce: true });

/** Undefined where nothing is said of it, or nothing that is understood. */
function dryRunIn(sent: unknown): boolean | undefined {
  return checkDryRun({ dryRun: sentDryRun(sent) }).value?.dryRun;
}

/** Whether a call asks for one in its query, which wins, or in the fields of its body; what counts as one must not publish. */
export function asksForDryRun(query: unknown, fields: unknown = {}): boolean {
  return dryRunIn(query) ?? dryRunIn(fields) ?? false;
}

/**
 * Counts a dry run that the body asks for against `api`, however the call ends: the body had not been read when the
 * counting began.
 */
export async function countDryRun(
  ctx: Context,
  limiter: RateLimiter,
  request: FastifyRequest,
): Promise<void> {
  const { isDryRun, usage } = request;
  if (isDryRun && usage?.policy === 'publish')
    request.usage = await beginUsage(ctx, limiter, 'api', usage.subject);
}
