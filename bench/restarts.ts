// Requests through restarts, on both engines: npm exec -- node bench/restarts.ts
// One process, and two workers, on a socket that another process keeps as systemd does; the former behind the shipped
// file of Caddy too; and two processes behind those of nginx and of Caddy, each restarted once the other is ready. Ends
// with exit code 1 where a request failed or a post is not there once. Writes restarts.md. Needs nginx-light and caddy.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/config.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext } from '../src/process/open-context.ts';
import { register } from '../src/services/agents/registration.ts';
import { verifyByOperator } from '../src/services/operators/moderation.ts';
import { startCaddy } from '../test/support/caddy.ts';
import { request } from '../test/support/http.ts';
import { startNginx } from '../test/support/nginx.ts';
import { holdSocket } from '../test/support/passed-socket.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { freePort, spawnServer, type ServerProcess } from '../test/support/processes.ts';
import { unlimited } from '../test/support/writers.ts';
import { describeRun, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    engines: { type: 'string', default: 'sqlite,postgres' },
    ways: { type: 'string', default: 'socket 1,socket 2,caddy 1,caddy 2,nginx 2' },
    requests: { type: 'string', default: '20000' },
    restarts: { type: 'string', default: '4' },
    out: { type: 'string', default: new URL('./restarts.md', import.meta.url).pathname },
  },
});
const [requests, restarts] = [values.requests, values.restarts].map(Number) as [number, number];

