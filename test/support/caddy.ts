import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request, type Answer, type RequestOptions } from './http.ts';
import { freePort, isRunning, spawnGuard } from './processes.ts';

const shipped = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url));

/** The version of Caddy here, or null. */
export function caddyVersion(): string | null {
  const { stdout, status } = spawnSync('caddy', ['version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

/** A proxy with TLS, by certificates of its own authority. */
export type Caddy = {
  readonly port: number;
  readonly httpPort: number;
  /** The certificate of its authority. */
  readonly ca: Buffer;
  /** Asks for an https address by way of it, and verifies its certificate. Rejects where there is none. */
  ask(url: string, options?: Pick<RequestOptions, 'method' | 'headers' | 'body'>): Promise<Answer>;
  stop(): Promise<void>;
};

/** Starts Caddy with the file that is shipped, on other ports, for a domain that only this machine has. */
export async function startCaddy({
  folder,
  domain,
  upstreamPort,
  secondPort,
  internal,
  port,
}: {
  /** An empty folder for everything that it writes. */
  readonly folder: string;
  readonly domain: string;
  /** Where Masthead listens. */
  readonly upstreamPort: number;
  /** Where a second process of it does: the lines for it are comments otherwise. */
  readonly secondPort?: number;
  readonly internal: number;
  readonly port: number;
}): Promise<Caddy> {
  const httpPort = await freePort();
  const own = `admin off\n http_port ${httpPort}\n https_port ${port}\n local_certs\n skip_install_trust\n`;
  const text = replaceAll(readFileSync(shipped, 'utf8'), [
    ['{\n\t# With VARIANT', `{\n${own}\t# With VARIANT`],
    ...(secondPort === undefined
      ? []
      : ([
          ['# to 127.0.0.1:3001', `to 127.0.0.1:${secondPort}`],
          ['# health_uri', 'health_uri'],
          ['# health_interval', 'health_interval'],
        ] as const)),
  ]);
  const file = join(folder, 'Caddyfile');
  writeFileSync(file, text);
  const child = spawn('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      XDG_DATA_HOME: folder,
      XDG_CONFIG_HOME: folder,
      MASTHEAD_DOMAIN: domain,
      MASTHEAD: `127.0.0.1:${upstreamPort}`,
      MASTHEAD_INTERNAL: `127.0.0.1:${internal}`,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => (errors += more));
  const guard = spawnGuard('kill -s KILL "$1"', [String(child.pid)]);
  const root = join(folder, 'caddy/pki/authorities/local/root.crt');
  const isServing = () => existsSync(root) && errors.includes('certificate obtained successfully');
  while (!isServing()) {
    if (child.exitCode !== null) throw new Error(`Caddy did not start: ${errors}`);
    await delay(50);
  }
  const ca = readFileSync(root);
  return {
    port,
    httpPort,
    ca,
    ask(url, options = {}) {
      const { host, pathname, search } = new URL(url);
      const asked = { ...options, host, path: pathname + search, agent: new Agent({ ca }), timeout: 120_000 };
      return request(`https://127.0.0.1:${port}`, asked).catch((error: unknown) => {
        throw new Error(`${String(error)}; Caddy says: ${errors.slice(-2_000)}`);
      });
    },
    async stop() {
      if (isRunning(child)) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      guard.kill('SIGKILL');
    },
  };
}

/** Every line that is replaced must be there: the rest of the file is used as it is shipped. */
function replaceAll(text: string, replacements: readonly (readonly [string, string])[]): string {
  return replacements.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the Caddyfile has no '${from}'`);
    return before.replace(from, () => to);
  }, text);
}
