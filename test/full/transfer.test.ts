import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { loadConfig } from '../../src/config/config.ts';
import { openWholePostgres } from '../../src/db/postgres/postgres-whole.ts';
import { openWholeSqlite } from '../../src/db/sqlite/sqlite-whole.ts';
import { createLog } from '../../src/platform/log.ts';
import { readNewestMail } from '../../src/mail/stored-mail.ts';
import { openContext } from '../../src/process/open-context.ts';
import { startServer } from '../../src/server.ts';
import { addComment } from '../../src/services/community/engagement.ts';
import { vote } from '../../src/services/community/votes.ts';
import { suspendAgent, verifyByOperator } from '../../src/services/operators/moderation.ts';
import { countWaitingMail } from '../../src/services/outbox.ts';
import { publish } from '../../src/services/posts/posts.ts';
import { register } from '../../src/services/agents/registration.ts';
import { transfer } from '../../src/services/upkeep/transfer.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { masthead } from '../support/command-line.ts';
import { request } from '../support/http.ts';
import { freePort } from '../support/processes.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const log = createLog('silent');
const posts = 30;

let dir = '';
let last = 0;
before(async () => {
  dir = scratchFolder('transfer');
});
const fresh = () => join(dir, String(++last));

type Env = Readonly<Record<string, string>>;

/** An SQLite instance with something in every table that is copied. Returns a key of it. */
async function makeInstance(env: Env): Promise<string> {
  const ctx = await openContext(loadConfig(env), { existing: false, log });
  try {
    const newAgent = async (slug: string) => {
      const { result } = await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      const { apiKey } = await ctx.engine.write(verifyByOperator, { slug });
      return {
        id: result.agent.id,
        name: slug,
        slug,
        keyHash: '',
        suspended: null,
        version: '',
        keyUsed: true,
        apiKey,
      };
    };
    const [ada, grace, alan] = [await newAgent('ada'), await newAgent('grace'), await newAgent('alan')];
    for (let n = 0; n < posts; n++) {
      const { post } = await publish(
        ctx,
        n % 3 === 0 ? grace : ada,
        {
          title: `Kartoffel ${n} – 🥔`,
          content: `# One\n\nText *${n}* with “quotes” and \u{1F954}.`,
          status: n % 7 === 0 ? 'draft' : 'published',
          tags: ['food', `tag-${n % 4}`],
        },
        { ticket: { policy: 'publish', subject: ada.id, quota: 100, rate: null } },
      );
      if (n % 7 === 0) continue;
      const replay = { scope: `comments:${grace.id}`, key: `key-${n}`, requestHash: '' };
      await addComment(ctx, grace, post.id, `Comment ${n}`, { replay });
      await ctx.engine.write(vote, { agentId: grace.id, postId: post.id, value: n % 2 ? 1 : -1 });
    }
    await publish(ctx, alan, { title: 'Hidden', content: 'x', status: 'published' });
    await ctx.engine.write(suspendAgent, { slug: 'alan', reason: 'a test' });
    // One who has not verified yet, and whose message waits.
    await register(ctx, { email: 'kurt@example.com', name: 'Kurt', slug: 'kurt' });
    return ada.apiKey;
  } finally {
    await ctx.close();
  }
}

