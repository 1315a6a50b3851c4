import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cores, hasProgram, pinned, type Measured } from './machine.ts';

const run = promisify(execFile);
/** By default. */
const usualConnections = 64;

/** Requests of one kind, as many as the server answers. */
export type Shots = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Posts this file as JSON, with `@@` in it replaced by something that is never the same. */
  readonly bodyFile?: string;
  /** API keys, one a line, that are sent in turn, or by so many `threads` one each; with wrk only. */
  readonly keysFile?: string;
  readonly threads?: number;
  readonly connections?: number;
};

/** What a load came to. */
export type Load = {
  readonly perSecond: number;
  /** Microseconds of the server's processor time a request. */
  readonly cpu: number;
};

/** With how many requests that were. */
export type CountedLoad = Load & { readonly requests: number };

const hasWrk = hasProgram('wrk');
export const loader = hasWrk ? 'wrk' : 'autocannon';

let runs = 0;

/** Loads a server for some seconds. Throws if a request failed: what is fast and wrong is not compared. */
export async function load(
  server: Pick<Measured, 'cpu'>,
  shots: Shots,
  seconds: number,
): Promise<CountedLoad> {
  runs++;
  const before = server.cpu();
  const { requests, perSecond, failed } = await (hasWrk ? wrk : autocannon)(shots, seconds);
  const cpu = ((server.cpu() - before) * 1e6) / requests;
  if (failed > 0) throw new Error(`${failed} of ${requests} requests to ${shots.url} failed`);
  return { requests, perSecond, cpu };
}

type Count = { readonly requests: number; readonly perSecond: number; readonly failed: number };

async function wrk(shots: Shots, seconds: number): Promise<Count> {
  const { url, headers = {}, bodyFile, keysFile, threads, connections = usualConnections } = shots;
  const script = fileURLToPath(new URL('./publish.lua', import.meta.url));
  const command = [
    'wrk',
    `-t${threads ?? 1}`,
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout=10s',
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...(bodyFile === undefined ? [url] : ['-s', script, url, '--', bodyFile, `${process.pid}-${runs}`]),
    ...(keysFile === undefined ? [] : [keysFile]),
    ...(threads === undefined ? [] : ['own']),
  ];
  const [program = '', ...args] = pinned(cores.load, command);
  const { stdout } = await run(program, args);
  const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? 0);
  const [, connect, read, write, timeout] =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout) ?? [];
  return {
    requests: number(/(\d+) requests in/),
    perSecond: number(/Requests\/sec:\s+([\d.]+)/),
    failed:
      number(/Non-2xx or 3xx responses: (\d+)/) +
      [connect, read, write, timeout].reduce((sum, count) => sum + Number(count ?? 0), 0),
  };
}

async function autocannon(shots: Shots, seconds: number): Promise<Count> {
  const { url, headers = {}, bodyFile, connections = usualConnections } = shots;
  const script = fileURLToPath(new URL('../node_modules/autocannon/autocannon.js', import.meta.url));
  const command = [
    process.execPath,
    script,
    '--json',
    `--connections=${connections}`,
    `--duration=${seconds}`,
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`]),
    ...(bodyFile === undefined ? [] : ['-m', 'POST', '-H', 'content-type=application/json', '-i', bodyFile]),
    // Replaces [<id>], which the body file holds beside @@.
    ...(bodyFile === undefined ? [] : ['-I']),
    url,
  ];
  const [program = '', ...args] = pinned(cores.load, command);
  const { stdout } = await run(program, args, { maxBuffer: 1e7 });
  const result = JSON.parse(stdout) as Record<string, unknown> & { requests: { total: number } };
  const count = (name: string) => Number(result[name] ?? 0);
  const { total } = result.requests;
  return {
    requests: total,
    perSecond: total / seconds,
    failed: count('errors') + count('timeouts') + count('4xx') + count('5xx'),
  };
}
