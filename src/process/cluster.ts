import cluster, { type Worker } from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import type { ListenAddress } from '../config/config.ts';
import { StartError, errorMessage } from '../rules/failure.ts';
import type { Log } from '../platform/log.ts';
import { createWorkerMetrics, type WorkerMetrics } from './worker-metrics.ts';
import { listenPrivately, type PrivateAnswer, type PrivateCall } from './private-listener.ts';
import { workerDeaths } from '../platform/measured.ts';
import { answerQuestions, createAsk, type Ask } from './questions.ts';

/** Milliseconds until a worker that died is replaced, doubled for each in a row that did not last. */
const firstPause = 100;
const longestPause = 10_000;
/** Milliseconds after which a worker counts as stable. */
const lastedAfter = 60_000;

/** From a worker: the result of its start. */
type Report = { readonly ready: string } | { readonly fault: string };
/** From a worker: it no longer listens, or it ends. */
type Leave = 'leaving' | 'left';
/** To a worker: it may write its log, it must stop, or no further connection will come. */
type Order = 'log' | 'stop' | 'gone';

export type SupervisorOptions = {
  readonly workers: number;
  /** For the workers, beside the variables of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
  /** Milliseconds that a stop may take; workers that take longer are killed. */
  readonly stopWithin: number;
  /** Descriptor of a socket that all workers listen on instead of HOST and PORT. */
  readonly socket: number | null;
  /** Where the private listener of all workers is, if anywhere. */
  readonly internal: ListenAddress | null;
  /** Called once, when all workers serve, with what the first of them says of its database. */
  readonly onReady: (database: string) => Promise<void>;
};

type Member = {
  readonly worker: Worker;
  readonly since: number;
  readonly ended: Promise<null>;
  readonly ask: Ask;
  state: 'starting' | 'ready' | 'leaving';
};

/**
 * Runs this same command in several processes that share one port, and serves nothing itself: replaces the ones
 * that die, and on SIGHUP all, one after the other, each when its successor serves. Returns when a signal has
 * stopped it and all have ended. Throws StartError with the fault of the first worker that cannot start.
 */