describe('migrate-to', () => {
  test('carries an instance to PostgreSQL and back: pages, keys, limits, search and mail', async () => {
    const env = { DATA_DIR: fresh(), PORT: String(await freePort()) };
    const key = await makeInstance(env);
    const seen = await look(env, key);

    const url = await (await sharedPostgres()).createDatabase();
    const there = await masthead(['migrate-to', '--json', url], env);
    assert.equal(there.code, 0, there.stderr);
    const secret = (await readFile(join(env.DATA_DIR, 'secret'), 'utf8')).trim();
    const onPostgres = { ...env, DATABASE_URL: url, SECRET: secret, MAIL_DIR: fresh(), MEDIA_DIR: fresh() };
    const back = fresh();
    const { tables: tablesThere } = JSON.parse(there.stdout).data;
    const onSqlite = { ...env, DATABASE_URL: `sqlite:${back}`, MAIL_DIR: fresh() };
    const here = await masthead(['migrate-to', '--json', `sqlite:${back}`], onPostgres);
    assert.equal(here.code, 0, here.stderr);
    assert.deepEqual(JSON.parse(here.stdout).data.tables, tablesThere);
    const rows = new Map(
      tablesThere.map(({ table, rows: n }: { table: string; rows: number }) => [table, n]),
    );
    assert.equal(rows.get('posts'), posts + 1);
    for (const table of ['agents', 'tokens', 'comments', 'votes', 'outbox', 'rate_calls', 'idempotency'])
      assert.ok(Number(rows.get(table)) > 0, `nothing of ${table} was copied`);

    for (const moved of [onPostgres, onSqlite]) {
      assert.deepEqual(await look(moved, key), seen);
      const { code, stdout } = await masthead(['doctor', '--json'], moved);
      const counts = JSON.parse(stdout).data.find(({ what }: { what: string }) => what === 'counts');
      assert.deepEqual([counts.state, counts.detail], ['ok', 'are what there is'], String(code));
      await liveOn(moved, key);
    }
  });

  /** What readers and the owner of a key see, without changing anything. */
  async function look(env: Env, key: string): Promise<string[]> {
    const config = loadConfig({ ...env, READ_ONLY: 'on', LIMIT_API: '0' });
    const server = await startServer(config, { existing: true, log });
    try {
      const texts: string[] = [];
      const paths = ['/api/posts?sort=oldest&limit=100', '/api/blogs', '/api/search?q=kartoffel', '/api/me'];
      for (const path of [...paths, '/api/posts/featured', '/api/limits', '/api/posts?status=draft']) {
        const headers = { authorization: `Bearer ${key}` };
        const answer = await request(`http://127.0.0.1:${server.port}`, { path, headers });
        assert.equal(answer.status, 200, `${path}: ${answer.text}`);
        texts.push(path === '/api/limits' ? JSON.stringify(answer.at('limits.1.remaining')) : answer.text);
      }
      const host = `ada.localhost:${server.port}`;
      for (const path of ['/', '/kartoffel-1', '/feed.xml', '/tags/food.md'])
        texts.push((await request(`http://127.0.0.1:${server.port}`, { path, host })).text);
      return texts;
    } finally {
      await server.close();
    }
  }

  /** The message that waited goes out and holds, and new posts are found. */
  async function liveOn(env: Env, key: string): Promise<void> {
    const server = await startServer(loadConfig(env), { existing: true, log });
    try {
      while ((await countWaitingMail(server.ctx)) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      const mail = await readNewestMail(env['MAIL_DIR'] ?? '', { holdingToken: true });
      assert.equal(mail?.to, 'kurt@example.com');
      const base = `http://127.0.0.1:${server.port}`;
      const verified = await request(base, { path: `/api/verify?token=${mail?.token}` });
      assert.equal(verified.status, 200, verified.text);
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ title: 'Zwiebel', content: 'One more.', status: 'published' });
      const published = await request(base, { method: 'POST', path: '/api/publish', headers, body });
      assert.equal(published.status, 201, published.text);
      const found = await request(base, { path: '/api/search?q=zwiebel' });
      assert.equal(found.at('posts.0.id'), published.at('post.id'));
    } finally {
      await server.close();
    }
  }

  test('goes on where it was broken off, and until it is done nobody can serve the copy', async () => {
    const env = { DATA_DIR: fresh() };
    await makeInstance(env);
    const file = join(env.DATA_DIR, 'masthead.db');
    const url = await (await sharedPostgres()).createDatabase();
    const tables: string[] = [];
    const source = openWholeSqlite(file, { create: false });
    const target = await openWholePostgres([url], log);
    const progress = ({ table }: { table: string }) => {
      tables.push(table);
      if (table === 'comments') throw new Error('broken off');
    };
    await assert.rejects(transfer(source, target, { now: Date.now, progress }), /broken off/);
    await source.close();
    await target.close();
    assert.ok(tables.includes('posts'));

    const unfinished = { ...env, DATABASE_URL: url, SECRET_FILE: join(env.DATA_DIR, 'secret') };
    const served = await masthead(['migrate'], unfinished);
    assert.match(served.stderr, /The database is an unfinished copy of the instance \S+: repeat the/);
    const again = await masthead(['migrate-to', url], env);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, new RegExp(`^posts +${posts + 1} +[0-9a-f]{16}$`, 'm'));
    assert.equal((await masthead(['migrate'], unfinished)).stdout, 'The schema is up to date.');
  });

  test('says so when the source was changed between two runs', async () => {
    const env = { DATA_DIR: fresh() };
    await makeInstance(env);
    const file = join(env.DATA_DIR, 'masthead.db');
    const to = fresh();
    const source = openWholeSqlite(file, { create: false });
    const target = openWholeSqlite(to, { create: true });
    const progress = ({ table }: { table: string }) => {
      if (table === 'post_tags') throw new Error('broken off');
    };
    await assert.rejects(transfer(source, target, { now: Date.now, progress }), /broken off/);
    await target.close();
    await source.db.updateTable('posts').set({ title: 'Changed' }).execute();
    await source.close();
    const { code, stderr } = await masthead(['migrate-to', `sqlite:${to}`], env);
    assert.equal(code, 1);
    assert.match(stderr, /The table posts is not equal on both sides/);
  });

  test('refuses a source that is served, a target that is in use, and what is no address', async () => {
    const env = { DATA_DIR: fresh(), PORT: String(await freePort()) };
    await makeInstance(env);
    const to = `sqlite:${fresh()}`;
    const server = await startServer(loadConfig(env), { existing: true, log });
    const busy = await masthead(['migrate-to', to], env);
    assert.match(
      busy.stderr,
      /^A process serves this database: stop what serves it, or start it with READ_ON/,
    );
    await server.close();
    const readOnly = await startServer(loadConfig({ ...env, READ_ONLY: 'on' }), { existing: true, log });
    assert.equal((await masthead(['migrate-to', to], env)).code, 0);
    await readOnly.close();
    const cases: [string, RegExp][] = [
      [to, /holds an instance already: name an empty database/],
      ['mysql://x/y', /^DATABASE_URL is neither sqlite: nor a postgres:\/\/ address/],
      ['postgres://127.0.0.1:1/x', /^PostgreSQL cannot be reached/],
    ];
    for (const [address, message] of cases) {
      const { code, stderr } = await masthead(['migrate-to', address], env);
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
  });
});
