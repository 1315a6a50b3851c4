import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeInstances } from './support/instance.ts';

describeInstances('hints', {}, (the) => {
  test('name a misspelt field beside the one that is missing for it', async () => {
    const body = { email: 'ada@example.com', nmae: 'Ada', slug: 'ada' };
    const answer = await the().call('POST', '/api/register', { body });
    assert.equal(answer.at('errors.0.field'), 'name');
    assert.match(String(answer.at('hint')), /Unknown field 'nmae' ignored; did you mean 'name'\?/);
  });

  test('name the field that other services call otherwise, also where the service finds it missing', async () => {
    const { key } = await the().agent('Ada');
    const answer = await the().call('POST', '/api/publish', { key, body: { title: 'T', body: 'text' } });
    assert.equal(answer.at('errors.0.field'), 'content');
    assert.match(
      String(answer.at('hint')),
      /^Unknown field 'body' ignored; did you mean 'content'\? To create it/,
    );
  });

  test('are there in every failure, also where nothing better than the code is known', async () => {
    for (const [method, path] of [
      ['GET', '/api/none'],
      ['GET', '/api/me'],
      ['PUT', '/api/me'],
      ['GET', '/api/verify'],
      ['GET', '/api/posts/1'],
      ['POST', '/api/register'],
    ] as const) {
      const hint = (await the().call(method, path)).at('hint');
      assert.ok(typeof hint === 'string' && hint.length > 20, `${method} ${path}`);
    }
  });
});