export async function superviseWorkers(options: SupervisorOptions): Promise<void> {
  const { workers, log, socket, internal, onReady } = options;
  // This process never opens it, and so never closes it: the last worker may end.
  if (socket !== null) cluster.setupPrimary({ stdio: ['inherit', 'inherit', 'inherit', 'ipc', socket] });
  const crew = createCrew(options);
  await using opened = new AsyncDisposableStack();
  if (internal !== null) opened.use(await listenPrivately(internal, crew.answer));
  const signalled = Promise.withResolvers<string>();
  const allServe = Promise.withResolvers<void>();
  let renewing = allServe.promise;

  function stop(signal: string): void {
    if (crew.stopping) {
      for (const { worker } of crew.members) worker.process.kill('SIGKILL');
      process.exit(1);
    }
    crew.stopping = true;
    signalled.resolve(signal);
  }

  async function startAll(): Promise<void> {
    // The first creates or migrates the database; what keeps it from starting is reported once.
    const database = await crew.start();
    await Promise.all(Array.from({ length: workers - 1 }, crew.start));
    await onReady(database);
    crew.releaseLogs();
    allServe.resolve();
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  // A closed terminal sends it too, which ends this process with its workers.
  if (!process.stdin.isTTY && !process.stdout.isTTY)
    process.on('SIGHUP', () => void (renewing = renewing.then(crew.renewAll)));
  try {
    await Promise.race([signalled.promise, startAll()]);
    log.info({ signal: await signalled.promise }, 'stopping');
  } finally {
    crew.stopping = true;
    await Promise.all([...crew.members].map(crew.retire));
  }
  log.info({}, 'stopped');
}

/** The workers, each replaced when it ends by itself, until `stopping` is set. */
function createCrew({ env, log, stopWithin }: SupervisorOptions) {
  const members = new Set<Member>();
  const metrics = createWorkerMetrics();
  let mayLog = false;
  let deathsInARow = 0;

  /** Resolves when the worker serves, with what it says of its database. */
  async function start(): Promise<string> {
    const worker = cluster.fork(env);
    const ended = new Promise<null>((resolve) => worker.once('exit', () => resolve(null)));
    const ask = createAsk(worker);
    const member: Member = { worker, since: performance.now(), ended, ask, state: 'starting' };
    members.add(member);
    worker.on('error', (error) => log.warn({ err: error }, 'a worker could not be sent an order'));
    worker.on('message', (message: unknown) => {
      if (message === 'leaving') order(member, 'gone');
    });
    worker.once('exit', (code, signal) => {
      members.delete(member);
      metrics.gone(ask);
      if (member.state === 'ready' && !crew.stopping) void replace(member, { code, signal });
    });
    const report = await Promise.race([
      new Promise<Report>((resolve) => worker.once('message', resolve)),
      ended,
    ]);
    if (report === null || 'fault' in report) {
      await ended;
      throw new StartError(report?.fault ?? 'A worker ended before it served.');
    }
    member.state = 'ready';
    if (mayLog) order(member, 'log');
    return report.ready;
  }

  async function replace({ worker, since }: Member, end: object): Promise<void> {
    deathsInARow = performance.now() - since > lastedAfter ? 0 : deathsInARow + 1;
    workerDeaths.value++;
    log.error({ workerPid: worker.process.pid, ...end }, 'a worker ended by itself and is replaced');
    for (;;) {
      await delay(Math.min(longestPause, firstPause * 2 ** deathsInARow), null, { ref: false });
      if (crew.stopping) return;
      try {
        await start();
        return;
      } catch (error) {
        if (crew.stopping) return;
        deathsInARow += 1;
        log.error({ reason: errorMessage(error) }, 'a worker could not be replaced yet');
      }
    }
  }

  async function renewAll(): Promise<void> {
    log.info({}, 'replacing all workers, one after the other');
    for (const old of [...members].filter(({ state }) => state === 'ready')) {
      if (crew.stopping) return;
      try {
        await start();
      } catch (error) {
        if (!crew.stopping)
          log.error({ reason: errorMessage(error) }, 'a new worker cannot start: the old ones go on serving');
        return;
      }
      // It may have died meanwhile, and then has a successor of its own.
      if (members.has(old)) await retire(old);
    }
    log.info({}, 'all workers are replaced');
  }

  async function retire(member: Member): Promise<void> {
    // A starting worker does not listen for orders yet.
    if (member.state === 'starting') member.worker.process.kill('SIGTERM');
    else {
      void metrics.note(member.ask);
      order(member, 'stop');
    }
    member.state = 'leaving';
    const limit = setTimeout(() => {
      log.error({ workerPid: member.worker.process.pid }, 'a worker did not stop in time and is killed');
      member.worker.process.kill('SIGKILL');
    }, stopWithin);
    await member.ended;
    clearTimeout(limit);
  }

  function releaseLogs(): void {
    mayLog = true;
    for (const member of members) order(member, 'log');
  }

  const answer = createAnswer(members, metrics);
  const crew = { members, stopping: false, start, renewAll, retire, releaseLogs, answer };
  return crew;
}

/** Returns what answers the calls of the private listener: all workers together, or any of them. */
function createAnswer(members: ReadonlySet<Member>, metrics: WorkerMetrics) {
  return async (call: PrivateCall): Promise<PrivateAnswer> => {
    if (call.path === '/healthz') return { status: 200, text: 'ok\n' };
    const asks = [...members].flatMap(({ ask, state }) => (state === 'starting' ? [] : ask));
    if (call.path === '/metrics') return { status: 200, text: await metrics.text(asks) };
    for (const ask of asks) {
      const given = await ask(call);
      if (given !== null) return given;
    }
    return { status: 503, text: 'No worker answers at present.\n' };
  };
}

function order({ worker }: Member, what: Order): void {
  if (worker.isConnected()) worker.send(what);
}

/** The other side: the supervisor of this process, if it is a worker of one. */
export type Supervisor = NonNullable<ReturnType<typeof findSupervisor>>;

/** The supervisor that started this process, or null. */
export function findSupervisor() {
  const { worker } = cluster;
  if (worker === undefined) return null;
  const ordered = {
    log: Promise.withResolvers<void>(),
    stop: Promise.withResolvers<void>(),
    gone: Promise.withResolvers<void>(),
  };
  worker.on('message', (what: unknown) => {
    if (what === 'log' || what === 'stop' || what === 'gone') ordered[what].resolve();
  });
  const send = (message: Report | Leave) =>
    new Promise<void>((resolve, reject) => {
      worker.send(message, (error: Error | null) => (error ? reject(error) : resolve()));
    });
  return {
    /** The number of this worker among all that were started. */
    worker: worker.id,
    /** Answers calls of the private listener, which is the supervisor's. */
    answerBy: (answer: (call: PrivateCall) => Promise<PrivateAnswer>) => answerQuestions(worker, answer),
    /** Resolves when the message is sent. */
    report: (message: Report) => send(message),
    /**
     * To be called when this process no longer listens and before it ends. Connections that are still on their way
     * here are given back as they come; resolves when the last one was.
     */
    async leave(): Promise<void> {
      // Messages stay in order: 'gone' comes after the last connection, and 'left' after that was given back.
      await send('leaving');
      await ordered.gone.promise;
      await send('left');
    },
    /** Resolves when the log may be written. */
    mayLog: ordered.log.promise,
    /** Resolves when this process must stop. */
    mustStop: ordered.stop.promise,
  };
}