type Env = Readonly<Record<string, string>>;
type Asked = {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Env;
  readonly body?: string;
};
/** Something that serves, and restarts. */
type Service = {
  ask(asked: Asked): Promise<number>;
  /** Resolves when the restarted one serves. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

const rows: string[] = [];
let failed = 0;
for (const engine of values.engines.split(',')) {
  for (const way of values.ways.split(',')) {
    const folder = temporaryFolder('restarts');
    const postgres = engine === 'postgres' ? await startPostgres() : null;
    const database = postgres === null ? {} : { DATABASE_URL: await postgres.createDatabase() };
    const env = { DATA_DIR: join(folder, 'data'), SECRET: 's'.repeat(32), ...unlimited, ...database };
    const { done, faults, posts, missing } = await run(way, env, folder);
    await postgres?.stop();
    failed += faults.length + missing;
    for (const fault of faults.slice(0, 3)) process.stderr.write(`${fault}\n`);
    const count = (n: number) => n.toLocaleString('en-US');
    rows.push(
      `| ${engine} | ${way} | ${restarts} | ${count(done)} | ${count(posts)} | ${faults.length} | ${missing} |`,
    );
    process.stdout.write(`${rows.at(-1)}\n`);
  }
}
const text = [
  '# Requests through restarts',
  '',
  'Written by `npm exec -- node bench/restarts.ts`: eight clients, each with a new connection for each request, three of',
  'four read and one publishes, while the service is restarted. `socket 1` and `socket 2` are one process and `WORKERS=2`',
  'on a socket that another process keeps, as systemd does; `caddy 1` is the former behind the shipped Caddyfile, over',
  'TLS; `caddy 2` and `nginx 2` are two processes behind the shipped files, restarted in turn once the other is ready. No',
  'request may fail, and each acknowledged post is there once.',
  '',
  '| Engine | Way | Restarts | Requests | of which posts | Failed | Posts lost or doubled |',
  '|---|---|---|---|---|---|---|',
  ...rows,
  '',
  `${describeRun()}.`,
  '',
];
writeReport(values.out, text.join('\n'));
process.exit(failed === 0 ? 0 : 1);

async function run(way: string, given: Env, folder: string) {
  const port = await freePort();
  const isTls = way.startsWith('caddy');
  const env = {
    ...given,
    BASE_URL: isTls ? `https://masthead.test:${port}` : `http://localhost:${port}`,
    TRUST_PROXY: 'loopback',
  };
  const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
  await register(ctx, { email: 'ada@example.com', name: 'Ada', slug: 'ada' });
  const { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
  const service = await serve(way, port, env, folder);
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const faults: string[] = [];
  const over = new AbortController();
  let [done, posts, sent] = [0, 0, 0];
  const client = async () => {
    while (!over.signal.aborted) {
      const n = ++sent;
      const isWrite = n % 4 === 0;
      const body = JSON.stringify({ slug: `post-${n}`, title: `Post ${n}`, content: 'text' });
      const asked = isWrite
        ? { method: 'POST', path: '/api/publish', headers, body }
        : { path: n % 4 === 1 ? '/' : `/api/posts?limit=${(n % 20) + 1}` };
      const status = await service.ask(asked).catch((error: unknown) => String(error));
      if (status === (isWrite ? 201 : 200)) done += 1;
      else faults.push(`${asked.path}: ${status}`);
      if (isWrite && status === 201) posts += 1;
    }
  };
  const clients = Array.from({ length: 8 }, client);
  const untilDone = async (wanted: number) => {
    while (done + faults.length < wanted) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  for (let n = 1; n <= restarts; n++) {
    await untilDone((requests * n) / (restarts + 1));
    await service.restart();
  }
  await untilDone(requests);
  over.abort();
  await Promise.all(clients);
  const stored = await ctx.db.selectFrom('posts').select('slug').execute();
  await service.close();
  await ctx.close();
  return { done, faults, posts, missing: Math.abs(stored.length - posts) };
}

async function serve(way: string, port: number, env: Env, folder: string): Promise<Service> {
  if (way === 'caddy 1') return behindCaddy(port, env, folder);
  if (way.startsWith('socket ')) return onSocket(port, { ...env, WORKERS: way.replace('socket ', '') });
  return twoBehind(way === 'nginx 2' ? nginxBefore : caddyBefore, { port, env, folder });
}

async function onSocket(port: number, env: Env): Promise<Service> {
  const service = await holdSocket(port, env);
  service.start();
  await service.ready();
  return {
    ask: async (asked) => (await request(service.baseUrl, { ...asked, timeout: 300_000 })).status,
    async restart() {
      await service.stop();
      service.start();
      await service.ready();
    },
    close: () => service.close(),
  };
}

async function behindCaddy(port: number, env: Env, folder: string): Promise<Service> {
  const [upstreamPort, internal] = [await freePort(), await freePort()];
  const service = await onSocket(upstreamPort, { ...env, INTERNAL_PORT: String(internal) });
  const proxy = await caddyBefore({ folder: proxyFolder(folder), upstreamPort, internal, port });
  return {
    ...service,
    ask: proxy.ask,
    async close() {
      await service.close();
      await proxy.stop();
    },
  };
}

type Upstream = {
  readonly folder: string;
  readonly port: number;
  readonly upstreamPort: number;
  readonly secondPort?: number;
  readonly internal: number;
};
type Proxy = Pick<Service, 'ask'> & { stop(): Promise<void> };

async function caddyBefore(upstream: Upstream): Promise<Proxy> {
  const caddy = await startCaddy({ ...upstream, domain: 'masthead.test' });
  const base = `https://masthead.test:${upstream.port}`;
  return {
    ask: async ({ path, ...asked }) => (await caddy.ask(base + path, asked)).status,
    stop: () => caddy.stop(),
  };
}

async function nginxBefore(upstream: Upstream): Promise<Proxy> {
  const nginx = await startNginx(upstream);
  const base = `http://localhost:${upstream.port}`;
  return {
    ask: async (asked) => (await request(base, { ...asked, timeout: 300_000 })).status,
    stop: () => nginx.stop(),
  };
}

async function twoBehind(
  before: (upstream: Upstream) => Promise<Proxy>,
  { port, env, folder }: { port: number; env: Env; folder: string },
): Promise<Service> {
  const [upstreamPort, secondPort, internal] = [await freePort(), await freePort(), await freePort()];
  const own = [
    { PORT: String(upstreamPort), INTERNAL_PORT: String(internal) },
    { PORT: String(secondPort) },
  ] as const;
  const spawn = (n: 0 | 1) => spawnServer({ env: { ...env, ...own[n] }, readyWithin: 300_000 });
  const servers: ServerProcess[] = [await spawn(0), await spawn(1)];
  const proxy = await before({ folder: proxyFolder(folder), port, upstreamPort, secondPort, internal });
  return {
    ask: proxy.ask,
    async restart() {
      for (const n of [0, 1] as const) {
        await servers[n]?.stop();
        servers[n] = await spawn(n);
      }
    },
    async close() {
      for (const server of servers) await server.stop();
      await proxy.stop();
    },
  };
}

function proxyFolder(folder: string): string {
  const home = join(folder, 'proxy');
  mkdirSync(home);
  return home;
}
