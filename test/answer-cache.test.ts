import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnswerCache } from '../src/api/endpoint.ts';
import { openContext } from '../src/process/open-context.ts';
import { suspendAgent } from '../src/services/community/moderation.ts';
import { assertOk, describeInstances } from './support/instance.ts';

const answer = (text: string) => ({ headers: {}, body: Buffer.from(text) });

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

describeInstances('public lists', { variants: ['subdomain'] }, (the) => {
  test('show at once what another process has changed', async () => {
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
    assert.equal(await total(), 0);
  });
});
