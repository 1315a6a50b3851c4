import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { MailError, type Mailer, type OutgoingMail } from '../mail/mailer.ts';
import {
  claimMail,
  countMailForSmtp,
  countUnreadableMail,
  countWaitingMail,
  openMail,
  recordAttempt,
  releaseMail,
  type Claimed,
  textKeptFor,
} from '../services/outbox.ts';
import { repeat } from './repeat.ts';

/** Messages under way at once. Each send ends within 60 s of its claim, so its lease cannot run out meanwhile. */
const mostUnderWay = 10;
/** Milliseconds that a claimed message is kept from other processes. */
const leaseDuration = 120_000;
/** Milliseconds between looks for what other processes wrote and what is due again. */
const lookEvery = 5_000;
/** Milliseconds between attempts to store a result that the database would not take. */
const storeAgainAfter = 1_000;

const firstRetryWithin = 15_000;
const retryWithinAtMost = 3_600_000;
/** Milliseconds of silence after a line that says that mail is not going out. */
const warnEvery = 600_000;

export type OutboxWorker = {
  /** Looks for messages now. */
  nudge(): void;
  /** Takes no more messages, waits for those under way, and gives their leases back. */
  close(): Promise<void>;
};

export type OutboxOptions = {
  /** From 0 to 1, like Math.random. */
  readonly random?: () => number;
  /** Milliseconds that closing waits for sends under way. */
  readonly patience?: number;
  /** Leave what was queued for a mail server, and say at once how much that is. */
  readonly folderOnly?: boolean;
};

/** Sends the messages in the outbox, retries those that failed temporarily, and logs an error when it gives up. */
export function startOutboxWorker(ctx: Context, mailer: Mailer, options: OutboxOptions = {}): OutboxWorker {
  const { random = Math.random, patience = 5_000, folderOnly = false } = options;
  const owner = randomUUID();
  const underWay = new Map<string, Promise<void>>();
  let closing = false;
  let closed = false;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let warnedAt: number | null = null;
  let warnedOfSecretAt: number | null = null;

  function nudge(): void {
    lookAgain = true;
    resume();
  }

  function resume(): void {
    if (!lookAgain || looking !== null || closing || underWay.size >= mostUnderWay) return;
    lookAgain = false;
    looking = look(mostUnderWay - underWay.size).finally(() => {
      looking = null;
      resume();
    });
  }

  async function look(limit: number): Promise<void> {
    const claimed = await claim(limit);
    for (const message of claimed) send(message);
    if (claimed.length === limit) lookAgain = true;
  }

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
    // Claimed again after its lease ran out: its result still waits to be stored.
    if (underWay.has(message.id)) return;
    const sent = attempt(message).finally(() => {
      underWay.delete(message.id);
      resume();
    });
    underWay.set(message.id, sent);
  }

  async function attempt(message: Claimed): Promise<void> {
    const mail = openMail(ctx.secretKey, message);
    if (mail === null) return keepSealed(message);
    try {
      await mailer.send(mail);
    } catch (error) {
      return closed ? undefined : failed(message, mail, error);
    }
    await store({ id: message.id, retryAt: null, error: null });
    if (warnedAt !== null) ctx.log.info({}, 'mail is going out again');
    warnedAt = null;
  }

  /** Its secret may come back. Else its text ends, as all do, when it is 7 days old. */
  async function keepSealed(message: Claimed): Promise<void> {
    const reason = 'it was sealed with another secret: put the former SECRET, or DATA_DIR/secret, back';
    if (warnedOfSecretAt === null || ctx.now() - warnedOfSecretAt >= warnEvery) {
      warnedOfSecretAt = ctx.now();
      const waiting = await countUnreadableMail(ctx).catch(() => null);
      ctx.log.warn(
        { reason, waiting },
        `mail is not going out: ${reason}; ${waiting ?? 'some'} messages wait`,
      );
    }
    await store({
      id: message.id,
      retryAt: ctx.now() + retryDelay(message.attempts, random()),
      error: reason,
    });
  }

  async function failed(message: Claimed, mail: OutgoingMail, error: unknown): Promise<void> {
    // The words of an unforeseen error may hold the address.
    const reason =
      error instanceof MailError
        ? error.message
        : `unforeseen ${error instanceof Error ? error.name : 'failure'}`;
    if (error instanceof MailError && error.permanent) return giveUp(message, reason);
    const retryAt = ctx.now() + retryDelay(message.attempts, random());
    if (retryAt > Date.parse(mail.createdAt) + textKeptFor) return giveUp(message, `${reason}, for 7 days`);
    await warn(reason);
    await store({ id: message.id, retryAt, error: reason });
  }

  async function giveUp(message: Claimed, reason: string): Promise<void> {
    await store({ id: message.id, retryAt: null, error: reason });
    ctx.log.error(
      { mailId: message.id, kind: message.kind, agentId: message.agent_id, reason },
      'a message was given up: it will not be delivered',
    );
  }

  async function warn(reason: string): Promise<void> {
    if (warnedAt !== null && ctx.now() - warnedAt < warnEvery) return;
    warnedAt = ctx.now();
    const waiting = await countWaitingMail(ctx).catch(() => null);
    ctx.log.warn({ reason, waiting }, `mail is not going out: ${reason}; ${waiting ?? 'some'} messages wait`);
  }

  /** What was sent and not stored would be sent twice: tries until the database takes it, or the process ends. */
  async function store(result: { id: string; retryAt: number | null; error: string | null }): Promise<void> {
    for (;;) {
      try {
        await ctx.engine.write(recordAttempt, { ...result, owner });
        return;
      } catch (error) {
        if (closing) return;
        const expected = error instanceof AppError;
        ctx.log[expected ? 'debug' : 'error'](
          { err: error, mailId: result.id },
          'the result of a send could not be stored yet',
        );
        await setTimeout(storeAgainAfter, null, { ref: false });
      }
    }
  }

  async function warnOfHeld(): Promise<void> {
    const waiting = await countMailForSmtp(ctx).catch(() => 0);
    if (waiting === 0) return;
    ctx.log.warn(
      { waiting },
      `mail is not going out: ${waiting} messages queued for SMTP wait: set SMTP_URL to send them`,
    );
  }

  if (folderOnly) void warnOfHeld();
  ctx.engine.onCommit(({ mailQueued }) => {
    if (mailQueued) nudge();
  });
  const looks = repeat(0, async () => {
    nudge();
    return lookEvery;
  });

  return {
    nudge,
    async close() {
      closing = true;
      await looks.stop();
      await looking;
      await Promise.race([Promise.all(underWay.values()), setTimeout(patience, null, { ref: false })]);
      closed = true;
      await ctx.engine.write(releaseMail, { owner }).catch(() => undefined);
    },
  };
}

/** Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
function retryDelay(failuresBefore: number, random: number): number {
  return Math.ceil(random * Math.min(retryWithinAtMost, firstRetryWithin * 2 ** failuresBefore));
}
