import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import { Unconfirmed } from '../database.ts';
import { commits } from '../../platform/measured.ts';
import { createLastChanges } from '../last-changes.ts';
import {
  HalfDone,
  perform,
  type CountCall,
  type Outcome,
  type Request,
  type Savepoint,
  type Write,
} from '../write.ts';
import { postgresSearchIndex } from './postgres-full-text.ts';
import type { Joining, LockNames } from './postgres-lanes.ts';
import { sqlState, Unreachable } from './postgres.ts';
import type { Servers } from './postgres-servers.ts';
import type { Part, Session } from './postgres-session.ts';

/** Most writes in one commit, and the most time (ms) for which a batch accepts more. */
export const batchSize = 64;
const batchTime = 25;
/** Most that run at once: they have sent little until each is done, and then send its texts, which may be long. */
const mostAtOnce = 16;
/** How long a caller waits for its commit, ms. A lost synchronous standby holds commits up indefinitely. */
const commitPatience = 10_000;

/**
 * Frees the locks of a process that freezes in a transaction, and the connections of those that wait for them. For this
 * transaction only, since poolers share connections; it travels with what comes next.
 */
const settings = `select set_config('idle_in_transaction_session_timeout', '15s', true), set_config('lock_timeout', $1, true)`;
/** How long a write waits for a lock, and one on a connection for those that may share a transaction. */
const lockPatience = { alone: '15s', sharing: '1s' };
/** SQLSTATEs of a lock that did not come in time, and of a deadlock. */
const heldUpStates = new Set(['55P03', '40P01']);

/** A write that waits for its outcome. */
export type Unit = {
  readonly write: Write<unknown, unknown>;
  readonly request: Request;
  /** What it has in common with those that may share its transaction; null: it runs alone. */
  readonly about: string | null;
  /** All that it locks, where it may also share one with what is about something else; else null. */
  readonly locks: readonly string[] | null;
  /** A lock that too many others want, for which it waits; else null. */
  readonly waitsFor: string | null;
  readonly done: PromiseWithResolvers<Outcome>;
};

export type BatchOptions = {
  readonly servers: Servers;
  readonly config: Config;
  readonly secretKey: Buffer;
  readonly countCall: CountCall;
};

/** Too many other transactions of this process want a lock: the write waits for them without a connection. */
export class Crowded extends Error {
  readonly lock: string;
  constructor(lock: string) {
    super(`too many wait for the lock ${lock}`);
    this.lock = lock;
  }
}

/**
 * Runs writes in one transaction, with one commit for all (group commit), and settles each; others may join. Those about
 * different things are in the order in which every process takes their locks. They run without savepoints: when one fails
 * that has changed something, all are run again one by one, with a savepoint for each, so that only the failed one is
 * undone. Those that met another transaction are rejected with the database's error.
 */
export async function runBatch(
  options: BatchOptions,
  batch: Unit[],
  { another, committing }: Joining,
  names: LockNames,
): Promise<void> {
  const isSharing = batch.every(({ locks }) => locks !== null);
  const patience = isSharing ? lockPatience.sharing : lockPatience.alone;
  const wanted = new Set<string>();
  const enter = (name: string) => {
    wanted.add(name);
    names.enter(name);
  };
  const want = (name: string) => {
    if (wanted.has(name)) return;
    // Of those that share a transaction one would stop all; they are few, since one about the same runs at once.
    if (batch.length === 1 && names.isCrowded(name)) throw new Crowded(name);
    enter(name);
  };
  // Or those that begin later and come to the lock sooner would take the place that these have waited for.
  for (const name of new Set(batch.map(({ waitsFor }) => waitsFor))) if (name !== null) enter(name);
  const session = await take(options.servers).catch((error: unknown) => {
    // Those that wait behind it would each wait as long again, one after another.
    for (let other = another(); other; other = another()) batch.push(other);
    refuse(batch, error);
  });
  if (!session) return names.leave(wanted);
  let ended: Promise<unknown> = Promise.resolve();
  const attempt = async (guarded: boolean, joining: typeof another) => {
    const outcomes = await runAll(options, session, batch, {
      guarded,
      patience,
      another: joining,
      want,
    });
    // A connection that broke while idle is not to be met by the commit, of which nobody can tell whether it is done.
    if (!session.hasAnswered()) await session.run('select 1');
    const commit = session.commit();
    committing();
    ended = commit.catch(() => undefined);
    const isStored = await confirmed(commit, options.servers);
    if (isStored) commits.value++;
    for (const { request, done } of batch) {
      const outcome = outcomes.get(request);
      // It may be counted: counting it again would wait for the same commit.
      if (!isStored && request.ticket) request.ticket.rate = outcome?.rate ?? null;
      if (!isStored) done.reject(new Unconfirmed());
      else if (outcome) done.resolve(outcome);
    }
  };
  try {
    const since = performance.now();
    const isFull = () => batch.length >= batchSize || performance.now() - since >= batchTime;
    await attempt(false, () => (isFull() ? undefined : another())).catch(async (error: unknown) => {
      if (batch.some((unit) => isHeldUp(unit, error)) || !mayBeUndone(error, batch.length)) throw error;
      await session.rollback();
      await attempt(true, () => undefined);
    });
  } catch (error) {
    await session.rollback();
    refuse(batch, error);
  } finally {
    // A commit that nobody waits for any more keeps its connection, so that such commits cannot use up the server's.
    const end = () => {
      session.release();
      names.leave(wanted);
    };
    void ended.then(end);
  }
}

