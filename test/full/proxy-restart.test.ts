import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { register } from '../../src/services/agents/registration.ts';
import { caddyVersion, startCaddy } from '../support/caddy.ts';
import { request, type RequestOptions } from '../support/http.ts';
import type { EngineName } from '../support/instance.ts';
import { startLoad, type Load } from '../support/load.ts';
import { nginxVersion, startNginx } from '../support/nginx.ts';
import { freePort, spawnServer, type ServerProcess } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { unlimited } from '../support/writers.ts';

const proxies = {
  nginx: {
    missing: nginxVersion() === null ? 'nginx is not installed: apt-get install nginx-light' : false,
    domain: 'localhost',
    protocol: 'http',
  },
  caddy: {
    missing: caddyVersion() === null ? 'Caddy is not installed: apt-get install caddy' : false,
    domain: 'masthead.test',
    protocol: 'https',
  },
} as const;
type ProxyName = keyof typeof proxies;
for (const { missing } of Object.values(proxies)) if (missing) console.error(`SKIPPED: ${missing}`);

/** Of both, one straight after the other. */
const restarts = scale > 1 ? 2 * scale : 1;
const requests = 800 * scale;

for (const proxy of ['nginx', 'caddy'] as const)
  describe(`two processes behind ${proxy} as it is shipped`, { skip: proxies[proxy].missing }, () => {
    for (const engine of ['sqlite', 'postgres'] as const) {
      test(`${engine}: of ${requests} requests during ${restarts} restarts of both in turn none fails, and nothing is lost or doubled`, async (t) => {
        const pair = await startPair(t, proxy, engine);
        const loads = [...startReaders(pair), ...startWriters(pair)];
        for (let n = 1; n <= restarts; n++) {
          await pair.restart(0);
          await pair.restart(1);
          while (done(loads) < (requests * n) / restarts) await delay(20);
        }
        assertNone(await stopAll(loads), pair.errors());
        t.diagnostic(`${done(loads)} requests, ${pair.sent.posts} posts, ${pair.sent.comments} comments`);
        assert.deepEqual(await pair.stored(), pair.sent);
      });
    }

    test('when one is killed, no read fails, and of the writes only those that it had', async (t) => {
      const pair = await startPair(t, proxy, 'sqlite');
      const [readers, writers] = [startReaders(pair), startWriters(pair)];
      const enough = () => Promise.all([...readers, ...writers].map((load) => load.more(50)));
      await enough();
      pair.servers[0]?.kill('SIGKILL');
      // Each goes on, although every other request is first refused by the one that is gone.
      const before = [done(readers), done(writers)] as const;
      while (done(readers) < before[0] + 500 || done(writers) < before[1] + 100) await delay(20);
      assertNone(await stopAll(readers), pair.errors());
      const failed = await stopAll(writers);
      t.diagnostic(`${done(readers)} reads, ${done(writers)} writes, of which ${failed.length} failed`);
      // A client may fail twice: the connections of a process that is killed do not end all at once. Caddy goes on
      // trying to connect, and sends no body twice, until it has looked whether the process is there.
      if (proxy === 'nginx') assert.ok(failed.length <= 2 * clientsThatWrite, failed.join('\n'));
      const { posts, comments } = await pair.stored();
      // The first post was there before.
      const total = posts + comments - 1;
      assert.ok(total >= done(writers) && total <= done(writers) + failed.length, `${total} are stored`);
    });
  });

type Pair = Awaited<ReturnType<typeof startPair>>;

