import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { memoryOf } from '../test/support/memory.ts';

/** Linux counts processor time in hundredths of a second, whatever the kernel's own tick (proc(5)). */
const ticksPerSecond = 100;

/** The core of whatever is measured, and that of whatever measures; null where there is only one. */
export const cores =
  availableParallelism() > 1 && hasProgram('taskset')
    ? ({ server: 0, load: 1 } as const)
    : ({ server: null, load: null } as const);

/** In words, for the head of the results: the same on machines of the same shape. */
export function describeMachine(): string[] {
  const sqlite = process.versions['sqlite'] ?? 'none';
  return [
    `${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}`,
    `Node ${process.versions.node}, SQLite ${sqlite}`,
    cores.server === null
      ? 'server and load share all cores'
      : 'server on one core, load on another, 64 connections',
  ];
}

/** When, of which revision and where figures were measured: the line that every table of results has. */
export function describeRun(): string {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  return [
    `${new Date().toISOString().slice(0, 10)}, commit ${commit}`,
    ...describeMachine().slice(0, 2),
  ].join('; ');
}

export function hasProgram(name: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0;
}

/** A command line that runs on one core; the given one where there is nothing to choose. */
export function pinned(core: number | null, command: readonly string[]): string[] {
  return core === null ? [...command] : ['taskset', '-c', String(core), ...command];
}

/** A process that is measured. */
export type Measured = {
  readonly pid: number;
  /** Seconds of processor time of all of its threads so far. */
  cpu(): number;
  /** Memory of it and of all that it has started, MiB, now: shared memory once (PSS). See {@link ownNode}. */
  memory(): number;
  /** Open file descriptors, now. */
  descriptors(): number;
  /** Ends it, and waits until it has. */
  stop(): Promise<void>;
};

const alive = new Set<ChildProcess>();
const folders: string[] = [];
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Starts a process that lives no longer than this one. `env` is all of its environment but `PATH`. */
export async function start(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { core = cores.server }: { core?: number | null } = {},
): Promise<Measured> {
  const [program = '', ...args] = pinned(core, command);
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2_000)));
  alive.add(child);
  const exited = once(child, 'exit').then(() => alive.delete(child));
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} has no process id`);
  const readProc = (file: string): string => {
    if (!existsSync(`/proc/${pid}/${file}`)) throw new Error(`${command.join(' ')} has ended: ${errors}`);
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  };
  return {
    pid,
    cpu: () => cpuIn(readProc('stat')),
    memory() {
      readProc('status');
      return memoryOf(pid);
    },
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 12_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/**
 * A `PATH` whose Node is a copy in this folder. Pages of the one that measures would be shared with what is measured,
 * which then had but a part of them.
 */
export function ownNode(folder: string): string {
  const bin = join(folder, 'node');
  if (!existsSync(bin)) {
    mkdirSync(bin, { recursive: true });
    copyFileSync(process.execPath, join(bin, 'node'));
  }
  return `${bin}:${process.env['PATH']}`;
}

/** Seconds of processor time of the processes that a process has started, such as workers. */
export function cpuOfChildren(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
  return children.reduce((sum, child) => sum + cpuIn(readFileSync(`/proc/${child}/stat`, 'utf8')), 0);
}

/** Seconds of processor time that a `/proc/PID/stat` tells. */
function cpuIn(stat: string): number {
  // The name, in parentheses, may hold spaces; user and system time are fields 14 and 15.
  const fields = stat.split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** A new folder that is removed when this process ends, also by SIGINT or SIGTERM. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `masthead-${name}-`));
  if (folders.push(folder) === 1)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  return folder;
}

/** A port of the loopback interface that was free a moment ago. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** A server that is compared with ours. */
export type Rival = Measured & { readonly origin: string };

/** Starts a script of `rivals/` on a free port, and waits until it answers with this status. */
export async function startRival(
  script: string,
  env: Readonly<Record<string, string>>,
  status = 200,
): Promise<Rival> {
  const port = await freePort();
  const file = fileURLToPath(new URL(`./rivals/${script}`, import.meta.url));
  const rival = await start([process.execPath, file], { PORT: String(port), ...env });
  const origin = `http://127.0.0.1:${port}`;
  await waitFor(origin, status);
  return { ...rival, origin };
}

/** Asks until there is an answer of this status, and returns how long that took, ms. Throws after 30 s. */
export async function waitFor(url: string, status = 200): Promise<number> {
  const begun = performance.now();
  while (performance.now() - begun < 30_000) {
    const answer = await fetch(url).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.status === status) return performance.now() - begun;
    await delay(2);
  }
  throw new Error(`${url} did not answer`);
}
