import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { aloneText, aloneTexts } from '../src/http/compress.ts';
import { html, trusted } from '../src/web/markup.ts';
import {
  assertOk,
  describeInstances,
  startInstance,
  type CallOptions,
  type Instance,
  type TestAgent,
} from './support/instance.ts';

type Sent = CallOptions & { readonly method?: string };

/** The answer to a call that takes these encodings. */
async function take(instance: Instance, path: string, accept: string, sent: Sent = {}) {
  const { method = 'GET', headers, ...options } = sent;
  const all = { ...headers, 'accept-encoding': accept };
  const answer = await instance.call(method, path, { ...options, headers: all });
  return { ...answer, encoding: answer.headers['content-encoding'] };
}

describeInstances('compressed answers', {}, (the, variant) => {
  let ada: TestAgent;
  let id = '';
  before(async () => {
    ada = await the().agent('Ada');
    for (let n = 0; n < 60; n++) {
      const { post } = await ada.client.publish({
        title: `Post ${n}`,
        content: `about ${n} `.repeat(200),
        excerpt: 'x'.repeat(250),
        status: 'published',
      });
      id = post.id;
    }
  });

  test('read as those that are not, in every encoding and on every call', async () => {
    const open = ['/api/openapi.json', `/api/posts/${id}`, '/api/nothing', '/api', '/api/limits'];
    const keyed = ['/api/posts', '/api/me/posts?view=brief', '/api/posts?limit=many', '/api/me'];
    const social = [
      '/api/posts?since=2020-01-01',
      '/api/blogs',
      '/api/posts/featured',
      '/api/search?q=about',
    ];
    const calls = [
      ...[...open, ...(variant === 'subdomain' ? social : [])].map((path) => [path, {}] as const),
      ...keyed.map((path) => [path, { key: ada.key }] as const),
    ];
    let compressed = 0;
    for (const [path, options] of calls) {
      for (const accept of ['zstd', 'gzip', 'br, gzip', 'br', '*', 'identity', 'gzip;q=0, zstd;q=0.1']) {
        const plain = await take(the(), path, '', options);
        const answer = await take(the(), path, accept, options);
        const ids = /"(?:requestId|reset|remaining)":[^,}]+/g;
        assert.equal(answer.text.replaceAll(ids, ''), plain.text.replaceAll(ids, ''), `${path} ${accept}`);
        assert.match(String(answer.headers['vary']), /Accept-Encoding/);
        if (plain.bytes.length < 1024 || accept === 'identity')
          assert.equal(answer.encoding, undefined, path);
        if (answer.encoding === undefined) continue;
        compressed++;
        assert.ok(answer.bytes.length < plain.bytes.length);
        assert.ok(accept === '*' || accept.includes(answer.encoding), `${path} ${accept}`);
        assert.equal(answer.headers['content-length'], String(answer.bytes.length));
        if (answer.headers['etag'] !== undefined) assert.match(answer.headers['etag'], /^W\//);
      }
    }
    assert.ok(compressed > 20, String(compressed));
  });

  test('are in the first encoding for one caller, and in any of pages where they are shared', async () => {
    const own = await take(the(), '/api/posts', 'br, gzip, zstd', { key: ada.key });
    assert.equal(own.encoding, 'zstd');
    assert.equal((await take(the(), '/api/posts', 'br, gzip', { key: ada.key })).encoding, 'gzip');
    assert.equal((await take(the(), '/api/posts', 'br', { key: ada.key })).encoding, undefined);
    assert.equal((await take(the(), '/api/openapi.json', 'br, gzip')).encoding, 'br');
    if (variant === 'subdomain')
      for (const accept of ['br', 'zstd', 'gzip', 'br'])
        assert.equal((await take(the(), '/api/posts', accept)).encoding, accept);
  });

  test('have an ETag that is answered with 304 and accepted for a change', async () => {
    const path = `/api/posts/${id}`;
    const first = await take(the(), path, 'gzip', { key: ada.key });
    const etag = String(first.headers['etag']);
    const again = await take(the(), path, 'zstd', { key: ada.key, headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, again.text, again.encoding], [304, '', undefined]);
    assert.match(String(again.headers['vary']), /Accept-Encoding/);
    const { post } = await ada.client.updatePost(id, { title: 'Changed' }, { ifMatch: etag });
    assert.equal(post.title, 'Changed');
    const fresh = await take(the(), path, 'gzip', { key: ada.key });
    assert.equal(JSON.parse(fresh.text).post.title, 'Changed');
  });

  test('are those to writes too, whose ETag is accepted for the next', async () => {
    const tags = Array.from({ length: 10 }, (_, n) => `${n}${'t'.repeat(39)}`);
    const send = (method: string, path: string, body: object, more: Record<string, string> = {}) =>
      the().call(method, path, { key: ada.key, body, headers: { 'accept-encoding': 'gzip', ...more } });
    const text = { title: 'Written', content: 'c', excerpt: 'x'.repeat(300), tags };
    const created = assertOk(await send('POST', '/api/publish', text), 201);
    const etag = String(created.headers['etag']);
    const path = `/api/posts/${String(created.at('post.id'))}`;
    const changed = assertOk(await send('PATCH', path, { append: 'More.' }, { 'if-match': etag }));
    for (const answer of [created, changed]) {
      assert.equal(answer.headers['content-encoding'], 'gzip');
      assert.match(String(answer.headers['etag']), /^W\//);
      assert.deepEqual(answer.at('post.tags'), tags);
    }
  });

  test('to the change of a word in 200 KB are as short as the call: 1 KiB', async () => {
    const lines = Array.from(
      { length: 2_500 },
      (_, n) => `Line ${n}: the gauge at the pier, ${n * 7919} mm of water, and a wind from the north.`,
    );
    const content = lines.join('\n\n');
    assert.ok(content.length > 200_000);
    const { post } = await ada.client.publish({ title: 'Long', content, status: 'published' });
    const body = JSON.stringify({ edits: [{ old: 'Line 1200: the', new: 'Line 1200: our' }] });
    const json = { 'content-type': 'application/json' };
    const sent = { method: 'PATCH', key: ada.key, body, headers: json } as const;
    const answer = await take(the(), `/api/posts/${post.id}`, 'gzip', sent);
    assert.equal(answer.encoding, 'gzip');
    assert.match(String(answer.at('diff')), /^\+Line 1200: our/m);
    assert.ok(body.length <= 1024 && Number(answer.headers['content-length']) <= 1024, answer.text);
  });

  test('HEAD has the headers of GET', async () => {
    const path = `/api/posts/${id}`;
    const get = await take(the(), path, 'gzip');
    const head = await the().call('HEAD', path, { headers: { 'accept-encoding': 'gzip' } });
    for (const name of ['content-encoding', 'content-length', 'etag', 'vary'])
      assert.equal(head.headers[name], get.headers[name], name);
  });

  test('never hold a key', async () => {
    // Warnings make them long enough.
    const long = Array.from({ length: 30 }, (_, n) => `unknown-parameter-number-${n}=x`).join('&');
    const { key } = await the().agent('Eve');
    const post = { method: 'POST' } as const;
    const regenerated = await take(the(), `/api/regenerate-key?${long}`, 'gzip', { ...post, key });
    assert.equal(regenerated.status, 200);
    const slug = variant === 'subdomain' ? { slug: 'zoe' } : {};
    await the().call('POST', '/api/register', { body: { email: 'zoe@example.com', name: 'Zoe', ...slug } });
    const token = await the().token('zoe@example.com');
    const verified = await take(the(), `/api/verify?token=${token}&${long}`, 'gzip');
    assert.equal(verified.status, 200);
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'verify', arguments: { token } },
    };
    const tool = await take(the(), '/mcp', 'gzip', { ...post, body: message });
    assert.ok(tool.text.includes('apiKey') && tool.encoding === undefined);
    const upload = { name: 'upload_media', arguments: { type: 'image/png', alt: 'words '.repeat(150) } };
    const { key: other } = await the().agent('Una');
    const linked = await take(the(), '/mcp', 'gzip', {
      ...post,
      key: other,
      body: { ...message, params: upload },
    });
    assert.ok(linked.text.includes('/api/media/upload/') && linked.bytes.length > 1024, linked.text);
    assert.equal(linked.encoding, undefined);
    for (const answer of [regenerated, verified]) {
      assert.ok(answer.text.includes('apiKey'), answer.text);
      assert.ok(answer.bytes.length > 1024, String(answer.bytes.length));
      assert.equal(answer.encoding, undefined);
    }
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await take(the(), '/mcp', 'gzip', { ...post, body: list })).encoding, 'gzip');
  });
});

