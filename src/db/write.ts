import type { Config } from '../config/config.ts';
import type { WriteContext } from '../context.ts';
import { AppError, type ErrorCode, type ErrorExtra } from '../errors.ts';
import { asHttp, call, prose, type Prose } from '../rules/calls.ts';
import { databaseFailures, writeResults, writeSeconds } from '../platform/measured.ts';
import { errorMessage } from '../rules/failure.ts';
import type { Commit, Engine } from './database.ts';
import type { PostCounts, LastChanges } from './last-changes.ts';
import type { AgentRow, Tables } from './tables.ts';

/**
 * A write: a named function of plain data. Everything that changes the database is one of these, because a
 * plain name and plain data can cross to the thread that owns the writing connection (SQLite) and can be
 * run again after a serialization failure (PostgreSQL). Inside, only SQL is awaited.
 */
export type Write<I, O> = {
  readonly name: string;
  run(tx: WriteContext, input: I): Promise<O>;
  /**
   * What it is about, such as an agent, where it locks little else: what waits for the same shares a commit. It reads its
   * agent by `lockAgent`, which knows what the writes before it add at the end.
   */
  about?(input: I): string;
  /**
   * The names of all that it locks, in the order in which it does, where it changes no row but under them: then it
   * shares a commit also with what is about something else. Null: it does not. `ticket` is counted with it.
   */
  locks?(input: I, ticket: Ticket | undefined): readonly string[] | null;
  /**
   * Sends the queries whose answers it will need, while it waits for others that lock the same: `tx.batchCache` holds
   * them, until a write before it makes the answers wrong.
   */
  ahead?(tx: Pick<WriteContext, 'db' | 'batchCache'>, input: I): void;
  /**
   * Whether it changes rows of agents by {@link WriteContext.addPostCounts} alone. Then the next write of the batch need
   * not read such a row again, unless that was called with 'now'.
   */
  onlyAddsPostCounts?: boolean;
  /** Whether it deletes or takes back, so that it is accepted even where the disk is full. */
  deletes?(input: I): boolean;
};

/** Declares a write. Its module is listed in `services/writes.ts`. */
export function defineWrite<I, O>(
  name: string,
  run: (tx: WriteContext, input: I) => Promise<O>,
  options: Pick<Write<I, O>, 'about' | 'locks' | 'ahead' | 'onlyAddsPostCounts' | 'deletes'> = {},
): Write<I, O> {
  return { name, run, ...options };
}

/** The clock as a stored time: ISO 8601 UTC with milliseconds. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** The state of a limit after a call was counted against it. */
export type Rate = {
  /** Whether the call passes. */
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the oldest counted call leaves the window. */
  readonly reset: number;
};

/** A call to be counted once against an exact limit. `rate` is null until then. */
export type Ticket = {
  readonly policy: string;
  /** Agent id or client address. */
  readonly subject: string;
  /** Calls an hour. */
  readonly quota: number;
  rate: Rate | null;
};

/** A write failed that had changed something, and no savepoint was set before it: its batch must be run again. */
export class HalfDone extends Error {}

/** How a ticket is counted; given by the services, so that the engines need not know the tables. */
export type CountCall = (tx: WriteContext, ticket: Ticket) => Promise<Rate>;

/** A write to be run: what crosses to the thread that runs it. */
export type Request = {
  readonly name: string;
  readonly input: unknown;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly ticket: Ticket | undefined;
};

/** The result: exactly one of value and error, and what must follow the commit. */
export type Outcome = {
  readonly value?: unknown;
  readonly error?: PlainError;
  readonly rate: Rate | null;
  readonly changed: readonly string[];
  readonly mailQueued: boolean;
};

/** An error as plain data. `code` is set for an AppError. */
export type PlainError = {
  readonly code: ErrorCode | null;
  readonly message: Prose;
  readonly stack: string | undefined;
  readonly extra: ErrorExtra;
};

/** The part of a transaction that can be undone by itself. */
export type Savepoint = {
  begin(): Promise<void>;
  release(): Promise<void>;
  /** Throws where that is impossible, so that the whole transaction is run again. */
  undo(): Promise<void>;
  /** What a database failure means to the caller. Throws to end the whole transaction instead. */
  explain(error: unknown): unknown;
};

/** Tag for changes of every kind, used where a transaction makes more than `mostTags`. */
export const everything = 'everything';
const mostTags = 200;

/**
 * Runs one write inside an open transaction: counts the ticket, runs the body under a savepoint, records
 * the changes for other processes. A failed body is undone and reported; its counted call stays.
 */
