import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { register } from '../../src/services/agents/registration.ts';
import { request } from '../support/http.ts';
import { startLoad } from '../support/load.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const restarts = scale > 1 ? 3 * scale : 2;
const requests = 1_500 * scale;

describe('rolling restarts', () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    test(`${engine}: of ${requests} requests during ${restarts} of them none fails, and no post is lost`, async (t) => {
      const dataDir = await mkdtemp(join(tmpdir(), 'masthead-rolling-'));
      const env = {
        DATA_DIR: dataDir,
        PORT: String(await freePort()),
        WORKERS: '2',
        SECRET: 's'.repeat(32),
        LIMIT_PUBLISH: '0',
        LIMIT_COMMENT: '0',
        LIMIT_API: '0',
        LIMIT_ANONYMOUS: '0',
        QUOTA_POSTS: '1000000',
        ...(engine === 'postgres' ? { DATABASE_URL: await (await sharedPostgres()).createDatabase() } : {}),
      };
      const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
      await register(ctx, { email: 'ada@example.com', name: 'Ada', slug: 'ada' });
      const { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
      const server = await spawnServer({ env });
      t.after(async () => {
        server.kill('SIGKILL');
        await ctx.close();
        await rm(dataDir, { recursive: true });
      });

      let posts = 0;
      const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
      const create = () => ({ method: 'POST', path: '/api/publish', headers, body: post(++posts) });
      const post = (n: number) => JSON.stringify({ slug: `post-${n}`, title: `Post ${n}`, content: 'text' });
      const page = () => ({ path: '/' });
      const list = () => ({ path: '/api/posts?limit=5' });
      const loads = [
        startLoad(server.baseUrl, { clients: 4, next: page, keepAlive: false }),
        startLoad(server.baseUrl, { clients: 4, next: page, keepAlive: true }),
        startLoad(server.baseUrl, { clients: 2, next: list, keepAlive: true }),
        startLoad(server.baseUrl, { clients: 2, next: create, keepAlive: false, accepts: 201 }),
      ];
      const done = () => loads.reduce((total, load) => total + load.done(), 0);
      for (let n = 1; n <= restarts; n++) {
        while (done() < (requests * (n - 1)) / restarts) await delay(20);
        server.kill('SIGHUP');
        while (server.output().split('all workers are replaced').length <= n) await delay(20);
      }
      while (done() < requests) await delay(20);
      const failures = await Promise.all(loads.map((load) => load.stop()));
      assert.deepEqual(failures.flat(), []);
      t.diagnostic(`${done()} requests, ${posts} posts`);
      const { total } = await ctx.db
        .selectFrom('posts')
        .select((row) => row.fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow();
      assert.equal(total, posts);
      assert.equal((await request(server.baseUrl, { path: '/readyz' })).status, 200);
      assert.equal(await server.stop(), 0);
    });
  }
});
