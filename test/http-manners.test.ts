import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { rawRequest } from './support/http.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('manners of HTTP', {}, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    await ada.client.publish({ title: 'One', content: 'x', status: 'published' });
  });

  test('an address refuses methods that it lacks, those of WebDAV too, and names those it has', async () => {
    for (const [path, allow] of [
      ['/', 'GET, HEAD, OPTIONS'],
      ['/docs', 'GET, HEAD, OPTIONS'],
      [new URL(ada.blogUrl).pathname, 'GET, HEAD, OPTIONS'],
      ['/healthz', 'GET, HEAD, OPTIONS'],
      ['/-/style.css', 'GET, HEAD, OPTIONS'],
      ['/-/style.01234567.css', 'GET, HEAD, OPTIONS'],
      ['/-/marks/ada.svg', 'GET, HEAD, OPTIONS'],
      ['/-/cards/ada.png', 'GET, HEAD, OPTIONS'],
      ['/-/sitemap.xml', 'GET, HEAD, OPTIONS'],
      ['/api/publish', 'OPTIONS, POST'],
      ['/api/me', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    ] as const) {
      for (const method of ['PROPFIND', 'LOCK', 'MKCOL', 'REPORT', 'TRACE']) {
        const answer = assertProblem(await the().call(method, path), 'method_not_allowed');
        assert.equal(answer.headers['allow'], allow, `${method} ${path}`);
        assert.ok(String(answer.at('detail')).includes(` ${method};`), String(answer.at('detail')));
      }
      const options = await the().call('OPTIONS', path);
      assert.deepEqual([options.status, options.headers['allow']], [204, allow], path);
    }
    for (const path of ['/api/nothing', '/-/nothing', '/-/marks/ada.png', '/-/', '/%61pi/me'])
      for (const method of ['PROPFIND', 'POST', ...(path.startsWith('/api') ? [] : ['OPTIONS'])])
        assertProblem(await the().call(method, path), 'not_found');
    const posted = await the().call('POST', '/-/style.css', { body: { name: 'x' } });
    assertProblem(posted, 'method_not_allowed');
    if (variant === 'subdomain') {
      const { host } = new URL(ada.blogUrl);
      assertProblem(await the().call('DELETE', '/-/style.css', { host }), 'method_not_allowed');
    }
    const withBody = await the().call('PROPFIND', '/api/me', { body: '<propfind/>' });
    assertProblem(withBody, 'method_not_allowed');
  });

  test('a method that nobody knows is 501', async () => {
    for (const path of ['/', '/api/me', '/nothing']) {
      const answer = assertProblem(await the().call('EVIL', path), 'not_implemented');
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
        assert.match(String(answer.at('hint')), new RegExp(`\\b${method}\\b`));
    }
  });

  test('an expectation that is not met is 417, with a body, at any address, and counts as a call there does', async () => {
    const ask = (method: string, path: string, more = '') =>
      rawRequest(
        the().port,
        `${method} ${path} HTTP/1.1\r\nHost: localhost:${the().port}\r\n${more}Connection: close\r\n\r\n`,
      );
    // Also of what is cached.
    const first = await ask('GET', '/docs', 'Accept: text/html\r\n');
    assert.equal(
      await ask('GET', '/docs', 'Accept: text/html\r\n').then((text) => text.slice(9, 12)),
      '200',
      first,
    );
    for (const [method, path] of [
      ['GET', '/api/limits'],
      ['GET', '/api/nothing'],
      ['GET', '/docs'],
      ['GET', '/healthz'],
      ['POST', '/api/publish'],
      ['POST', '/mcp'],
    ] as const) {
      const body = method === 'POST' ? 'Content-Length: 5\r\n' : '';
      const answer = await ask(method, path, `Accept: text/html\r\nExpect: 200-ok\r\n${body}`);
      assert.match(answer, /^HTTP\/1\.1 417 [^]*application\/problem\+json[^]*"status":417/, path);
      assert.match(answer, /"code":"expectation_failed"[^]*"hint":"Leave the header Expect out\."/);
    }
    const left = async (more: string) =>
      Number(/"anonymous";r=(\d+)/.exec(await ask('GET', '/api/nothing', more))?.[1]);
    const atFirst = await left('');
    assert.deepEqual([await left('Expect: 200-ok\r\n'), await left('')], [atFirst - 1, atFirst - 2]);
  });

  test('401 names the error where a key was sent, and not where none was', async () => {
    const without = assertProblem(await the().call('GET', '/api/me'), 'unauthorized');
    assert.doesNotMatch(String(without.headers['www-authenticate']), /error/);
    const wrong = assertProblem(await the().call('GET', '/api/me', { key: 'wrong' }), 'unauthorized');
    assert.match(String(wrong.headers['www-authenticate']), /error="invalid_token"/);
  });

  test('of a field that is sent twice the last counts, with a warning', async () => {
    const send = async (body: string) => the().call('POST', '/api/publish', { key: ada.key, body });
    const answer = assertOk(
      await send('{"title":"a","content":"c","t\\u0069tle" : "Last","tags":["title","title"]}'),
      201,
    );
    assert.equal(answer.at('post.title'), 'Last');
    assert.deepEqual(answer.at('warningCodes'), ['repeated_field']);
    assert.match(String(answer.at('warnings.0')), /'title'.*last/);
    const once = await send('{"title":"Other","content":"\\"title\\": \\\\","excerpt":"{\\"title\\":1}"}');
    assert.deepEqual(assertOk(once, 201).at('warnings'), []);
    const key = `{"${ada.key}":1,"${ada.key}":2,"title":"With a key","content":"c"}`;
    assert.ok(!(await send(key)).text.includes(ada.key));
    const refused = assertProblem(await send('{"title":"a","title":""}'), 'invalid_input');
    assert.match(String(refused.at('hint')), /'title' was sent more than once/);
  });

  if (variant === 'subdomain')
    test('a list of comments answers 304 to its own ETag, and another after a change', async () => {
      const { post } = await ada.client.publish({ title: 'Two', content: 'x', status: 'published' });
      for (const path of [`/api/posts/${post.id}/comments`, `/api/posts/${post.id}/comments?limit=5`]) {
        const read = async (etag: string) => the().call('GET', path, { headers: { 'if-none-match': etag } });
        const etag = String(assertOk(await read('"x"')).headers['etag']);
        assert.match(etag, /^W\/"[\w-]{16}"$/);
        assert.equal((await read(etag)).status, 304);
        await ada.client.addComment(post.id, `On ${path}`);
        assertOk(await read(etag));
      }
    });
});