export async function perform(
  write: Write<unknown, unknown>,
  request: Request,
  base: Omit<
    WriteContext,
    'now' | 'changed' | 'addToTotal' | 'addPostCounts' | 'agentBefore' | 'withPendingCounts' | 'mailQueued'
  > & {
    readonly last: LastChanges;
  },
  savepoint: Savepoint,
  countCall: CountCall,
): Promise<Outcome> {
  const changed = new Set<string>();
  const totals: Tables['counters'][] = [];
  const posts: (PostCounts & { isStored: boolean })[] = [];
  const agents: AgentRow[] = [];
  let mailQueued = false;
  const tx: WriteContext = {
    ...base,
    now: () => request.now,
    changed: (tag) => changed.add(tag),
    addToTotal: (total) => totals.push(total),
    addPostCounts: (added, when) => {
      if (when === 'now') base.last.storeNow(base.db, added);
      posts.push({ ...added, isStored: when === 'now' });
    },
    agentBefore: (agentId) => (write.onlyAddsPostCounts ? base.last.agent(agentId) : undefined),
    withPendingCounts: (agent) => {
      agents.push(agent);
      return base.last.withPendingCounts(agent);
    },
    mailQueued: () => {
      mailQueued = true;
    },
  };
  const { ticket } = request;
  const rate = ticket ? await countCall(tx, ticket) : null;
  if (ticket && rate && !rate.allowed)
    return { rate, changed: [], mailQueued: false, error: plainError(rateLimited(ticket, rate)) };
  await savepoint.begin();
  try {
    const value = await write.run(tx, request.input);
    await savepoint.release();
    const tags = changed.size > mostTags ? [everything] : changed;
    base.last.add({ totals, posts, tags, agents: write.onlyAddsPostCounts ? agents : null }, request.now);
    return { value, rate, changed: [...changed], mailQueued };
  } catch (error) {
    const explained = error instanceof AppError ? error : savepoint.explain(error);
    await savepoint.undo();
    return { error: plainError(explained), rate, changed: [], mailQueued: false };
  }
}

type WritesOptions = {
  readonly config: Config;
  readonly now: () => number;
  /** Why the database itself cannot take writes, or null. */
  readonly fault?: () => string | null;
  /** Runs a request; resolves when its outcome is durable. */
  readonly run: (write: Write<unknown, unknown>, request: Request) => Promise<Outcome>;
};

/** The part of an engine that does not depend on how a write is run. */
export function createWrites(
  options: WritesOptions,
): Pick<Engine, 'write' | 'readOnly' | 'onCommit' | 'onMailQueued'> {
  const { config, now, fault, run } = options;
  const onCommit: ((commit: Commit) => void)[] = [];
  const onMailQueued: (() => void)[] = [];
  const readOnly = () =>
    fault?.() ?? (config.readOnly ? 'The operator has made the service read-only.' : null);

  return {
    readOnly,
    onCommit: (listener) => onCommit.push(listener),
    onMailQueued: (listener) => onMailQueued.push(listener),
    async write<I, O>(write: Write<I, O>, input: I, ticket?: Ticket): Promise<O> {
      const reason = readOnly();
      if (reason !== null) throw refusedReadOnly(reason);
      const uncounted = ticket?.rate === null ? ticket : undefined;
      const request = { name: write.name, input, now: now(), ticket: uncounted };
      const began = performance.now();
      const outcome = await run(write, request).catch((error: unknown) => {
        writeResults[error instanceof AppError ? 'refused' : 'failed'].value++;
        throw error;
      });
      writeSeconds.observe((performance.now() - began) / 1000);
      countOutcome(outcome);
      if (uncounted && outcome.rate) uncounted.rate = outcome.rate;
      if (outcome.changed.length > 0) for (const listener of onCommit) listener(outcome);
      if (outcome.mailQueued) for (const listener of onMailQueued) listener();
      if (outcome.error) throw revive(outcome.error);
      return outcome.value as O;
    },
  };
}

/** The answer to a change where none is accepted, for this reason. */
export function refusedReadOnly(reason: string): AppError {
  return new AppError('read_only', `${reason} Reading still works.`, { retryAfter: 60 });
}

function countOutcome({ error }: Outcome): void {
  const isFailure = error?.code === null;
  writeResults[error === undefined ? 'stored' : isFailure ? 'failed' : 'refused'].value++;
  if (isFailure) databaseFailures.write.value++;
}

/** The answer to a call over its limit. */
export function rateLimited({ policy, quota }: Pick<Ticket, 'policy' | 'quota'>, { reset }: Rate): AppError {
  return new AppError(
    'rate_limited',
    `This call is over ${quota} '${policy}' calls an hour, failed ones included. Wait ${reset} seconds, then repeat it.`,
    {
      retryAfter: reset,
      budget: `limit_${policy}`,
      hint: prose`${call('limits')} shows every limit and what is left of it.`,
    },
  );
}

export function plainError(error: unknown): PlainError {
  const stack = error instanceof Error ? error.stack : undefined;
  return error instanceof AppError
    ? { code: error.code, message: error.detail, stack, extra: error.extra }
    : { code: null, message: errorMessage(error), stack, extra: {} };
}

/** The error again, on the side of the caller. */
export function revive(plain: PlainError): Error {
  const error =
    plain.code === null
      ? new Error(asHttp(plain.message))
      : new AppError(plain.code, plain.message, plain.extra);
  if (plain.stack !== undefined) error.stack = plain.stack;
  return error;
}