/** Throws {@link Unreachable}. */
async function take(servers: Servers): Promise<Session> {
  return servers.primary().pools().writing.take();
}

/** Whether a lock held up a write that may share a transaction: without the others, and beside them, it can wait. */
export function isHeldUp({ locks }: Pick<Unit, 'locks'>, error: unknown): boolean {
  return locks !== null && heldUpStates.has(sqlState(error) ?? '');
}

/** Whether running the writes again, each with a savepoint, can undo the failed one alone. */
function mayBeUndone(error: unknown, writes: number): boolean {
  if (error instanceof HalfDone) return true;
  if (error instanceof Unreachable) return false;
  return error instanceof AppError || (writes > 1 && sqlState(error) !== null);
}

function refuse(batch: readonly Unit[], error: unknown): void {
  for (const { done } of batch) done.reject(error);
}

type RunOptions = {
  /** Whether each gets a savepoint. */
  readonly guarded: boolean;
  /** How long each lock is waited for, as PostgreSQL spells it. */
  readonly patience: string;
  readonly another: () => Unit | undefined;
  /** Called before each lock. Throws {@link Crowded}. */
  readonly want: (name: string) => void;
};

async function runAll(
  { config, secretKey, countCall }: BatchOptions,
  session: Session,
  batch: Unit[],
  { guarded, patience, another, want }: RunOptions,
): Promise<ReadonlyMap<Request, Outcome>> {
  const outcomes = new Map<Request, Outcome>();
  const last = createLastChanges();
  const locks = createLocks(session, want, last.forgetAgents);
  const context = {
    config,
    secretKey,
    searchIndex: postgresSearchIndex,
    batchCache: locks.batchCache,
    lock: locks.lock,
    last,
    /** A commit waits for the standby only if it has something to send, such as an empty message. */
    confirmDurable: async () => session.send(`select pg_logical_emit_message(true, 'masthead', '')`),
  };
  const run = ({ write, request }: Unit, db: Session['db'], savepoint: Savepoint) =>
    perform(write, request, { ...context, db }, savepoint, countCall).then((outcome) =>
      outcomes.set(request, outcome),
    );
  session.begin();
  session.send(settings, [patience], { changes: false });
  locks.lockAll(batch.flatMap(({ locks: names }) => names ?? []));
  if (guarded) {
    const savepoint = createGuard(session, locks.forget);
    for (const unit of batch) {
      session.send('savepoint unit');
      const mark = session.mark();
      try {
        await run(unit, session.db, savepoint);
      } catch (error) {
        if (sqlState(error) === null) throw error;
        await session.undoTo('unit', mark);
        locks.forget();
        unit.done.reject(error);
      }
    }
  } else {
    const runInPart = (unit: Unit) =>
      session.inPart((part) => run(unit, part.db, createUndo(session, part, locks.forget)));
    const ahead = ({ write, request: { input }, locks: names }: Unit) => {
      if (names !== null) write.ahead?.({ db: session.db, batchCache: locks.batchCache }, input);
    };
    await runTogether(batch, { ahead, run: runInPart, another });
  }
  last.store(session.db);
  return outcomes;
}

