import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '../../client/src/index.ts';
import { readNewestMail } from '../../src/mail/folder.ts';
import { freePort, spawnServer } from '../support/processes.ts';

const clients = 50;
const kills = 5;

test(`kill -9 under ${clients} publishing clients loses no acknowledged post and doubles none`, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'masthead-crash-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const env = {
    PORT: String(await freePort()),
    DATA_DIR: dataDir,
    LIMIT_PUBLISH: '0',
    LIMIT_REGISTER: '0',
    LIMIT_API: '0',
    LOG_LEVEL: 'warn',
  };
  let server = await spawnServer({ env });
  t.after(() => server.kill('SIGKILL'));
  const baseUrl = `http://localhost:${server.port}`;

  const ada = createClient({ baseUrl });
  await ada.register({ email: 'ada@example.com', name: 'Ada', slug: 'ada' });
  await ada.waitForVerification(
    async () => (await readNewestMail(join(dataDir, 'mail'), { holdingToken: true }))?.token ?? null,
    { interval: 20, timeout: 5_000 },
  );

  /** Titles by the id that the answer gave: kept here, outside of the server. */
  const acknowledged = new Map<string, string>();
  let sent = 0;
  const stop = new AbortController();
  const write = async (client: number): Promise<void> => {
    const own = createClient({ baseUrl, apiKey: ada.apiKey, retry: { attempts: 1 } });
    for (let n = 0; !stop.signal.aborted;) {
      const title = `Client ${client} post ${n}`;
      sent += 1;
      try {
        const { post } = await own.publish({ title, content: `Text of ${title}`, status: 'published' });
        acknowledged.set(post.id, title);
        // A post whose answer was lost is published again: the same title finds it.
        n += 1;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const writers = Array.from({ length: clients }, (_, client) => write(client));

  for (let kill = 0; kill < kills; kill++) {
    const before = acknowledged.size;
    while (acknowledged.size < before + 100) await new Promise((resolve) => setTimeout(resolve, 5));
    server.kill('SIGKILL');
    await server.exited;
    server = await spawnServer({ env, args: ['serve', '--existing'] });
  }
  stop.abort();
  await Promise.all(writers);

  const found = new Map<string, string>();
  for await (const post of ada.iteratePosts({ limit: 500 })) {
    assert.equal(found.has(post.id), false);
    found.set(post.id, post.title);
  }
  for (const [id, title] of acknowledged)
    assert.equal(found.get(id), title, `acknowledged and lost: ${title}`);
  assert.equal(new Set(found.values()).size, found.size, 'a post is there twice');
  assert.ok(found.size <= sent);
  const { agent } = await ada.me();
  assert.equal(agent.postCount, found.size, 'a counter was kept apart from what it counts');
  assert.equal((await ada.discoverPosts({ limit: 1 })).total, found.size);
  await server.stop();
});
