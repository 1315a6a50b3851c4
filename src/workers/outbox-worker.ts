import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { MailError, type Mailer } from '../mail/mailer.ts';
import { mailResults } from '../platform/measured.ts';
import { createLoop } from '../platform/loop.ts';
import { answerRecovery } from '../services/agents/api-keys.ts';
import {
  claimMail,
  recordAttempt,
  releaseMail,
  takeMailAgain,
  type Attempt,
  type Claimed,
  textKeptFor,
} from '../services/mail-delivery.ts';
import {
  countMailForSmtp,
  countUnreadableMail,
  countWaitingMail,
  isReadable,
  openMail,
  recoveryRequest,
} from '../services/outbox.ts';
import { hour } from '../platform/durations.ts';

/** Messages in flight at once. Each send ends within 60 s of its claim, so its lease cannot expire meanwhile. */
const mostInFlight = 10;
/** Milliseconds that a claimed message is kept from other processes. */
const leaseDuration = 120_000;
/** Milliseconds between polls for what other processes queued and what is due for a retry. */
const pollEvery = 5_000;
/** Milliseconds between attempts to store a result that the database refused. */
const storeAgainAfter = 1_000;

/** Recipients refused one after the other, and none taken, from which on it looks like the operator's to mend. */
const refusedUntilWarned = 10;

const firstRetryWithin = 15_000;
const retryWithinAtMost = hour;
/** Least milliseconds between two warnings that mail is not going out. */
const warnEvery = 600_000;

export type OutboxOptions = {
  /** From 0 to 1, like Math.random. */
  readonly random?: () => number;
  /** Milliseconds that closing waits for sends in flight. */
  readonly patience?: number;
  /** Leave what was queued for a mail server, and say at once how much that is. */
  readonly folderOnly?: boolean;
};

/** Sends the messages in the outbox, retries those that failed temporarily, and logs an error when it gives up. */
export function startOutboxWorker(ctx: Context, mailer: Mailer, options: OutboxOptions = {}) {
  const { random = Math.random, patience = 5_000, folderOnly = false } = options;
  const owner = randomUUID();
  const inFlight = new Map<string, Promise<void>>();
  const sender: Sender = { ctx, mailer, owner, random, phase: 'running' };
  const deliver = createDelivery(sender);
  /** Whether the last poll may have left due messages, for lack of a free place. */
  let mayBeMore = false;

  const loop = createLoop(async () => {
    const free = mostInFlight - inFlight.size;
    const claimed = free > 0 ? await claim(free) : [];
    mayBeMore = claimed.length === free;
    for (const message of claimed) send(message);
    return pollEvery;
  }, 0);

  async function claim(limit: number): Promise<Claimed[]> {
    try {
      return await ctx.engine.write(claimMail, { owner, limit, duration: leaseDuration, folderOnly });
    } catch (error) {
      // A database that cannot be written is reported by the housekeeping.
      if (!(error instanceof AppError)) ctx.log.error({ err: error }, 'the outbox could not be read');
      return [];
    }
  }

  function send(message: Claimed): void {
    // Claimed again after its lease expired: its result is still to be stored.
    if (inFlight.has(message.id)) return;
    const sent = deliver(message).finally(() => {
      inFlight.delete(message.id);
      if (mayBeMore) loop.soon();
    });
    inFlight.set(message.id, sent);
  }

  if (folderOnly) void warnOfHeld(ctx);
  ctx.engine.onMailQueued(() => loop.soon());

  return {
    /** Polls now. */
    nudge: () => loop.soon(),
    /** Claims no more messages, waits for those in flight, and releases their leases. */
    async close(): Promise<void> {
      sender.phase = 'closing';
      await loop.stop();
      await Promise.race([Promise.all(inFlight.values()), setTimeout(patience, null, { ref: false })]);
      sender.phase = 'closed';
      await ctx.engine.write(releaseMail, { owner }).catch(() => undefined);
    },
  };
}

type Sender = {
  readonly ctx: Context;
  readonly mailer: Mailer;
  readonly owner: string;
  readonly random: () => number;
  phase: 'running' | 'closing' | 'closed';
};

const otherSecret = 'it was sealed with another secret: put the former SECRET, or DATA_DIR/secret, back';

