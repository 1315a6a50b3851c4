import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { register } from '../../src/services/agents/registration.ts';
import { request, type Answer } from '../support/http.ts';
import { query, startPostgres, startStandby, type Cluster, type Standby } from '../support/postgres.ts';
import { spawnServer, type ServerProcess } from '../support/processes.ts';

describe('read replicas', () => {
  let dataDir: string;
  let primary: Cluster;
  let standby: Standby;
  let server: ServerProcess;
  let env: Record<string, string>;
  let key: string;
  let asked = 0;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'masthead-replicas-'));
    primary = await startPostgres();
    const url = await primary.createDatabase();
    standby = await startStandby(primary);
    env = {
      DATA_DIR: dataDir,
      SECRET: 's'.repeat(32),
      DATABASE_URL: url,
      DATABASE_REPLICA_URLS: standby.url(new URL(url).pathname.slice(1)),
      LIMIT_ANONYMOUS: '0',
      LOG_LEVEL: 'info',
    };
    const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
    await register(ctx, { email: 'ada@example.com', name: 'Ada', slug: 'ada' });
    key = (await ctx.engine.write(verifyByOperator, { slug: 'ada' })).apiKey;
    await ctx.close();
    server = await spawnServer({ env, args: ['serve', '--existing'] });
  });

  after(async () => {
    await server.stop();
    await Promise.all([primary.stop(), standby.stop()]);
    await rm(dataDir, { recursive: true });
  });

  it('answers what everyone may see', async () => {
    await publish('First');
    await until(usesReplica);
    assert.equal(await newest(), 'First');
  });

  it('is passed over by those who wrote what it has not replayed, and left out when it is 5 s behind', async () => {
    await query(standby.url(), 'select pg_wal_replay_pause()');
    for (const title of ['Second', 'Third']) {
      await publish(title);
      assert.equal(await newest(), title);
      assert.match((await page('/')).text, new RegExp(title));
    }
    await said('a replica is more than 5 s behind and is left out');
    assert.equal(await newest(), 'Third');
    await query(standby.url(), 'select pg_wal_replay_resume()');
    await said('a replica has caught up');
    await until(usesReplica);
    assert.equal(await newest(), 'Third');
  });

  it('is left out when it stops answering, also by those who wait for it, and taken back', async () => {
    const readers = startReaders();
    const resume = standby.suspend();
    await said('a replica does not answer and is left out');
    await publish('Fourth');
    assert.equal(await newest(), 'Fourth');
    await readers.readOn();
    resume();
    await said('a replica answers', 2);
    await until(usesReplica);
    await standby.kill();
    await said('a replica does not answer and is left out', 2);
    await publish('Fifth');
    assert.equal(await newest(), 'Fifth');
    await standby.restart();
    await said('a replica answers', 3);
    await until(usesReplica);
    assert.deepEqual(await readers.stop(), []);
  });

  it('may show what is old while there is no primary, and nothing of that once there is one', async () => {
    await publish('Deleted');
    const newestPost = await page(`/api/posts?limit=1&n=${asked++}`);
    const id = String(newestPost.at('posts.0.id'));
    const { host, pathname: path } = new URL(String(newestPost.at('posts.0.url')));
    const status = async () => (await request(server.baseUrl, { host, path })).status;
    await until(
      async () => (await query(standby.url(database()), `select 1 from posts where id = '${id}'`)).length > 0,
    );
    await query(standby.url(), 'select pg_wal_replay_pause()');
    const headers = { authorization: `Bearer ${key}` };
    await request(server.baseUrl, { method: 'DELETE', path: `/api/posts/${id}`, headers });
    assert.equal(await status(), 410);
    await primary.kill();
    await until(async () => (await status()) === 200);
    await primary.restart();
    await until(async () => (await status()) === 410);
    await query(standby.url(), 'select pg_wal_replay_resume()');
    await until(usesReplica);
    assert.equal(await status(), 410);
  });

  it('serves a read-only service by itself, which learns of changes', async (t) => {
    const reader = await spawnServer({
      env: {
        ...env,
        DATABASE_URL: env['DATABASE_REPLICA_URLS'] ?? '',
        DATABASE_REPLICA_URLS: '',
        READ_ONLY: 'on',
      },
    });
    t.after(() => reader.stop());
    const at = reader.baseUrl;
    assert.match((await page('/', at)).text, /Fifth/);
    await publish('Sixth');
    await until(async () => (await page('/', at)).text.includes('Sixth'));
    assert.equal(await newest(at), 'Sixth');
    await primary.kill();
    assert.equal(await newest(at), 'Sixth');
    assert.equal((await page('/readyz', at)).at('writable'), false);
    for (const [method, path] of [
      ['GET', '/api/me'],
      ['POST', '/api/publish'],
    ] as const) {
      const refused = await request(at, { method, path, headers: { authorization: `Bearer ${key}` } });
      assert.equal(refused.status, 503, refused.text);
    }
    // The service that has lost its primary goes on showing what everyone may see.
    assert.equal(await newest(), 'Sixth');
    const id = String((await page('/api/posts?limit=1')).at('posts.0.id'));
    for (const limit of ['', '?limit=5']) await page(`/api/posts/${id}/comments${limit}`);
  });

  function database(): string {
    return new URL(env['DATABASE_URL'] ?? '').pathname.slice(1);
  }

  async function publish(title: string): Promise<void> {
    const { status, text } = await request(server.baseUrl, {
      method: 'POST',
      path: '/api/publish',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ title, content: title, status: 'published' }),
    });
    assert.equal(status, 201, text);
  }

  /** The title that a public list begins with. A number in the query keeps answers from being given from memory. */
  async function newest(at = server.baseUrl): Promise<unknown> {
    return (await page(`/api/posts?limit=1&n=${asked++}`, at)).at('posts.0.title');
  }

  async function page(path: string, at = server.baseUrl): Promise<Answer> {
    const answer = await request(at, { path, host: `localhost:${new URL(at).port}` });
    assert.equal(answer.status, 200, answer.text);
    return answer;
  }

  /** Whether a list that is read now is read there: beside the looks at how it is. */
  async function usesReplica(): Promise<boolean> {
    const [row] = await query(standby.url(), 'select clock_timestamp()::text as now');
    await newest();
    const later = `select 1 from pg_stat_activity
      where application_name = 'masthead' and query_start > $1::timestamptz and query not like '%pg_is_in_recovery%'`;
    return (await query(standby.url(), later, [row?.['now']])).length > 0;
  }

  /** Waits until the service has logged a message so many times. */
  function said(message: string, times = 1): Promise<void> {
    return until(() => server.output().split(`"${message}"`).length > times);
  }

  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) await delay(50);
  }

  /** Reads lists until stopped, and tells what failed. */
  function startReaders() {
    const failures: string[] = [];
    const done = [0, 0, 0, 0];
    const state = { stopped: false };
    const running = Promise.all(
      done.map(async (_, n) => {
        while (!state.stopped) {
          await newest().catch((error: unknown) => failures.push(String(error)));
          done[n] = (done[n] ?? 0) + 1;
          await delay(10);
        }
      }),
    );
    return {
      /** Resolves when each has read two lists more, the second of which it began after this call. */
      async readOn(): Promise<void> {
        const earlier = [...done];
        await until(() => done.every((count, n) => count >= (earlier[n] ?? 0) + 2));
      },
      async stop(): Promise<readonly string[]> {
        state.stopped = true;
        await running;
        return failures;
      },
    };
  }
});
