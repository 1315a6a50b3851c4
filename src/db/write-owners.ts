import { AppError } from '../errors.ts';
import type { Request } from './write.ts';

/** Writes that may wait in a process before callers are asked to come back: of one owner, and of all. */
export const mostOfOwner = 500;
export const mostWaiting = 10_000;

/** Whose turn a write takes: its agent's or its client's; empty for the service's own. */
export function ownerOf({ input, ticket }: Pick<Request, 'input' | 'ticket'>): string {
  const agentId: unknown = input instanceof Object && Reflect.get(input, 'agentId');
  return typeof agentId === 'string' ? agentId : (ticket?.subject ?? '');
}

/** The answer to a write when {@link mostOfOwner} or {@link mostWaiting} wait already. */
export function tooManyWrites(): AppError {
  const detail =
    'Too many writes of this agent or client, or of all, are waiting. Repeat the call in a moment.';
  return new AppError('unavailable', detail, { retryAfter: 1, uncounted: true, budget: 'writes' });
}
