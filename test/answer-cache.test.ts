import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createAnswerCache } from '../src/api/answer-cache.ts';
import { Session } from '../src/db/postgres/postgres-session.ts';
import { openContext } from '../src/process/open-context.ts';
import { newApiKey, sha256 } from '../src/rules/secrets.ts';
import { regenerateKey } from '../src/services/agents/api-keys.ts';
import { createKeyCheck } from '../src/services/agents/callers.ts';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { publish } from '../src/services/posts/posts.ts';
import { assertOk, describeInstances, startInstance } from './support/instance.ts';

const answer = (text: string) => ({ headers: {}, body: Buffer.from(text), forms: new Map() });

test('an answer is kept until anybody commits a change', () => {
  let version = 1;
  const cache = createAnswerCache({ contentVersion: () => version }, 10_000);
  assert.equal(cache.get('/a'), undefined);
  cache.put('/a', answer('one'), cache.generation());
  assert.equal(cache.get('/a')?.body.toString(), 'one');
  version = 2;
  assert.equal(cache.get('/a'), undefined);
});

test('an answer that was made while something changed is not kept', () => {
  let version = 1;
  const cache = createAnswerCache({ contentVersion: () => version }, 10_000);
  cache.get('/a');
  const moment = cache.generation();
  version = 2;
  cache.get('/b');
  cache.put('/a', answer('old'), moment);
  assert.equal(cache.get('/a'), undefined);
});

test('nothing is kept where the database cannot tell of changes', () => {
  const cache = createAnswerCache({ contentVersion: () => null }, 10_000);
  cache.get('/a');
  cache.put('/a', answer('one'), cache.generation());
  assert.equal(cache.get('/a'), undefined);
});

test('kept answers stay within their memory, however many addresses are asked for', () => {
  const cache = createAnswerCache({ contentVersion: () => 1 }, 10_000);
  cache.get('/0');
  for (let i = 0; i < 100; i++) cache.put(`/${i}`, answer('x'.repeat(1000)), cache.generation());
  const kept = Array.from({ length: 100 }, (_, i) => cache.get(`/${i}`)).filter((found) => found);
  assert.ok(kept.length > 0 && kept.length < 10, `${kept.length} are kept`);
  cache.put('/large', answer('x'.repeat(5000)), cache.generation());
  assert.equal(cache.get('/large'), undefined);
});

describeInstances('lists', {}, (the) => {
  test('are each caller’s own, and show every change at once', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const titles = async ({ key }: { key: string }) =>
      (await the().client(key).listPosts()).posts.map((post) => post.title);
    assert.deepEqual(await titles(ada), []);
    const { post } = await ada.client.publish({ title: 'One', content: 'c' });
    for (const _ of [1, 2]) assert.deepEqual([await titles(ada), await titles(bob)], [['One'], []]);
    await ada.client.publish({ slug: post.slug, title: 'Two' });
    assert.deepEqual(await titles(ada), ['Two']);
    await ada.client.deletePost(post.id);
    assert.deepEqual(await titles(ada), []);
  });
});

test('a key is remembered until something is committed, and not where that was while it was looked up', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const { id, key } = await instance.agent('Ann');
  const ctx = instance.ctx();
  let version = 1;
  let isLate = Promise.resolve(null);
  const engine = { ...ctx.engine, version: () => version };
  const find = createKeyCheck(
    { ...ctx, engine },
    () => isLate,
    async () => {},
  );
  const isKnown = async (what: string) => (await find(what, 'any')) !== null;
  assert.equal(await isKnown(key), true);
  const { promise, resolve } = Promise.withResolvers<null>();
  [version, isLate] = [2, promise];
  const looking = isKnown(key);
  await ctx.db.selectFrom('agents').select('id').execute();
  const second = await ctx.engine.write(regenerateKey, { agentId: id, keyHash: sha256(key) });
  [version, isLate] = [3, Promise.resolve(null)];
  assert.equal(await isKnown(newApiKey()), false);
  resolve(null);
  assert.equal(await looking, true);
  assert.deepEqual([await isKnown(key), await isKnown(second.apiKey)], [false, true]);
  // It is asked for no more as long as the number says that nothing was committed.
  await ctx.engine.write(regenerateKey, { agentId: id, keyHash: sha256(second.apiKey) });
  assert.equal(await isKnown(second.apiKey), true);
  version = 4;
  assert.equal(await isKnown(second.apiKey), false);
});

describeInstances('answers', { variants: ['subdomain'] }, (the) => {
  test('to an agent show at once what it has changed through another process', async () => {
    const ada = await the().agent('Una');
    const { config, log } = the().ctx();
    const other = await openContext(config, { existing: true, log });
    const list = async () => (await the().client(ada.key).listPosts()).posts.map(({ title }) => title);
    const { post } = await ada.client.publish({ title: 'One', content: 'c' });
    const read = async () => {
      const given = assertOk(await the().call('GET', `/api/posts/${post.id}`, { key: ada.key }));
      return (given.json() as { post: { title: string } }).post.title;
    };
    try {
      for (const title of ['Two', 'Three', 'Four']) {
        assert.equal((await list()).length, 1);
        await read();
        // Neither a number nor the public list changes: only the draft's title.
        await publish(
          other,
          { ...ada, keyHash: '', suspended: null, version: '' },
          { slug: post.slug, title },
        );
        assert.deepEqual([await list(), await read()], [[title], title]);
      }
    } finally {
      await other.close();
    }
  });

  test('to anybody show what another process has changed', async () => {
    const eve = await the().agent('Eve');
    await eve.client.publish({ title: 'Shown', content: 'c', status: 'published' });
    const total = async () =>
      (assertOk(await the().call('GET', '/api/posts')).json() as { total: number }).total;
    assert.deepEqual([await total(), await total()], [1, 1]);
    const { config, log } = the().ctx();
    const other = await openContext(config, { existing: true, log });
    try {
      await other.engine.write(suspendAgent, { slug: eve.slug, reason: 'spam' });
    } finally {
      await other.close();
    }
    // On SQLite at once; on PostgreSQL when this process has looked for changes, which it does twice a second.
    if ('file' in config.database) assert.equal(await total(), 0);
    while ((await total()) !== 0) await delay(50);
  });
});

test('answers are read from PostgreSQL once, until something changes', async (t) => {
  const instance = await startInstance({ engine: 'postgres' });
  t.after(() => instance.close());
  const ann = await instance.agent('Ann');
  const { post } = await ann.client.publish({ title: 'Once', content: 'c', status: 'published' });
  const isRead = async (path: string, key?: string) => {
    const asked = mock.method(Session.prototype, 'executeQuery');
    assertOk(await instance.call('GET', path, key === undefined ? {} : { key }));
    const texts = asked.mock.calls.map(({ arguments: [query] }) => query.sql);
    asked.mock.restore();
    return texts.some((text) => text.includes('from "posts"'));
  };
  for (const path of ['/api/posts?limit=3', `/api/posts/${post.id}`, '/api/blogs'])
    for (const key of [undefined, ann.key]) {
      // The look for changes that follows the publication may be still to come, or late on a busy machine.
      for (let tries = 0; await isRead(path, key); tries++) assert.ok(tries < 100, `${path} is always read`);
    }
  await ann.client.publish({ slug: post.slug, title: 'Twice' });
  assert.equal(await isRead(`/api/posts/${post.id}`), true);
  assert.equal(await isRead('/api/posts?limit=3', ann.key), true);
});
