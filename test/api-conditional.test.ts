import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('conditional calls', {}, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    for (const title of ['One', 'Two'])
      await ada.client.publish({ title, content: `about ${title}`, status: 'published' });
  });
  const read = (path: string, headers = {}) => the().call('GET', path, { key: ada.key, headers });

  test('a list answers 304 to its own ETag, which counts, and another after a change', async () => {
    const lists = [
      '/api/posts',
      '/api/posts?status=published&limit=1',
      ...(variant === 'subdomain'
        ? ['/api/posts?since=2020-01-01', '/api/blogs', '/api/posts/featured', '/api/search?q=about']
        : []),
    ];
    const tags = new Map<string, string>();
    for (const path of lists) {
      const first = assertOk(await read(path));
      const etag = String(first.headers['etag']);
      assert.match(etag, /^W\/"[\w-]{16}"$/);
      tags.set(path, etag);
      for (const known of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
        const fresh = await read(path, { 'if-none-match': known });
        assert.deepEqual([fresh.status, fresh.text], [304, ''], `${path} ${known}`);
        assert.equal(fresh.headers['etag'], etag);
        assert.equal(fresh.headers['content-type'], undefined);
        assert.equal(
          Number(fresh.headers['x-ratelimit-remaining']) < Number(first.headers['x-ratelimit-remaining']),
          true,
        );
      }
      assertOk(await read(path, { 'if-none-match': '"other"' }));
    }
    await ada.client.publish({ title: 'Three', content: 'about Three', status: 'published' });
    for (const [path, etag] of tags) assertOk(await read(path, { 'if-none-match': etag }));
  });

  test('a cursor belongs to the filters of its list', async () => {
    const own = assertOk(await read('/api/posts?status=published&limit=1'));
    const cursor = encodeURIComponent(String(own.at('nextCursor')));
    assertOk(await read(`/api/posts?status=published&limit=2&cursor=${cursor}`));
    assertProblem(await read(`/api/posts?status=draft&cursor=${cursor}`), 'invalid_input');
    assertProblem(await read(`/api/posts?cursor=${cursor}`), 'invalid_input');
    if (variant === 'path') return;
    const everyones = assertOk(await read('/api/posts?since=2020-01-01&limit=1'));
    const next = encodeURIComponent(String(everyones.at('nextCursor')));
    assertOk(await read(`/api/posts?since=2020-01-01T00:00:00Z&cursor=${next}`));
    assertProblem(await read(`/api/posts?since=2020-01-02&cursor=${next}`), 'invalid_input');
    assertProblem(await read(`/api/posts?agent=ada&cursor=${next}`), 'invalid_input');
  });

  test('markdown that cannot be read is refused in words that fit', async () => {
    const send = (body: string | Buffer, path = '/api/publish', method = 'POST') =>
      the().call(method, path, { key: ada.key, body, headers: { 'content-type': 'text/markdown' } });
    const latin = assertProblem(await send(Buffer.from('# Caf\xe9', 'latin1')), 'invalid_input');
    assert.match(String(latin.at('detail')), /not valid UTF-8/);
    assert.match(String(latin.at('hint')), /iconv/);
    for (const [path, body] of [
      ['/api/publish', ''],
      ['/api/posts', ''],
      ['/api/publish?title=T', ''],
      ['/api/publish', ' \n\t'],
      ['/api/publish', '\uFEFF\r\n'],
    ] as const) {
      const empty = assertProblem(await send(body, path), 'invalid_input');
      assert.match(String(empty.at('detail')), /The markdown body is empty/);
      assert.doesNotMatch(empty.text, /JSON object/);
    }
    const json = await the().call('POST', '/api/publish', { key: ada.key, body: Buffer.from([0x22, 0xff]) });
    assert.match(String(assertProblem(json, 'invalid_json').at('hint')), /UTF-8/);
    const patch = assertProblem(
      await the().call('PATCH', '/api/me', {
        key: ada.key,
        body: 'a=b',
        headers: { 'content-type': 'text/x' },
      }),
      'unsupported_media_type',
    );
    assert.equal(patch.headers['accept-patch'], 'application/json');
  });

  test('a token is exchanged without standing in an address, a recovery’s too', async () => {
    const email = 'eve@example.com';
    await the().call('POST', '/api/register', { body: { email, name: 'Eve', slug: 'eve' } });
    const exchange = async () =>
      the().call('POST', '/api/verify', { body: { token: await the().token(email) } });
    const first = assertOk(await exchange());
    assert.equal(first.headers['cache-control'], 'no-store');
    const again = assertOk(await exchange());
    assert.equal(again.at('apiKey'), first.at('apiKey'));
    const key = String(first.at('apiKey'));
    assertOk(await the().call('GET', '/api/me', { key }));
    await the().call('POST', '/api/recover', { body: { email } });
    const recovered = assertOk(await exchange());
    assert.match(String(recovered.at('message')), /old one no longer works/);
    assert.notEqual(recovered.at('apiKey'), key);
    const old = assertProblem(await the().call('GET', '/api/me', { key }), 'unauthorized');
    assert.match(String(old.headers['www-authenticate']), /error="invalid_token"$/);
    const none = assertProblem(await the().call('GET', '/api/me'), 'unauthorized');
    assert.equal(none.headers['www-authenticate'], 'Bearer realm="masthead"');
    assertProblem(await the().call('POST', '/api/verify', { body: { token: 'unknown' } }), 'invalid_token');
  });
});
