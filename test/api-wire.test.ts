import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { rawRequest } from './support/http.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('hosts', { env: { ALSO_HOSTS: 'alias.example' } }, (the, variant) => {
  const get = (host: string, path = '/api/limits') => the().call('GET', path, { host });

  test('the base has its loopback names, and ALSO_HOSTS adds more', async () => {
    const { port } = the();
    for (const host of [
      `localhost:${port}`,
      `127.0.0.1:${port}`,
      `[::1]:${port}`,
      `LOCALHOST.:${port}`,
      'alias.example',
    ])
      assertOk(await get(host));
  });

  test('any other is 421 and named beside the one expected', async () => {
    const { port } = the();
    for (const host of [
      'example.com',
      'localhost',
      `localhost:${port + 1}`,
      `a.b.localhost:${port}`,
      `xn--a.localhost:${port}`,
    ]) {
      const answer = assertProblem(await get(host), 'misdirected');
      assert.ok(
        String(answer.at('detail')).includes(`'${host}'`) &&
          String(answer.at('detail')).includes(`'localhost:${port}'`),
      );
      assert.match(String(answer.at('hint')), /does your proxy pass Host on\?/);
      assertOk(await get(host, '/healthz'));
      assertOk(await get(host, '/readyz?probe=1'));
    }
  });

  test('a page below one of ALSO_HOSTS redirects to where it is now, and the API does not', async () => {
    const { port } = the();
    const ada = await the().agent('Moved');
    const { post } = await ada.client.publish({ title: 'Kept', content: 'c', status: 'published' });
    const page = (path: string) =>
      the().call('GET', path, { host: 'moved.alias.example', headers: { accept: 'text/html' } });
    const now = variant === 'subdomain' ? `http://moved.localhost:${port}` : `http://localhost:${port}/moved`;
    for (const [path, url] of [
      ['/kept?x=1', `${post.url}?x=1`],
      ['/', now],
      ['/feed.xml', `${now}/feed.xml`],
      ['/kept.md', `${post.url}.md`],
    ] as const) {
      const answer = await page(path);
      assert.deepEqual([answer.status, answer.headers['location']], [301, url]);
    }
    const api = assertProblem(await get('moved.alias.example'), 'misdirected');
    assert.match(String(api.at('detail')), new RegExp(`call http://localhost:${port}/api/limits`));
    assert.equal((await the().call('GET', '/', { host: 'nobody.alias.example' })).status, 404);
  });

  test('a malformed, missing or doubled one is 400', async () => {
    const { port } = the();
    for (const host of ['a b', 'a/b', 'a@b', '[::1', 'x'.repeat(300), `localhost:${port},localhost:${port}`])
      assertProblem(await get(host), 'invalid_input');
    for (const hosts of ['', `Host: localhost:${port}\r\nhost: localhost:${port}\r\n`]) {
      const answer = await rawRequest(port, `GET /api/limits HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_input"/s);
    }
  });

  test('an empty one is 400 for a page that is kept, too', async () => {
    const { port, baseUrl } = the();
    const page = { headers: { accept: 'text/html' } };
    for (let i = 0; i < 2; i++)
      assert.equal((await the().call('GET', '/', { host: new URL(baseUrl).host, ...page })).status, 200);
    const answer = await rawRequest(port, 'GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 400 /);
  });

  test('what is neither a path nor an http address is 400 and leads nowhere', async () => {
    const { port } = the();
    for (const line of [
      'GET evil://foo/bar/',
      'GET ftp://foo//',
      'HEAD evil://foo/api/limits',
      'POST evil://foo/healthz',
      'GET *',
      'OPTIONS evil://foo/',
    ]) {
      const answer = await rawRequest(
        port,
        `${line} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 400 /, line);
      assert.doesNotMatch(answer, /^location:/im, line);
    }
  });

  test('an absolute address counts by its own host', async () => {
    const { port } = the();
    const ask = (address: string) =>
      rawRequest(port, `GET ${address} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`);
    assert.match(
      await ask(`http://localhost:${port}/api/limits`),
      /^HTTP\/1\.1 200 .*access-control-allow-origin/s,
    );
    assert.match(await ask('http://example.com/api/limits'), /^HTTP\/1\.1 421 /);
  });

  test('the API is not at a blog’s address', async () => {
    const answer = await get(`ada.localhost:${the().port}`, '/api/posts?x=1');
    assertProblem(answer, 'misdirected');
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    const preflight = await the().call('OPTIONS', '/api/posts', { host: 'elsewhere.example' });
    assert.equal(preflight.status, 204);
    if (variant === 'subdomain') assert.ok(answer.text.includes(`${the().baseUrl}/api/posts?x=1`));
  });

  test('the API answers with and without a slash too many, and never redirects', async () => {
    for (const path of ['/api/limits/', '//api/limits', '///api//limits//', '/api/limits/?x=1'])
      assertOk(await get(`localhost:${the().port}`, path));
    for (const path of ['/API/limits', '//Api', '/MCP'])
      assert.equal((await get(`localhost:${the().port}`, path)).status, 404, path);
  });

  test('the internal prefix of pages cannot be asked for', async () => {
    await the().agent('Ada');
    for (const path of ['/~/ada/', '/%7E/ada/', '/%7e/ada', '//~/ada/', '/-/../~/ada/'])
      assert.equal((await get(`localhost:${the().port}`, path)).status, 404, path);
  });
});