/** Returns what sends one claimed message and stores the result. */
function createDelivery(sender: Sender): (message: Claimed) => Promise<void> {
  const { ctx, mailer, random } = sender;
  const warnedAt = { unsent: -Infinity, unreadable: -Infinity };
  /** Recipients that were refused since a message was delivered, and whose they are. */
  const refused = new Map<string, string | null>();
  const store = (
    message: Claimed,
    error: string | null,
    retryAt: number | null = null,
    refusedBy: string | null = null,
  ) => {
    mailResults[error === null ? 'delivered' : retryAt === null ? 'given_up' : 'retried'].value++;
    return storeAttempt(sender, message, { error, retryAt, refusedBy });
  };

  async function deliver(message: Claimed): Promise<void> {
    const retryAt = () => ctx.now() + retryDelay(message.attempts, random());
    const isRequest = message.kind === recoveryRequest && isReadable(ctx.secretKey, message);
    if (isRequest) return answer(message, retryAt());
    const mail = message.kind === recoveryRequest ? null : openMail(ctx.secretKey, message);
    if (mail === null) {
      // The former secret may return; until then the message expires like all others, after 7 days.
      await warn('unreadable', otherSecret);
      return store(message, otherSecret, retryAt());
    }
    try {
      await mailer.send(mail);
    } catch (error) {
      // The lease was released: whoever claims the message next sends it again.
      if (sender.phase === 'closed') return;
      const reason = reasonOf(error);
      const { permanent, ofRecipient, ofAddress } = error instanceof MailError ? error : unforeseen;
      const level = ofRecipient ? 'info' : 'error';
      if (ofRecipient && refused.size < refusedUntilWarned) refused.set(mail.to, message.agent_id);
      const isOperators = ofRecipient ? refused.size === refusedUntilWarned : !permanent;
      if (isOperators) await warn('unsent', reason);
      if (isOperators && ofRecipient)
        await takeAgain(
          sender,
          [...refused.values()].flatMap((id) => id ?? []),
        );
      if (permanent) return giveUp(message, reason, level, ofAddress && !isOperators);
      const next = retryAt();
      if (next > Date.parse(mail.createdAt) + textKeptFor)
        return giveUp(message, `${reason}, for 7 days`, level);
      return store(message, reason, next);
    }
    refused.clear();
    await store(message, null);
    if (warnedAt.unsent > -Infinity) ctx.log.info({}, 'mail is going out again');
    warnedAt.unsent = -Infinity;
  }

  async function answer(message: Claimed, retryAt: number): Promise<void> {
    try {
      await ctx.engine.write(answerRecovery, { ...message, owner: sender.owner });
    } catch (error) {
      if (sender.phase === 'closed') return;
      if (!(error instanceof AppError))
        ctx.log.error({ err: error }, 'a recovery could not be looked up yet');
      await store(message, 'it could not be looked up yet', retryAt);
    }
  }

  async function giveUp(
    message: Claimed,
    reason: string,
    level: 'info' | 'error',
    isBad = false,
  ): Promise<void> {
    await store(message, reason, null, isBad ? message.agent_id : null);
    ctx.log[level](
      { mailId: message.id, kind: message.kind, agentId: message.agent_id, reason },
      'a message was given up: it will not be delivered',
    );
  }

  async function warn(kind: keyof typeof warnedAt, reason: string): Promise<void> {
    if (Math.abs(ctx.now() - warnedAt[kind]) < warnEvery) return;
    warnedAt[kind] = ctx.now();
    const count = kind === 'unsent' ? countWaitingMail : countUnreadableMail;
    const waiting = await count(ctx).catch(() => null);
    ctx.log.warn({ reason, waiting }, `mail is not going out: ${reason}; ${waiting ?? 'some'} messages wait`);
  }

  return deliver;
}

/** Retries until the database accepts it or the process ends: a message whose result is lost is sent twice. */
async function storeAttempt(
  sender: Sender,
  { id }: Claimed,
  result: Omit<Attempt, 'id' | 'owner'>,
): Promise<void> {
  const { ctx, owner } = sender;
  for (;;) {
    try {
      await ctx.engine.write(recordAttempt, { id, owner, ...result });
      return;
    } catch (failure) {
      if (sender.phase !== 'running') return;
      const level = failure instanceof AppError ? 'debug' : 'error';
      ctx.log[level]({ err: failure, mailId: id }, 'the result of a send could not be stored yet');
      await setTimeout(storeAgainAfter, null, { ref: false });
    }
  }
}

/** So many in a row say nothing of each address. */
async function takeAgain({ ctx }: Sender, agentIds: readonly string[]): Promise<void> {
  if (agentIds.length === 0) return;
  await ctx.engine.write(takeMailAgain, { agentIds }).catch((error: unknown) => {
    ctx.log.debug({ err: error }, 'addresses were not released; the next refusal tries again');
  });
}

const unforeseen = { permanent: false, ofRecipient: false, ofAddress: false };

/** The words of an unforeseen error may hold the address. */
function reasonOf(error: unknown): string {
  if (error instanceof MailError) return error.message;
  return `unforeseen ${error instanceof Error ? error.name : 'failure'}`;
}

async function warnOfHeld(ctx: Context): Promise<void> {
  const waiting = await countMailForSmtp(ctx).catch(() => 0);
  if (waiting === 0) return;
  ctx.log.warn(
    { waiting },
    `mail is not going out: ${waiting} messages queued for SMTP wait: set SMTP_URL to send them`,
  );
}

/** Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
function retryDelay(failuresBefore: number, random: number): number {
  return Math.ceil(random * Math.min(retryWithinAtMost, firstRetryWithin * 2 ** failuresBefore));
}
