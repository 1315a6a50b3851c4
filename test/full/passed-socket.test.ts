import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig, passedSocket } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { register } from '../../src/services/agents/registration.ts';
import { startLoad } from '../support/load.ts';
import { holdSocket } from '../support/passed-socket.ts';
import { freePort } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { unlimited } from '../support/writers.ts';

const dir = scratchFolder('socket');

describe('a restart on a socket that another process keeps', () => {
  for (const workers of [1, 2])
    test(`drops nothing, with WORKERS=${workers}`, async (t) => {
      const env = { DATA_DIR: join(dir, String(workers)), WORKERS: String(workers), ...unlimited };
      const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
      await register(ctx, { email: 'ada@example.com', name: 'Ada', slug: 'ada' });
      const { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
      await ctx.close();
      const service = await holdSocket(await freePort(), env);
      t.after(() => service.close());
      service.start();
      await service.ready();

      let posts = 0;
      const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
      const body = () => JSON.stringify({ slug: `post-${++posts}`, title: 'Title', content: 'text' });
      const write = () => ({ method: 'POST', path: '/api/publish', headers, body: body() });
      const loads = [
        startLoad(service.baseUrl, { clients: 2, next: () => ({ path: '/' }), keepAlive: false }),
        startLoad(service.baseUrl, { clients: 2, next: () => ({ path: '/' }), keepAlive: true }),
        startLoad(service.baseUrl, { clients: 2, next: write, keepAlive: false, accepts: 201 }),
      ];
      await Promise.all(loads.map((load) => load.more(20)));
      assert.equal(await service.stop(), 0, service.output());
      service.start();
      await Promise.all(loads.map((load) => load.more(20)));
      const failures = await Promise.all(loads.map((load) => load.stop()));
      assert.deepEqual(failures.flat(), []);
      const after = await openContext(loadConfig(env), { existing: true, log: createLog('silent') });
      const stored = await after.db.selectFrom('posts').select('id').execute();
      await after.close();
      assert.equal(stored.length, posts);
      assert.equal(await service.stop(), 0, service.output());
    });
});

test('a socket that was passed to another process, or with others, is not taken', () => {
  const own = { LISTEN_PID: String(process.pid), LISTEN_FDS: '1' };
  const parent = { LISTEN_PID: String(process.ppid), LISTEN_FDS: '1' };
  const [alone, worker] = [{ isWorker: false }, { isWorker: true }];
  assert.deepEqual([passedSocket(alone, own), passedSocket(worker, parent)], [3, 4]);
  assert.deepEqual([passedSocket(alone, parent), passedSocket(worker, own)], [null, null]);
  assert.deepEqual([passedSocket(alone, {}), passedSocket(alone, { ...own, LISTEN_FDS: '' })], [null, null]);
  assert.throws(() => passedSocket(alone, { ...own, LISTEN_FDS: '2' }), /to have one ListenStream/);
});
