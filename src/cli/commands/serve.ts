import type { Call, Command } from '../../../client/src/terminal/command.ts';
import type { Config } from '../../config/config.ts';
import { giveMemoryBackAtRest } from '../../platform/memory.ts';
import { createLog, type Log, type LogFields } from '../../platform/log.ts';
import { nodePackage, programVersion } from '../../platform/version.ts';
import type { Supervisor } from '../../process/cluster.ts';
import type { RunningServer } from '../../server.ts';
import { expected } from '../operator.ts';

/** Milliseconds that stopping may take. */
const stopTimeout = 10_000;

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service.',
  details: [
    'SIGTERM or SIGINT stops it once every request under way is answered; a second one stops it at once.',
    'With WORKERS=2 or more, SIGHUP replaces all processes, one after the other, and drops no request.',
  ],
  operands: [],
  options: {
    existing: {
      meaning: 'Refuse to create a database, so that a missing one is noticed. Use it in every deployment.',
    },
  },
  hasResult: false,
  async run(call) {
    const { loadConfig, misspeltSettings, passedSocket } = await import('../../config/config.ts');
    const { findSupervisor } = await import('../../process/cluster.ts');
    const config = loadConfig(call.env);
    const supervisor = findSupervisor();
    const output = createHeldOutput();
    const fields = supervisor === null ? {} : { worker: supervisor.worker };
    const log = createLog(config.logLevel, (line) => output.write(line), fields);
    endOnUnexpected(log, output);
    // A line that a full disk does not take is lost, and the service goes on.
    process.stdout.removeAllListeners('error').on('error', () => undefined);
    giveMemoryBackAtRest();
    const socket = passedSocket({ isWorker: supervisor !== null });
    const run: Run = { config, call, log, output, socket };
    try {
      if (supervisor !== null) return await serveAsWorker(run, supervisor);
      for (const warning of misspeltSettings(call.env)) log.warn({}, warning);
      await (config.workers > 1 ? superviseAll(run) : serveAlone(run));
    } finally {
      output.release();
    }
  },
};

type Run = {
  readonly config: Config;
  readonly call: Call;
  readonly log: Log;
  readonly output: ReturnType<typeof createHeldOutput>;
  /** Descriptor of a socket that was passed. */
  readonly socket: number | null;
};

async function serveAlone({ config, call, log, output, socket }: Run): Promise<void> {
  const { startServer } = await import('../../server.ts');
  const server = await startServer(config, { existing: call.has('existing'), log, socket });
  // Before anything else is awaited, since it may be stopped as soon as it is ready. Never removed, since a signal
  // without a listener ends the process.
  const stopped = Promise.withResolvers<string>();
  let isStopping = false;
  const startStopping = (signal: string) => {
    isStopping = true;
    stopped.resolve(signal);
  };
  for (const name of ['SIGTERM', 'SIGINT'] as const)
    process.on(name, () => (isStopping ? process.exit(1) : startStopping(name)));
  // A closed terminal sends it to end the service; otherwise it asks for new workers, and must not end it.
  process.on('SIGHUP', () => {
    if (process.stdin.isTTY) startStopping('SIGHUP');
    else log.warn({}, 'SIGHUP replaces workers, and WORKERS is 1: restart the service instead');
  });
  await printBlock(call, server.config, await contents(server));
  output.release();
  const signal = await stopped.promise;
  await stop(server, log, { signal });
}

async function superviseAll({ config, call, log, output, socket }: Run): Promise<void> {
  const { superviseWorkers } = await import('../../process/cluster.ts');
  const { settlePort } = await import('../../process/port.ts');
  const settled = await settlePort(config);
  await superviseWorkers({
    workers: config.workers,
    env: { ...call.env, PORT: String(settled.port) },
    log,
    stopWithin: stopTimeout,
    socket,
    internal: settled.internal,
    async onReady(database) {
      await printBlock(call, settled, database);
      output.release();
    },
  });
}

/** One of several: its supervisor prints the block, and asks it to stop. */
async function serveAsWorker(
  { config, call, log, output, socket }: Run,
  supervisor: Supervisor,
): Promise<void> {
  const { startServer } = await import('../../server.ts');
  const { failureText } = await import('../../../client/src/terminal/program.ts');
  // The private listener is the supervisor's.
  const options = { existing: call.has('existing'), log, socket, listensPrivately: false };
  const server = await startServer(config, options).catch(async (error: unknown) => {
    await supervisor.report({ fault: failureText(expected(error)) });
    return process.exit(1);
  });
  // A terminal, or whatever stops a whole control group, signals the workers as well as the supervisor.
  const signalled = new Promise<unknown>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, resolve);
  });
  process.on('SIGHUP', () => undefined);
  supervisor.answerBy(server.inside);
  await supervisor.report({ ready: await contents(server) });
  void supervisor.mayLog.then(() => output.release());
  await Promise.race([signalled, supervisor.mustStop]);
  await stop(server, log);
  await supervisor.leave();
}

async function printBlock({ out }: Call, config: Config, database: string): Promise<void> {
  const { startupBlock } = await import('../../config/startup.ts');
  out(startupBlock(config, { version: programVersion(), database, nodePackage: nodePackage() }));
}

/** Holds log lines back until the start-up block is printed above them. */
function createHeldOutput() {
  let held: string[] | null = [];
  return {
    write(line: string): void {
      if (held === null) process.stdout.write(line);
      else held.push(line);
    },
    release(): void {
      for (const line of held ?? []) process.stdout.write(line);
      held = null;
    },
  };
}

/** After an unexpected error no state can be trusted; what was acknowledged is on disk. */
function endOnUnexpected(log: Log, output: ReturnType<typeof createHeldOutput>): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, 'the process ends for a reason that was not foreseen');
      output.release();
      process.exit(1);
    });
  }
}

async function contents({ ctx }: RunningServer): Promise<string> {
  const { readTotal } = await import('../../services/lists/discovery.ts');
  const { publicly } = await import('../../context.ts');
  return `${await readTotal(publicly(ctx), 'posts')} public posts`;
}

async function stop(server: RunningServer, log: Log, fields: LogFields = {}): Promise<void> {
  log.info(fields, 'stopping');
  const limit = setTimeout(() => {
    log.error({}, 'stopping took longer than 10 s: what is left is cut off');
    process.exit(1);
  }, stopTimeout);
  await server.close();
  clearTimeout(limit);
  log.info({}, 'stopped');
}