test('COMPRESS_API=off leaves answers of calls as they are, and pages compressed', async () => {
  const site = await startInstance({ env: { COMPRESS_API: 'off' } });
  try {
    const answer = await take(site, '/api/openapi.json', 'gzip');
    assert.deepEqual([answer.encoding, answer.headers['vary']], [undefined, undefined]);
    assert.equal((await take(site, '/docs', 'gzip')).encoding, 'gzip');
  } finally {
    await site.close();
  }
});

test('texts are in UTF-8, alone in their memory, whatever they hold and however long they are', () => {
  const [half, other] = ['\ud83d', '\ude00'];
  const each = ['', 'a', 'é', 'a…', '狐', '😀', `a${half}`, `${other}b`];
  const texts = each.flatMap((text) => [text, text.repeat(20_000), `${'-'.repeat(40_000)}${text}`]);
  for (const text of texts) {
    const bytes = aloneText(text);
    assert.ok(bytes.equals(Buffer.from(text)), `${text.slice(0, 9)}, ${text.length}`);
    assert.equal(bytes.buffer.byteLength, bytes.length);
  }
  assert.ok(aloneTexts(texts).equals(Buffer.concat(texts.map((text) => Buffer.from(text)))));
});

test('a long text is a piece by itself in what templates make of it', () => {
  const text = 'long '.repeat(1_000);
  const [long, short] = [trusted(text), html`<i>${2}</i>`];
  const inner = html`<b>${'<'}${long}${long}</b>`;
  const page = html`<b>${inner}${[1, short]}</b>`;
  const pieces = ['<b><b>&lt;', text, '', text, '</b>1<i>2</i></b>'];
  assert.deepEqual(page.pieces(), pieces);
  const whole = pieces.join('');
  assert.ok(String(page) === whole);
  assert.ok(String(html`<b>${[page, page]}</b>`) === `<b>${whole}${whole}</b>`);
});