/** Two processes over one database, and a proxy before them. */
async function startPair(t: TestContext, proxy: ProxyName, engine: EngineName) {
  const { domain, protocol } = proxies[proxy];
  const folder = await mkdtemp(join(tmpdir(), 'masthead-pair-'));
  const ports = [await freePort(), await freePort()] as const;
  const [port, internal] = [await freePort(), await freePort()];
  const env = {
    DATA_DIR: join(folder, 'data'),
    BASE_URL: `${protocol}://${domain}:${port}`,
    TRUST_PROXY: 'loopback',
    SECRET: 's'.repeat(32),
    ...unlimited,
    ...(engine === 'postgres' ? { DATABASE_URL: await (await sharedPostgres()).createDatabase() } : {}),
  };
  const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
  await register(ctx, { email: 'ada@example.com', name: 'Ada', slug: 'ada' });
  const { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
  const spawn = (n: number) =>
    spawnServer({
      env: { ...env, PORT: String(ports[n]), ...(n === 0 ? { INTERNAL_PORT: String(internal) } : {}) },
    });
  const servers: ServerProcess[] = [await spawn(0), await spawn(1)];
  const upstream = { folder, port, upstreamPort: ports[0], secondPort: ports[1] };
  const started =
    proxy === 'nginx' ? await startNginx(upstream) : await startCaddy({ ...upstream, domain, internal });
  t.after(async () => {
    await started.stop();
    for (const server of servers) server.kill('SIGKILL');
    await Promise.all(servers.map(({ exited }) => exited));
    await ctx.close();
    await rm(folder, { recursive: true });
  });

  const baseUrl = `${protocol}://127.0.0.1:${port}`;
  const host = `${domain}:${port}`;
  const ca = 'ca' in started ? started.ca : undefined;
  const ask = async (asked: RequestOptions & { readonly host: string; readonly path: string }) =>
    'ask' in started ? started.ask(`https://${asked.host}${asked.path}`, asked) : request(baseUrl, asked);
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) => ({
    method: 'POST',
    path,
    host,
    headers,
    body: JSON.stringify(body),
  });
  const publish = (slug: string) =>
    post('/api/publish', { slug, title: slug, content: 'text', status: 'published' });
  const first = await ask(publish('first'));
  assert.equal(first.status, 201, first.text);
  // Its certificate is made at the first visit, which the first process allows.
  const blog = `ada.${host}`;
  assert.equal((await ask({ path: '/first', host: blog })).status, 200);
  const sent = { posts: 1, comments: 0 };
  const stored = async () => {
    const count = (table: 'posts' | 'comments') =>
      ctx.db
        .selectFrom(table)
        .select((row) => row.fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow();
    return { posts: (await count('posts')).total, comments: (await count('comments')).total };
  };
  return {
    errors: () => ('errors' in started ? started.errors() : ''),
    baseUrl,
    host,
    blog,
    ca,
    headers,
    servers,
    sent,
    stored,
    publish: () => publish(`post-${sent.posts++}`),
    comment: () =>
      post(`/api/posts/${String(first.at('post.id'))}/comments`, { content: `No. ${sent.comments++}` }),
    /** Stops one as soon as the other says that it is ready, and returns when its successor does. */
    async restart(n: number): Promise<void> {
      const [one, other] = [servers[n], servers[1 - n]];
      assert.ok(one && other);
      assert.equal((await request(other.baseUrl, { path: '/readyz' })).status, 200);
      assert.equal(await one.stop(), 0, one.output());
      servers[n] = await spawn(n);
    },
  };
}

const clientsThatWrite = 5;

function startWriters({ baseUrl, ca, publish, comment }: Pair): Load[] {
  const kind = { keepAlive: false, accepts: 201, ca };
  return [
    startLoad(baseUrl, { clients: 3, next: publish, ...kind }),
    startLoad(baseUrl, { clients: clientsThatWrite - 3, next: comment, ...kind }),
  ];
}

/** All reach the processes: nothing that nginx keeps is asked for. */
function startReaders({ baseUrl, ca, host, blog, headers }: Pair): Load[] {
  let n = 0;
  const reads = [
    () => ({ path: `/first?n=${++n}`, host: blog }),
    () => ({ path: '/api/posts?limit=5', host }),
    () => ({ path: '/api/me', host, headers }),
  ];
  return reads.map((next) => startLoad(baseUrl, { clients: 2, next, keepAlive: true, ca }));
}

function done(loads: readonly Load[]): number {
  return loads.reduce((total, load) => total + load.done(), 0);
}

async function stopAll(loads: readonly Load[]): Promise<string[]> {
  return (await Promise.all(loads.map((load) => load.stop()))).flat();
}

/** The number and the first of them, since a list of thousands would take minutes to be compared, and the proxy's log. */
function assertNone(failed: readonly string[], log: string): void {
  const first = failed.slice(0, 3).join('; ');
  assert.equal(failed.length, 0, `${failed.length} failed, first: ${first}\n${log.slice(-2_000)}`);
}
