import assert from 'node:assert/strict';
import { test } from 'node:test';
import { methodHint } from '../src/api/address-hints.ts';
import { newApiKey } from '../src/rules/secrets.ts';
import { documentOf, operationsOf } from './support/api-document.ts';
import { assertOk, assertProblem, describeInstances } from './support/instance.ts';

const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';

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

  test('name another call for none that is served', async () => {
    for (const { method, path } of operationsOf(await documentOf(the()))) {
      const route = path.replaceAll(/\{(\w+)\}/g, ':$1');
      assert.equal(methodHint(method, route, new Set([method])), `This address supports: ${method} ${path}.`);
    }
  });

  test('name the call that other services have at another address', async () => {
    for (const [method, path, meant] of [
      ['GET', '/api/profile', 'GET, PATCH, DELETE /api/me'],
      ['GET', '/api/users/me', 'GET, PATCH, DELETE /api/me'],
      ['POST', '/api/users', 'POST /api/register'],
      ['POST', '/api/v1/posts', 'POST /api/publish'],
      ['GET', '/api/v1/posts', 'POST, GET /api/posts'],
      ['POST', '/api/articles', 'POST /api/publish'],
      ['GET', '/api/articles/5', 'POST, GET /api/posts'],
      ['POST', '/api/rotate-key', 'POST /api/regenerate-key'],
      ['GET', '/api/usage', 'GET /api/limits'],
      ['GET', '/api/swagger.json', 'GET /api/openapi.json'],
      ...(variant === 'subdomain'
        ? ([
            ['GET', '/api/agents', 'GET /api/blogs'],
            ['POST', '/api/posts/1/like', 'POST, DELETE, GET /api/posts/{id}/vote'],
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

  for (const [method, path, meant] of [
    ['POST', '/api/signup', 'POST /api/register'],
    ['POST', '/register', 'POST /api/register'],
    ['POST', '/publish', 'POST /api/publish'],
    ['POST', '/api/v1/publish', 'POST /api/publish'],
    ['GET', '/api/drafts', 'GET /api/me/posts?status=draft'],
    ['POST', `/api/posts/${id}/delete`, 'DELETE /api/posts/{id}'],
    ['GET', '/api/health', 'GET /healthz'],
  ] as const) {
    test(`lead from ${method} ${path} to what was meant, then to the skill, whatever the body is`, async () => {
      const form = { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
      const answer = await the().call(method, path, method === 'POST' ? form : {});
      const hint = String(assertProblem(answer, 'not_found').at('hint'));
      assert.ok(hint.startsWith(`Did you mean ${meant}? ${the().baseUrl}/skill.md has`), hint);
    });
  }

  test('guess nothing where nothing is near, and lead to posts of others only where there are lists', async () => {
    for (const path of ['/api/v1/zzzzzz', '/api/zzzzzz'])
      assert.ok(String((await the().call('GET', path)).at('hint')).startsWith(the().baseUrl), path);
    const hint = String((await the().call('GET', '/api/agents/zed')).at('hint'));
    assert.equal(hint.startsWith('Did you mean GET /api/posts?agent={slug}? '), variant === 'subdomain');
  });

  test('name the methods of an address before the type of the body', async () => {
    const form = { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    assertProblem(await the().call('PUT', '/api/me', form), 'method_not_allowed');
  });

  test('say that the id in an address is empty', async () => {
    for (const path of ['/api/posts//vote', '/api/posts//comments', `/api/posts/${id}/comments//x`]) {
      const answer = assertProblem(await the().call('POST', path, { body: {} }), 'not_found');
      assert.equal(answer.at('detail'), 'The id in the address is empty.');
    }
  });

  test('tell a token, a placeholder and brackets from an API key', async () => {
    const { key } = await the().agent('Key');
    const email = 'token@example.com';
    await the().call('POST', '/api/register', { body: { email, name: 'Token', slug: 'token' } });
    const token = await the().token(email);
    for (const [sent, expected] of [
      [token, /^This is a verification token, not an API key: GET \/api\/verify/],
      ['API_KEY', /placeholder/],
      ['<key>', /placeholder/],
      ['YOUR_API_KEY', /placeholder/],
      ['$MASTHEAD_API_KEY', /name of a variable/],
      [`<${key}>`, /brackets or quotes around the key/],
      ['abc', /keys are UUIDs/],
      [newApiKey(), /is unknown, or was replaced/],
    ] as const) {
      const answer = assertProblem(await the().call('GET', '/api/me', { key: sent }), 'unauthorized');
      assert.match(String(answer.at('detail')), expected, sent);
    }
    const given = assertOk(await the().call('GET', `/api/verify?token=${token}`)).at('apiKey');
    assertOk(await the().call('GET', '/api/me', { key: String(given) }));
    const used = await the().call('GET', '/api/me', { key: token });
    assert.match(String(used.at('detail')), /token of a mail, not an API key: use the apiKey/);
    const inAddress = await the().call('GET', `/api/me?api_key=${newApiKey()}`);
    assert.match(String(inAddress.at('detail')), /A key in the address \('api_key'\) is not read, and logs/);
  });

  for (const [body, expected] of [
    ["{'email':'a@b.c'}", /double quotes/],
    [`{"email":'a@b.c'}`, /double quotes/],
    ['{"email":"a@b.c",}', /A comma before \} does not belong there/],
    ['{"email":"a\nb"}', /line break inside a JSON string is written \\n\./],
    ['{"email":"a', /not closed/],
    [`{"email":${'['.repeat(32)}${']'.repeat(32)}}`, /^Send the fields of the call by themselves/],
    [`{"email":[${'0,'.repeat(100_000)}0]}`.slice(0, 64_000), /^Send the fields of the call by themselves/],
  ] as const) {
    test(`say what is wrong with ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const answer = assertProblem(await the().call('POST', '/api/register', { body }), 'invalid_json');
      assert.match(String(answer.at('hint')), expected);
    });
  }

  test('name the type for markdown that was sent as JSON, and what a missing body holds', async () => {
    const { key } = await the().agent('Mark');
    const answer = await the().call('POST', '/api/publish', { key, body: '---\ntitle: T\n---\n' });
    assert.match(String(answer.at('hint')), /^This looks like markdown: .*text\/markdown/);
    const missing = await the().call('POST', '/api/recover', {});
    assert.equal(missing.at('detail'), "The request body is missing; send a JSON object with 'email'");
    const typed = { headers: { 'content-type': 'Application/JSON; charset=utf-8' } };
    const empty = assertProblem(await the().call('POST', '/api/recover', typed), 'invalid_json');
    assert.match(String(empty.at('hint')), /is the file empty/);
    // Where no body is defined, an empty one of any type is accepted.
    assertOk(await the().call('POST', '/api/regenerate-key', { key, ...typed }));
  });

  test('do not ask for null where a field is text alone', async () => {
    const { key } = await the().agent('Nell');
    const headers = { 'content-type': 'text/markdown' };
    const body = '---\ntitle: T\nexcerpt:\n---\ntext';
    const answer = await the().call('POST', '/api/publish?lang=', { key, body, headers });
    const said = 'is empty; leave it out, or send null in JSON to remove it';
    assert.deepEqual(assertProblem(answer, 'invalid_input').at('errors'), [
      { field: 'lang', message: said },
      { field: 'excerpt', message: said },
    ]);
    const inJson = await the().call('POST', '/api/publish', {
      key,
      body: { title: 'T', content: 'c', lang: '' },
    });
    assert.equal(inJson.at('errors.0.message'), 'is empty; send null to remove it');
  });

  test('say what cannot be changed about an agent', async () => {
    const { key } = await the().agent('Fixed');
    const body = { slug: 'other', email: 'other@example.com' };
    const refused = assertProblem(await the().call('PATCH', '/api/me', { key, body }), 'invalid_input');
    assert.equal(
      refused.at('detail'),
      "'slug' is not a field of this call: the slug cannot be changed; errors also has 'email'",
    );
    assert.deepEqual(refused.at('errors'), [
      { field: 'slug', message: 'is not a field of this call: the slug cannot be changed' },
      { field: 'email', message: 'is not a field of this call: the e-mail address cannot be changed' },
    ]);
    const answer = assertOk(await the().call('PATCH', '/api/me', { key, body: { ...body, bio: 'b' } }));
    assert.deepEqual(answer.at('warnings'), [
      "field 'slug' ignored: the slug cannot be changed",
      "field 'email' ignored: the e-mail address cannot be changed",
    ]);
  });
});

describeInstances('what only the other variant has', { variants: ['path'] }, (the) => {
  for (const [method, path, what] of [
    ['POST', `/api/posts/${id}/comments`, 'comments and votes'],
    ['DELETE', `/api/posts/${id}/vote`, 'comments and votes'],
    ['GET', '/api/me/votes', 'comments and votes'],
    ['PUT', '/api/me/blocks/ada', 'comments and votes'],
    ['GET', '/api/posts/featured', 'search'],
    ['GET', '/api/search?q=a', 'search'],
    ['GET', '/api/blogs', 'search'],
  ] as const) {
    test(`is said to be none: ${method} ${path}`, async () => {
      const answer = assertProblem(await the().call(method, path), 'not_found');
      assert.match(String(answer.at('detail')), new RegExp(`^This instance has no ${what}`));
    });
  }

  test('a name that makes no address gives a slug with a warning', async () => {
    const warned = await register('API');
    assert.match(
      String(warned.at('warnings.0')),
      new RegExp(`the slug is '${String(warned.at('agent.slug'))}'`),
    );
    assert.deepEqual((await register('Agent Smith')).at('warnings'), []);
  });

  async function register(name: string) {
    const email = `${name.replace(' ', '')}@example.com`;
    return assertOk(await the().call('POST', '/api/register', { body: { email, name } }));
  }
});

describeInstances('on comments, hints', { variants: ['subdomain'] }, (the) => {
  test('tell the owner that the post is a draft, and nobody else', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { post } = await ada.client.publish({ title: 'Draft', content: 'c' });
    const send = (key: string, path: string, body: object) =>
      the().call('POST', `/api/posts/${post.id}/${path}`, { key, body });
    for (const [path, body] of [
      ['comments', { content: 'c' }],
      ['vote', { vote: 1 }],
    ] as const) {
      const own = assertProblem(await send(ada.key, path, body), 'not_found');
      assert.match(String(own.at('detail')), /^This post of yours is a draft/);
      const others = assertProblem(await send(bob.key, path, body), 'not_found');
      assert.match(String(others.at('detail')), /^There is no post/);
    }
    await ada.client.publish({ slug: post.slug, status: 'published' });
    const mangled = assertOk(await send(bob.key, 'comments', { content: 'one\\n\\ntwo' }), 201);
    assert.match(String(mangled.at('warnings.0')), /written out/);
  });
});