type Together = {
  /** Called for each as soon as it is of the batch, when its locks are asked for. */
  readonly ahead: (unit: Unit) => void;
  readonly run: (unit: Unit) => Promise<unknown>;
  readonly another: () => Unit | undefined;
};

/**
 * Runs writes that lock different things at once, so that what they ask the database travels together, and the others in
 * their order. Rejects with the first failure, when nothing runs any more.
 */
async function runTogether(batch: Unit[], { ahead, run, another }: Together): Promise<void> {
  /** The last of those that lock something, by its name. */
  const last = new Map<string, Promise<void>>();
  const running: Promise<void>[] = [];
  const failures: unknown[] = [];
  const join = (unit: Unit) => {
    ahead(unit);
    const names = unit.locks ?? [unit.about ?? ''];
    const before = names.flatMap((name) => last.get(name) ?? []);
    const room = running.at(-mostAtOnce);
    if (room) before.push(room);
    const done = runAfter(before, unit);
    running.push(done);
    for (const name of names) last.set(name, done);
  };
  const runAfter = async (before: readonly Promise<void>[], unit: Unit) => {
    await Promise.all(before);
    if (failures.length > 0) return;
    await run(unit).catch((error: unknown) => failures.push(error));
    const joining = failures.length > 0 ? undefined : another();
    if (!joining) return;
    batch.push(joining);
    join(joining);
  };
  for (const unit of batch.slice()) join(unit);
  for (const done of running) await done;
  if (failures.length > 0) throw failures[0];
}

const lockInOrder =
  'select pg_advisory_xact_lock(hashtextextended(name, 0)) from json_array_elements_text($1) as name';

/** Named locks of the transaction, each taken once, and what was read under them. */
function createLocks(session: Session, want: (name: string) => void, forgetAgents: () => void) {
  const held = new Set<string>();
  const batchCache = new Map<string, unknown>();
  return {
    batchCache,
    lock: async (name: string) => {
      if (held.has(name)) return;
      want(name);
      held.add(name);
      session.send('select pg_advisory_xact_lock(hashtextextended($1, 0))', [name], { changes: false });
    },
    /** Takes locks in their order, by one statement. */
    lockAll: (names: readonly string[]) => {
      const all = [...new Set(names)];
      for (const name of all) {
        want(name);
        held.add(name);
      }
      if (all.length > 0) session.send(lockInOrder, [JSON.stringify(all)], { changes: false });
    },
    /** Undoing a part of the transaction also frees the locks that were taken in it. */
    forget: () => {
      held.clear();
      batchCache.clear();
      forgetAgents();
    },
  };
}

/** No savepoint: a write that fails before any of its changes was sent leaves nothing to undo. */
function createUndo(session: Session, part: Part, forget: () => void): Savepoint {
  let mark = 0;
  return {
    async begin() {
      mark = session.mark();
    },
    release: async () => undefined,
    async undo() {
      if (!session.takeBack(part, mark)) throw new HalfDone();
      forget();
    },
    explain: rethrow,
  };
}

function createGuard(session: Session, forget: () => void): Savepoint {
  let mark = 0;
  return {
    async begin() {
      session.send('savepoint write');
      mark = session.mark();
    },
    release: () => session.run('release savepoint write'),
    async undo() {
      await session.undoTo('write', mark);
      forget();
    },
    explain: rethrow,
  };
}

/** What the database refuses ends the write's part of the transaction; its caller decides whether to run it again. */
function rethrow(error: unknown): unknown {
  if (sqlState(error) !== null || error instanceof Crowded) throw error;
  return error;
}

/** Whether the commit succeeds in time. */
async function confirmed(commit: Promise<boolean>, servers: Servers): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, commitPatience, false);
  try {
    return await Promise.race([commit, late.promise]);
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    servers.suspect();
    return false;
  } finally {
    clearTimeout(timer);
  }
}
