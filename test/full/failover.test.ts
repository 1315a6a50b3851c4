import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { register } from '../../src/services/agents/registration.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { request, type Answer } from '../support/http.ts';
import { query, startPostgres, startStandby, type Cluster, type Standby } from '../support/postgres.ts';
import { spawnServer, type ServerProcess } from '../support/processes.ts';
import { scale } from '../support/scale.ts';

/** Posts that are acknowledged before the primary is lost, and after it. */
const postsBefore = 1_000 * scale;
const postsAfter = 300 * scale;
/** Publishing agents, which do not wait for each other, and the clients of each, which do. */
const agents = 8;
const clientsOfAgent = 2;

describe('a primary that is lost, with a synchronous standby', () => {
  const connections = new Agent({ keepAlive: true });
  let dataDir: string;
  let primary: Cluster;
  let standby: Standby;
  let server: ServerProcess;
  let keys: string[];
  let database: string;
  const publish = (title: string, key = keys[0]): Promise<Answer> =>
    request(server.baseUrl, {
      method: 'POST',
      path: '/api/publish',
      agent: connections,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ title, content: title, status: 'published' }),
    });

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'masthead-failover-'));
    primary = await startPostgres();
    database = new URL(await primary.createDatabase()).pathname.slice(1);
    standby = await startStandby(primary, { synchronous: true });
    const env = {
      DATA_DIR: dataDir,
      SECRET: 's'.repeat(32),
      DATABASE_URL: [primary.url(database), standby.url(database)].join(','),
      DATABASE_REPLICA_URLS: standby.url(database),
      LIMIT_PUBLISH: '0',
      LIMIT_COMMENT: '0',
      LIMIT_REGISTER: '0',
      LIMIT_API: '0',
    };
    const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
    keys = [];
    for (let n = 0; n < agents; n++) {
      const slug = `agent-${n}`;
      await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      keys.push((await ctx.engine.write(verifyByOperator, { slug })).apiKey);
    }
    await ctx.close();
    server = await spawnServer({ env, args: ['serve', '--existing'] });
  });

  after(async () => {
    connections.destroy();
    await server.stop();
    await Promise.all([primary.stop(), standby.stop()]);
    await rm(dataDir, { recursive: true });
  });

  it('a wait for the standby that is cancelled is no success', async () => {
    await setSynchronous(primary, 'nobody');
    // The second finds what the first has stored here and nowhere else.
    for (const attempt of ['first', 'second']) {
      const waiting = publish('Cancelled');
      for (let cancelled = 0; cancelled === 0; await delay(20)) {
        const rows = await query(
          primary.url(),
          `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
        );
        cancelled = rows.length;
      }
      const answer = await waiting;
      assert.equal(answer.status, 503, attempt);
      assert.equal(answer.at('code'), 'unavailable');
      assert.ok(Number(answer.headers['retry-after']) > 0);
    }
    await setSynchronous(primary, `standby_${standby.port}`);
    const repeated = await publish('Cancelled');
    assert.equal(repeated.status, 200, repeated.text);
    assert.equal(repeated.at('changed'), false);
  });

  it('no acknowledged post is lost or doubled, pages go on, and writes resume by themselves', async (t) => {
    const acknowledged: string[] = [];
    const readFailures: string[] = [];
    const seen = { stopped: false, refusals: 0, rounds: 0, promotedAt: 0, resumedAt: 0 };

    const load = keys.flatMap((key, agent) =>
      Array.from({ length: clientsOfAgent }, async (_, n) => {
        for (let i = 0; !seen.stopped; i++) {
          const title = `Post ${agent} ${n} ${i}`;
          // As a client does: the same call again until it is answered, and then it is done once.
          for (;;) {
            const answer = await publish(title, key).catch(() => null);
            if (answer && answer.status < 300) {
              acknowledged.push(title);
              if (seen.promotedAt > 0 && seen.resumedAt === 0) seen.resumedAt = Date.now();
              break;
            }
            seen.refusals += 1;
            assert.ok(answer === null || answer.status === 503, answer?.text);
            assert.ok(answer === null || Number(answer.headers['retry-after']) > 0);
            await delay(50);
          }
        }
      }),
    );
    const reader = (async () => {
      for (; !seen.stopped; seen.rounds++) {
        for (const path of ['/api/posts?limit=5', '/', '/readyz']) {
          const answer = await request(server.baseUrl, { path, host: `localhost:${server.port}` });
          if (answer.status !== 200) readFailures.push(`${path} ${answer.status} ${answer.text}`);
        }
        await delay(100);
      }
    })();
    const clients = Promise.all([...load, reader]);
    const until = async (condition: () => boolean) => {
      while (!condition()) await Promise.race([delay(20), clients]);
    };

    const begun = Date.now();
    await until(() => acknowledged.length >= postsBefore);
    const rate = (postsBefore * 1000) / (Date.now() - begun);
    await primary.kill();
    const { rounds } = seen;
    await until(() => seen.refusals > 0 && seen.rounds >= rounds + 10);
    await query(standby.url(), `alter system set synchronous_standby_names = ''`);
    await standby.promote();
    seen.promotedAt = Date.now();
    await until(() => acknowledged.length >= postsBefore + postsAfter);
    seen.stopped = true;
    await clients;
    t.diagnostic(`${acknowledged.length} posts acknowledged, ${rate.toFixed(0)} a second before the loss`);
    t.diagnostic(`the first ${seen.resumedAt - seen.promotedAt} ms after the promotion`);

    assert.deepEqual(readFailures, []);
    const rows = await query(standby.url(database), `select title from posts where title like 'Post %'`);
    assert.deepEqual(rows.map((row) => String(row['title'])).toSorted(), acknowledged.toSorted());
    const [counts] = await query(
      standby.url(database),
      `select (select count(*) from posts) as posts, (select sum(published_count) from agents) as counted`,
    );
    assert.equal(counts?.['counted'], counts?.['posts']);
  });

  it('goes on with the promoted server when the old primary comes back', async () => {
    await primary.restart();
    while (!server.output().includes('takes writes although another has replaced it')) await delay(20);
    const { status } = await publish('After the return');
    assert.equal(status, 201);
    const [row] = await query(
      standby.url(database),
      `select count(*)::int as n from posts where title = 'After the return'`,
    );
    assert.equal(row?.['n'], 1);
  });
});

async function setSynchronous(cluster: Cluster, name: string): Promise<void> {
  await query(cluster.url(), `alter system set synchronous_standby_names = '${name}'`);
  await query(cluster.url(), 'select pg_reload_conf()');
}