describeInstances('every answer of the API', { once: true }, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });

  test('has a request id of its own, is open to any origin and not indexed', async () => {
    const ids = new Set();
    for (const [method, path, body] of [
      ['GET', '/api/limits', undefined],
      ['GET', '/api/nothing', undefined],
      ['GET', '/api/posts/%zz', undefined],
      ['POST', '/api/publish', '{'],
      ['PUT', '/api/publish', undefined],
      ['GET', '/api/me', undefined],
    ] as const) {
      const answer = await the().call(method, path, {
        ...(body ? { body } : {}),
        headers: { 'x-request-id': 'mine', origin: 'https://a.example' },
      });
      ids.add(answer.headers['x-request-id']);
      assert.equal(answer.headers['access-control-allow-origin'], '*', path);
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
      assert.equal(answer.headers['x-robots-tag'], 'noindex');
      const exposed = String(answer.headers['access-control-expose-headers']).toLowerCase().split(', ');
      for (const name of [
        'idempotent-replayed',
        'ratelimit',
        'ratelimit-policy',
        'retry-after',
        'etag',
        'link',
        'location',
        'x-request-id',
        'x-ratelimit-limit',
      ])
        assert.ok(exposed.includes(name), name);
    }
    assert.equal(ids.size, 6);
    assert.ok(!ids.has('mine'));
  });

  test('to a preflight allows every method and header', async () => {
    for (const path of ['/api/publish', '/api/posts/x', '/api/nothing']) {
      const answer = await the().call('OPTIONS', path, {
        headers: {
          origin: 'https://a.example',
          'access-control-request-method': 'DELETE',
          'access-control-request-headers': 'authorization, x-anything',
        },
      });
      assert.deepEqual([answer.status, answer.text], [204, '']);
      assert.equal(answer.headers['access-control-allow-headers'], 'authorization, x-anything');
      for (const method of ['GET', 'POST', 'PATCH', 'DELETE'])
        assert.ok(answer.headers['access-control-allow-methods']?.includes(method));
    }
  });

  test('to a wrong method is 405 with those that there are', async () => {
    for (const [method, path, allow] of [
      ['GET', '/api/publish', 'OPTIONS, POST'],
      ['DELETE', '/api/register', 'OPTIONS, POST'],
      ['PUT', '/api/verify', 'GET, HEAD, OPTIONS, POST'],
      ['PUT', '/api/posts/x', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
      ['PATCH', '/api/posts', 'GET, HEAD, OPTIONS, POST'],
      ['TRACE', '/api/me', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
      ['POST', '/healthz', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const answer = assertProblem(await the().call(method, path, { key: ada.key }), 'method_not_allowed');
      assert.equal(answer.headers['allow'], allow);
    }
    for (const [path, allow] of [
      ['/', 'GET, HEAD, OPTIONS'],
      ['/llms.txt', 'GET, HEAD, OPTIONS'],
      ['/verify', 'GET, HEAD, OPTIONS, POST'],
      [ada.blogUrl.replace(the().baseUrl, ''), 'GET, HEAD, OPTIONS'],
    ] as const) {
      const { host } = new URL(path, the().baseUrl);
      const { pathname } = new URL(path, the().baseUrl);
      const answer = await the().call('OPTIONS', pathname, { host });
      assert.deepEqual([answer.status, answer.text, answer.headers['allow']], [204, '', allow], path);
    }
    assertProblem(await the().call('QUERY', '/api/posts'), 'method_not_allowed');
  });

  test('says private with a key and no-store when it failed', async () => {
    const cache = async (path: string, key?: string) =>
      (await the().call('GET', path, key === undefined ? {} : { key })).headers['cache-control'];
    assert.equal(await cache('/api/limits'), 'no-cache');
    assert.equal(await cache('/api/limits', ada.key), 'private, no-cache');
    assert.equal(await cache('/api/nothing', ada.key), 'no-store');
  });

  test('to the probes says how the process is', async (t) => {
    assert.deepEqual((await the().call('GET', '/healthz')).json(), { success: true, status: 'ok' });
    assert.deepEqual((await the().call('GET', '/readyz')).json(), {
      success: true,
      state: 'ready',
      writable: true,
    });
    const head = await the().call('HEAD', '/readyz');
    assert.deepEqual([head.status, head.text], [200, '']);
    const { mock } = t.mock.method(the().ctx().engine, 'probe', () => Promise.reject(new Error('damaged')));
    const broken = await the().call('GET', '/readyz');
    assert.deepEqual([broken.status, broken.at('success')], [503, false]);
    mock.restore();
  });
});

describeInstances('bodies', { once: true }, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  const send = (path: string, body: string | Uint8Array, headers: Record<string, string>) =>
    the().call('POST', path, { key: ada.key, body, headers });

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/xml',
    'application/json; charset=utf-16',
    'nonsense',
    'application/jsonp',
  ]) {
    test(`of the type ${type} are refused`, async () => {
      assertProblem(
        await send('/api/publish', '{"title":"T","content":"c"}', { 'content-type': type }),
        'unsupported_media_type',
      );
    });
  }

  test('without a type, compressed or not in UTF-8 are refused', async () => {
    assertProblem(await send('/api/publish', '{}', { 'content-type': '' }), 'unsupported_media_type');
    const json = { 'content-type': 'application/json' };
    assertProblem(
      await send('/api/publish', '{}', { ...json, 'content-encoding': 'gzip' }),
      'unsupported_media_type',
    );
    assertProblem(await send('/api/publish', new Uint8Array([0x22, 0xff, 0x22]), json), 'invalid_json');
    assertOk(
      await send('/api/publish', '{"title":"T","content":"c"}', {
        'content-type': 'APPLICATION/JSON; charset="UTF-8"',
      }),
      201,
    );
  });

  test('that no call defines may be empty, of any type', async () => {
    for (const type of [
      'text/plain',
      'application/json',
      'application/x-www-form-urlencoded',
      'image/png',
      'nonsense',
    ]) {
      const answer = assertOk(await send('/api/regenerate-key', '', { 'content-type': type }));
      ada = { ...ada, key: String(answer.at('apiKey')) };
    }
    const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    ada = { ...ada, key: String(assertOk(await send('/api/regenerate-key', '', encoded)).at('apiKey')) };
  });

  test('that no call defines are ignored, and their fields named', async () => {
    const { key } = await the().agent('Zoe');
    const answer = await the().call('POST', '/api/regenerate-key', { key, body: { slug: 'zoe' } });
    assert.deepEqual(assertOk(answer).at('warnings'), ["unknown field 'slug' ignored"]);
  });

  test('are at most 64 KiB, and 4 MiB where content is', async () => {
    const json = { 'content-type': 'application/json' };
    assertProblem(await send('/api/recover', ' '.repeat(64 * 1024 + 1), json), 'too_large');
    assertOk(await send('/api/recover', `{"email":"a@example.com"}${' '.repeat(64 * 1024 - 25)}`, json));
    const escaped = '\\u0061'.repeat(512 * 1024);
    assertOk(await send('/api/publish', `{"title":"Escaped","content":"${escaped}"}`, json), 201);
  });

  test('an upload that breaks off is no error of ours', async () => {
    const logged = the().log().length;
    await rawRequest(
      the().port,
      `POST /api/register HTTP/1.1\r\nHost: localhost:${the().port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a"`,
      50,
    );
    assertOk(await the().call('GET', '/api/limits'));
    assert.doesNotMatch(the().log().slice(logged), /not foreseen/);
  });
});
