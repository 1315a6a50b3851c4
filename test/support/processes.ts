import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type Server, createServer } from 'node:net';
import path from 'node:path';
import { after } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from './http.ts';

/** What a server process is started with. */
export type ServerOptions = {
  /** The whole environment but for `PATH` and `HOME`. A `PORT` in it is kept, else a free one is chosen. */
  readonly env?: Readonly<Record<string, string>>;
  /** What stands after the script: `['serve']` unless told. */
  readonly args?: readonly string[];
  /** Path of the script: `bin/masthead.mjs` unless told. */
  readonly script?: string;
  /** Longest wait for `/readyz`, in milliseconds: 60,000 by default, since a busy machine may take long. */
  readonly readyWithin?: number;
};

/** A server in a process of its own. It dies with the process that started it, whatever ends that one. */
export type ServerProcess = {
  readonly port: number;
  /** `http://127.0.0.1:{port}`. */
  readonly baseUrl: string;
  readonly pid: number;
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  /** Sends a signal to the process; SIGKILL goes to all that it has started too. */
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL when that has not ended it after 60 s. */
  stop(): Promise<number | NodeJS.Signals | null>;
  /** All of standard output and standard error so far. */
  output(): string;
};

/**
 * Environment in which a program that a test starts loads as quickly as a test of `npm test`: with its compiled
 * code and its bundled libraries. Empty for a file run by hand.
 */
export function quickLoad(): Readonly<Record<string, string>> {
  const cache = process.env['NODE_COMPILE_CACHE'];
  const libraries = new URL('bundled-libraries.ts', import.meta.url).href;
  const isQuick = process.execArgv.some((argument) => argument.includes('bundled-libraries.ts'));
  return cache !== undefined && isQuick
    ? { NODE_COMPILE_CACHE: path.resolve(cache), NODE_OPTIONS: `--import=${libraries}` }
    : {};
}

/** The whole environment of a server at a port, made of the settings that a test names. */
export function serverEnvironment(
  port: number,
  env: Readonly<Record<string, string>> = {},
): Record<string, string | undefined> {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    ...quickLoad(),
    // Where it is not the default, it must be named.
    MEDIA_DIR: path.join(env['DATA_DIR'] ?? 'data', 'media'),
    ...env,
    PORT: String(port),
  };
}

/** Whether this process runs test files, and not what one of them or a bench has started. */
export const isTestProcess = /\.test\.(?:ts|mjs)$/.test(process.argv[1] ?? '');

/** Kills those that still run. A failed test may leave one, and the process of its file would never end. */
const running = new Set<() => void>();
if (isTestProcess)
  after(() => {
    for (const kill of running) kill();
  });

/** Starts a server and waits until `/readyz` answers 200; when it does not, rejects with its output. */
export async function spawnServer(options: ServerOptions = {}): Promise<ServerProcess> {
  const port = Number(options.env?.['PORT'] ?? (await freePort()));
  const script = options.script ?? fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, ...(options.args ?? ['serve'])], {
    env: serverEnvironment(port, options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  await once(child, 'spawn');
  const pid = pidOf(child);
  const group = -pid;
  const guard = spawnGuard('kill -s KILL -- "$1"', [String(group)]);

  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.on('close', (code, signal) => {
      guard.kill('SIGKILL');
      resolve(code ?? signal);
    });
  });
  const kill = (signal: NodeJS.Signals): void => {
    if (isRunning(child)) {
      process.kill(signal === 'SIGKILL' ? group : pid, signal);
    }
  };
  const killAll = (): void => kill('SIGKILL');
  running.add(killAll);
  void exited.then(() => running.delete(killAll));
  const stop = async (): Promise<number | NodeJS.Signals | null> => {
    const patience = setTimeout(kill, 60_000, 'SIGKILL');
    kill('SIGTERM');
    const code = await exited;
    clearTimeout(patience);
    return code;
  };

  const server = { port, baseUrl: `http://127.0.0.1:${port}`, pid, exited, kill, stop, output: () => output };
  const deadline = Date.now() + (options.readyWithin ?? 60_000);
  while (!(await isReady(server.baseUrl))) {
    if (!isRunning(child) || Date.now() > deadline) {
      kill('SIGKILL');
      const code = await exited;
      throw new Error(`the server did not start (exit code ${code}); its output:\n${output}`);
    }
    await delay(20);
  }
  return server;
}

async function isReady(baseUrl: string): Promise<boolean> {
  try {
    return (await request(baseUrl, { path: '/readyz', timeout: 10_000 })).status === 200;
  } catch {
    return false;
  }
}

/**
 * A free port of 127.0.0.1, below the range that Linux takes the ports of outgoing connections from: there, a
 * client that retries a dead server may be given that very port, and would then be connected to itself. No other
 * process is given it while this one lives, so it can be listened on later, and again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    // A name after a NUL is no file: the system forgets it with this process.
    const claim = createServer().unref();
    const probe = createServer();
    try {
      await once(claim.listen(`\0masthead-port-${port}`), 'listening');
      await once(probe.listen(port, '127.0.0.1'), 'listening');
      return port;
    } catch {
      // Taken: try another.
      claim.close();
    } finally {
      probe.close();
    }
  }
}

/**
 * Runs a shell script when this process ends, whatever ends it (SIGKILL included), or when the guard's
 * standard input is ended. Killing the guard dismisses it.
 */
export function spawnGuard(
  script: string,
  args: readonly string[],
  options: { readonly uid?: number; readonly gid?: number } = {},
): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', `while read -r line; do :; done; ${script}`, 'guard', ...args], {
    ...options,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  unref(guard);
  return guard;
}

/** Lets this process end although the child still runs. */
export function unref(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) {
    // A pipe is a socket, which the types of a child process do not say.
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
}

/** Whether a child that was started has not ended yet. */
export function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** The process id of a child that has started. */
export function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error(`${child.spawnfile} did not start`);
  return child.pid;
}

/** Whether a process runs. One that has ended, and that nobody has collected yet, has no command line. */
export function isAlive(pid: number): boolean {
  const commandLine = `/proc/${pid}/cmdline`;
  return existsSync(commandLine) && readFileSync(commandLine).length > 0;
}

/** The port that a TCP server listens on. */
export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
