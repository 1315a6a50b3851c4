import { timestamp } from '../../db/write.ts';
import type { ReadContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import type { PostInput } from '../posts/post-input.ts';

/** A post can be scheduled for so long ahead at least, ms, and for a year at most. */
const soonest = 60_000;

/** What a call sent of the status and time of a post, as it is to be stored. */
type Scheduled = {
  readonly sent: PostInput;
  /** Whether a time was sent for a post that is published already. */
  readonly isLate: boolean;
};

/**
 * Settles status and time of publication. A time ahead makes a draft of what was sent as published; of a published
 * post both are ignored, so that a file with its time can be sent again afterwards. Throws invalid_input.
 */
export function schedule(ctx: ReadContext, existing: PostRow | null, sent: PostInput): Scheduled {
  const { publishAt, status, ...rest } = sent;
  if (existing?.status === 'published' && typeof publishAt === 'string') return { sent: rest, isLate: true };
  // A release before this one publishes without taking the time off.
  const stored = existing?.status === 'draft' ? existing.publishAt : null;
  const now = ctx.now();
  const at = publishAt === undefined ? stored : publishAt;
  if (typeof publishAt === 'string' && publishAt !== stored) requireAhead(publishAt, now);
  const isAsked = publishAt !== undefined && at !== null && at > timestamp(now);
  if (status === 'published' && !isAsked) return { sent: { ...sent, publishAt: null }, isLate: false };
  if (at === null) return { sent: { ...sent, publishAt: null }, isLate: false };
  return { sent: { ...sent, status: 'draft', publishAt: at }, isLate: false };
}

function requireAhead(publishAt: string, now: number): void {
  const at = Date.parse(publishAt);
  const yearAhead = new Date(now);
  yearAhead.setUTCFullYear(yearAhead.getUTCFullYear() + 1);
  const said =
    at <= now
      ? 'is in the past'
      : at < now + soonest
        ? 'is less than a minute ahead'
        : at > yearAhead.getTime()
          ? 'is more than a year ahead'
          : null;
  if (said === null) return;
  const message = `${said}: it is ${timestamp(now)} here`;
  throw new AppError('invalid_input', `'publishAt' ${message}.`, {
    errors: [{ field: 'publishAt', message }],
    hint:
      at < now + soonest
        ? "To publish now, send the status 'published' and no publishAt."
        : 'Send a time within a year, or leave publishAt out and keep the draft.',
  });
}
