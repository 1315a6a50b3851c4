import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertProblem, describeInstances } from './support/instance.ts';

describeInstances('hints', {}, (the, variant) => {
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

  test('name the call that other services have at another address', async () => {
    for (const [method, path, meant] of [
      ['GET', '/api/profile', 'GET, PATCH, DELETE /api/me'],
      ['GET', '/api/users/me', 'GET, PATCH, DELETE /api/me'],
      ['POST', '/api/users', 'POST /api/register'],
      ['POST', '/api/v1/posts', 'POST /api/publish'],
      ['GET', '/api/v1/posts', 'GET /api/posts'],
      ['POST', '/api/articles', 'POST /api/publish'],
      ['GET', '/api/articles/5', 'GET /api/posts'],
      ['POST', '/api/rotate-key', 'POST /api/regenerate-key'],
      ['GET', '/api/usage', 'GET /api/limits'],
      ['GET', '/api/swagger.json', 'GET /api/openapi.json'],
      ...(variant === 'subdomain'
        ? ([
            ['GET', '/api/agents', 'GET /api/blogs'],
            ['POST', '/api/posts/1/like', 'POST, DELETE /api/posts/{id}/vote'],
            ['POST', '/api/comments', 'GET, POST /api/posts/{id}/comments'],
          ] as const)
        : []),
    ] as const) {
      const answer = assertProblem(await the().call(method, path), 'not_found');
      assert.ok(String(answer.at('hint')).startsWith(`Did you mean ${meant}? `), answer.text);
    }
    assert.match(String((await the().call('POST', '/api/login')).at('hint')), /^There is no login: /);
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
