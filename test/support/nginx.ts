import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isRunning } from './processes.ts';

const shipped = fileURLToPath(new URL('../../deploy/nginx/masthead.conf', import.meta.url));

/** Debian keeps it where a user's PATH does not lead. */
const nginx = existsSync('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx';

/** The version of nginx here, or null. */
export function nginxVersion(): string | null {
  const { stderr, status } = spawnSync(nginx, ['-v'], { encoding: 'utf8' });
  return status === 0 ? (/nginx\/(\S+)/.exec(stderr)?.[1] ?? null) : null;
}

export type NginxOptions = {
  /** An empty folder for everything that it writes. */
  readonly folder: string;
  readonly port: number;
  /** Where Masthead listens. */
  readonly upstreamPort: number;
  /** Where a second process of it does: the line for it is a comment otherwise. */
  readonly secondPort?: number;
  /** The file to use in place of the one that is shipped with this source. */
  readonly configuration?: string;
  /** Serves the folder `www` of `folder` as files. */
  readonly staticPort?: number;
  /** Runs before the program and its arguments, e.g. `taskset -c 0`. */
  readonly prefix?: readonly string[];
};

export type Nginx = {
  readonly pid: number;
  /** Its error log. */
  errors(): string;
  stop(): Promise<void>;
};

/** Starts nginx with the configuration that is shipped, on other ports and in other folders. */
export async function startNginx(options: NginxOptions): Promise<Nginx> {
  const { folder, port, staticPort, prefix = [] } = options;
  const file = join(folder, 'nginx.conf');
  mkdirSync(join(folder, 'www'), { recursive: true });
  writeFileSync(file, configuration(options));
  const [program, ...args] = [...prefix, nginx, '-p', folder, '-c', file];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const stop = async () => {
    if (!isRunning(child)) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
  try {
    for (const listened of [port, ...(staticPort === undefined ? [] : [staticPort])])
      await waitUntilOpen(listened, child);
  } catch {
    await stop();
    throw new Error(`nginx did not start: ${errors}`);
  }
  return { pid: child.pid ?? 0, errors: () => errors, stop };
}

function configuration(options: NginxOptions): string {
  const { folder, port, upstreamPort, secondPort, staticPort, configuration: file = shipped } = options;
  const site = replaceAll(readFileSync(file, 'utf8'), [
    ['server 127.0.0.1:3000', `server 127.0.0.1:${upstreamPort}`],
    ...(secondPort === undefined
      ? []
      : ([['# server 127.0.0.1:3001', `server 127.0.0.1:${secondPort}`]] as const)),
    ['listen 80 default_server;', `listen 127.0.0.1:${port} default_server;`],
    ['listen [::]:80 default_server;', ''],
    ['/var/lib/nginx/masthead', join(folder, 'cache')],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  const files =
    staticPort === undefined
      ? ''
      : `server { listen 127.0.0.1:${staticPort}; root ${join(folder, 'www')}; open_file_cache max=100; }`;
  return `daemon off; worker_processes 1; pid ${join(folder, 'pid')}; error_log stderr;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    events { worker_connections 1024; }
    http { default_type text/html; access_log off; sendfile on; keepalive_requests 100000000;
      ${temporary.join(' ')} ${site} ${files} }`;
}

/** Every line that is replaced must be there: the rest of the file is used as it is shipped. */
function replaceAll(text: string, replacements: readonly (readonly [string, string])[]): string {
  return replacements.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the configuration has no '${from}'`);
    return before.replace(from, to);
  }, text);
}

async function waitUntilOpen(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 2_400 && child.exitCode === null; tries++) {
    const socket = connect(port, '127.0.0.1');
    const opened = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (opened) return;
    await delay(25);
  }
  throw new Error('not listening');
}
