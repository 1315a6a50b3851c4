import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { rawRequest } from './support/http.ts';
import { startInstance, type Instance } from './support/instance.ts';

const close = 'Connection: close\r\n\r\n';
/** A call with a body, framed as it says; `HOST` stands for ours. */
const post = (framing: string, body = '') =>
  `POST /api/recover HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n${framing}${close}${body}`;
const get = (more: string, target = '/healthz') => `GET ${target} HTTP/1.1\r\nHost: HOST\r\n${more}${close}`;
const json = '{"email":"a@example.com"}';
const chunk = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`;

/** Requests by what they try, and the status that RFC 9110 and 9112 ask for or allow. */
const requests: Readonly<Record<string, readonly [request: string, status: RegExp]>> = {
  // Framing of the message (RFC 9112, sections 6 and 7)
  'a body of the length stated': [post(`Content-Length: ${json.length}\r\n`, json), /200/],
  'a body in chunks': [post('Transfer-Encoding: chunked\r\n', chunk), /200/],
  'a chunk with an extension': [
    post('Transfer-Encoding: chunked\r\n', chunk.replace('\r\n', ';a=b\r\n')),
    /200/,
  ],
  'chunks with trailers': [
    post('Transfer-Encoding: chunked\r\n', chunk.replace('0\r\n', '0\r\nA: b\r\n')),
    /200/,
  ],
  'both framings at once': [post(`Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`, chunk), /400/],
  'two different lengths': [post(`Content-Length: ${json.length}\r\nContent-Length: 3\r\n`, json), /400/],
  'a length that is a list': [post(`Content-Length: ${json.length}, 3\r\n`, json), /400/],
  'a length below zero': [post('Content-Length: -1\r\n', json), /400/],
  'a length with a sign': [post(`Content-Length: +${json.length}\r\n`, json), /400/],
  'a length in another base': [post('Content-Length: 0x19\r\n', json), /400/],
  'a length beyond any number': [post('Content-Length: 99999999999999999999\r\n', json), /400|413/],
  'chunked not as the last coding': [post('Transfer-Encoding: chunked, gzip\r\n', chunk), /400|501/],
  ...Object.fromEntries(
    ['gzip, chunked', 'identity, chunked', 'gzip\r\nTransfer-Encoding: chunked'].map((codings) => [
      `chunks of a body in codings (${JSON.stringify(codings)})`,
      [post(`Transfer-Encoding: ${codings}\r\n`, chunk), /415[^]*of Transfer-Encoding only chunked/],
    ]),
  ),
  'chunks, with a capital': [post('Transfer-Encoding: Chunked\r\n', chunk), /200/],
  'a coding that nobody knows': [post('Transfer-Encoding: evil\r\n', chunk), /400|501/],
  'chunked twice': [post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', chunk), /400/],
  'a chunk of no hexadecimal size': [post('Transfer-Encoding: chunked\r\n', `xyz\r\n${chunk}`), /400/],
  'a chunk longer than stated': [post('Transfer-Encoding: chunked\r\n', `3\r\n${json}\r\n0\r\n\r\n`), /400/],
  // Lines and fields (RFC 9112, sections 2 and 5)
  'a space before the colon': [get('A : b\r\n'), /400/],
  'a folded line': [get('A: b\r\n c\r\n'), /400/],
  'a field before which there is a space': [`GET / HTTP/1.1\r\n Host: HOST\r\n${close}`, /400/],
  'NUL in a value': [get('A: b\0c\r\n'), /400/],
  'CR alone in a value': [get('A: b\rc\r\n'), /400/],
  'an empty name': [get(': b\r\n'), /400/],
  'a name that is no token': [get('A(b): c\r\n'), /400/],
  'a field without a colon': [get('A\r\n'), /400/],
  'bytes beyond ASCII in a value': [get('A: \xe4\r\n'), /200/],
  'headers of 64 KiB': [get(`A: ${'b'.repeat(65_536)}\r\n`), /431[^]*may have 32768 bytes/],
  'an address of 64 KiB': [get('', `/${'b'.repeat(65_536)}`), /431[^]*body of a call, not in its/],
  // Request line and host (RFC 9112, section 3)
  ...Object.fromEntries(
    ['/', '/healthz', '/readyz?x', '/api/limits', 'http://HOST/healthz', 'http://HOST/'].flatMap((target) => [
      [`no host for ${target}`, [`GET ${target} HTTP/1.1\r\n${close}`, /400/]],
      [`two hosts for ${target}`, [`GET ${target} HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n${close}`, /400/]],
      [`a host that is none for ${target}`, [`GET ${target} HTTP/1.1\r\nHost: a b\r\n${close}`, /400/]],
      [`an empty host for ${target}`, [`GET ${target} HTTP/1.1\r\nHost:\r\n${close}`, /400/]],
    ]),
  ),
  'no version': [`GET /\r\nHost: HOST\r\n${close}`, /400|505/],
  ...Object.fromEntries(
    ['0.9', '1.2', '2.0', '3.0', '9.9', '10.1'].flatMap((version) =>
      ['/', '/healthz', '/api/limits'].map((path) => [
        `HTTP/${version} for ${path}`,
        [`GET ${path} HTTP/${version}\r\nHost: HOST\r\n${close}`, /505/],
      ]),
    ),
  ),
  'a method in lower case': [`get /healthz HTTP/1.1\r\nHost: HOST\r\n${close}`, /400|501/],
  'a method that nobody knows': [`EVIL / HTTP/1.1\r\nHost: HOST\r\n${close}`, /501/],
  'two spaces in the request line': [`GET  / HTTP/1.1\r\nHost: HOST\r\n${close}`, /200|400/],
  'a tab in the request line': [`GET\t/ HTTP/1.1\r\nHost: HOST\r\n${close}`, /400/],
  'an empty line before it': [`\r\n${get('')}`, /200/],
  TRACE: [`TRACE / HTTP/1.1\r\nHost: HOST\r\nCookie: secret\r\n${close}`, /405/],
  'an address of another scheme': [get('', 'ftp://HOST/'), /400/],
  'HTTP/1.0': [`GET /healthz HTTP/1.0\r\nHost: HOST\r\n\r\n`, /200/],
  'HTTP/1.0 and no host': [`GET /healthz HTTP/1.0\r\n\r\n`, /200/],
  'HTTP/1.0 and no host, where one is needed': [`GET / HTTP/1.0\r\n\r\n`, /400/],
  'HTTP/1.0 and a host for any probe': [`GET /readyz HTTP/1.0\r\nHost: elsewhere.example\r\n\r\n`, /200/],
  // What a client asks for beside (RFC 9110, sections 7.8, 10.1 and 14)
  'an upgrade': [
    get('Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n').replace('close', 'close, upgrade'),
    /200/,
  ],
  'an expectation that nobody knows': [get('Expect: 200-evil\r\n'), /417/],
  'parts of a page': [get('Range: bytes=0-1\r\n', '/robots.txt'), /200/],
  HTTP2: ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /505/],
  TLS: ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(60, '\0'), /400/],
};

describe('a request on the wire', () => {
  let site: Instance;
  before(async () => {
    site = await startInstance();
  });
  after(() => site.close());

  for (const [what, [request, expected]] of Object.entries(requests)) {
    test(`with ${what} is answered ${expected.source.replaceAll('|', ' or ')}, once`, async () => {
      const answer = await rawRequest(site.port, request.replaceAll('HOST', `localhost:${site.port}`));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 (?:${expected.source}) `));
      assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, answer);
      assert.doesNotMatch(answer, /secret/);
      assert.match(answer, /^x-content-type-options: nosniff\r$/im);
      if (/^HTTP\/1\.1 [45]/.test(answer)) assert.match(answer, /"requestId":|<!doctype html>/);
    });
  }

  for (const [what, path, status] of [
    ['moved', '/docs/', 301],
    ['unchanged', '/robots.txt', 304],
    ['for no host of ours', '/api/limits', 421],
    ['for a preflight', '/api/posts', 204],
    ['for MCP', '/mcp', 405],
  ] as const) {
    test(`whose answer is ${status}, ${what}, is not to be taken for another type`, async () => {
      const etag = (await site.call('GET', '/robots.txt')).headers.etag ?? '';
      const { headers, ...answer } = await site.call(status === 204 ? 'OPTIONS' : 'GET', path, {
        ...(status === 421 ? { host: 'elsewhere.example' } : {}),
        headers: { 'if-none-match': etag },
      });
      assert.equal(answer.status, status);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    });
  }

  for (const path of ['/api/search?q=café', '/api/search?q=two words', '/api/search?q=a\tb', '/ada/日本'])
    test(`whose address is '${path}' is told to escape it`, async () => {
      const head = `GET ${path} HTTP/1.1\r\nHost: localhost:${site.port}\r\n\r\n`;
      const answer = await rawRequest(site.port, head);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.match(answer, /"field":"url".*Percent-encode it/);
    });

  test('is followed by the next on its connection, where it was whole', async () => {
    const head = `GET /healthz HTTP/1.1\r\nHost: localhost:${site.port}\r\n`;
    const answer = await rawRequest(site.port, `${head}\r\n${head}\r\n${head}${close}`);
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 3);
  });

  test('with 100-continue is told to go on before its body', async () => {
    const request = post(`Content-Length: ${json.length}\r\nExpect: 100-continue\r\n`, json);
    const answer = await rawRequest(site.port, request.replaceAll('HOST', `localhost:${site.port}`));
    assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  for (const [what, path, mebibytes, headers, status] of [
    ['is too large', '/api/recover', 48, ['Content-Type: application/json'], 413],
    [
      'is too large, closing',
      '/api/recover',
      8,
      ['Content-Type: application/json', 'Connection: close'],
      413,
    ],
    ['lacks a key, closing', '/api/publish', 8, ['Content-Type: application/json', 'Connection: close'], 401],
    ['goes nowhere, closing', '/api/nothing', 8, ['Connection: close'], 404],
    ['goes to what takes none, closing', '/healthz', 8, ['Connection: close'], 405],
    ['is too large for MCP', '/mcp', 8, ['Content-Type: application/json'], 413],
  ] as const) {
    test(`whose body ${what}, is read on, so that a client that only sends at first sees ${status}`, async () => {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost:${site.port}\r\n${headers.join('\r\n')}`;
      const answer = await sendThenRead(site.port, head, mebibytes);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1);
    });
  }

  test('is read no further than 64 MiB after its answer', async () => {
    const head = `POST /api/recover HTTP/1.1\r\nHost: localhost:${site.port}\r\nContent-Type: application/json`;
    await assert.rejects(sendThenRead(site.port, head, 200), { code: /^(?:ECONNRESET|EPIPE)$/ });
  });

  test('that is answered before its body, and then breaks it, gets no second answer', async () => {
    const head = `POST /api/publish HTTP/1.1\r\nHost: localhost:${site.port}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const socket = connect(site.port, '127.0.0.1').setEncoding('latin1');
    socket.write(head);
    let answer = String((await once(socket, 'data'))[0]);
    socket.on('data', (text: string) => (answer += text)).on('error', () => undefined);
    socket.write('not a chunk\r\n');
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 401 /);
    assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1);
  });

  test('after one that is answered with the end of the connection is not handled', async () => {
    const { key, client } = await site.agent('Ada');
    const titles = ['One', 'Two'];
    const ids = await Promise.all(
      titles.map(async (title) => (await client.publish({ title, content: 'c' })).post.id),
    );
    const host = `Host: localhost:${site.port}\r\n`;
    const socket = connect(site.port, '127.0.0.1').setEncoding('latin1');
    // Node ends a connection itself where it is not known whether a body will come.
    socket.write(`POST /api/publish HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`);
    let answers = String((await once(socket, 'data'))[0]);
    socket.on('data', (text: string) => (answers += text)).on('error', () => undefined);
    assert.match(answers, /^HTTP\/1\.1 401 [^]*\r\nconnection: close\r\n/i);
    const closed = once(socket, 'close');
    const deletes = ids.map(
      (id) => `DELETE /api/posts/${id} HTTP/1.1\r\n${host}Authorization: Bearer ${key}\r\n\r\n`,
    );
    socket.write(`12345${deletes.join('')}`);
    await closed;
    await client.publish({ title: 'Three', content: 'c' });
    const { posts } = await client.listPosts();
    assert.deepEqual(posts.map(({ title }) => title).toSorted(), ['One', 'Three', 'Two']);
    assert.equal(answers.match(/HTTP\/1\.1 \d/g)?.length, 1, answers);
  });

  test('that ends a connection closes it, also where it came with the end of one that was answered before', async () => {
    const head = `POST /api/publish HTTP/1.1\r\nHost: localhost:${site.port}\r\nContent-Length: 5\r\n`;
    const socket = connect({ port: site.port, host: '127.0.0.1', allowHalfOpen: true });
    const closed = once(socket, 'close').catch(() => undefined);
    socket.write(`${head}\r\n`);
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 401 /);
    socket.write(`12345${head}${close}`);
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 401 /);
    socket.resume().write('12345');
    // Empty lines begin no request, but cannot be sent to who has closed.
    const writing = setInterval(() => socket.write('\r\n'), 20);
    const outcome = await Promise.race([closed.then(() => 'closed'), delay(60_000, 'open', { ref: false })]);
    clearInterval(writing);
    socket.destroy();
    assert.equal(outcome, 'closed');
  });

  test('that is broken is not answered in place of one before it', async (t) => {
    t.mock.method(site.ctx().engine, 'probe', () => delay(200));
    const request = `GET /readyz HTTP/1.1\r\nHost: localhost:${site.port}\r\n\r\n`;
    assert.equal(await rawRequest(site.port, `${request}not HTTP\r\n\r\n`), '');
  });

  for (const [length, status, type] of [
    [4_000, 401, 'application/json'],
    [5_000_000, 413, 'application/json'],
    [4_000, 415, 'text/plain'],
  ] as const) {
    test(`with 100-continue that is refused ${status} is not told to go on`, async () => {
      const path = status === 401 ? '/api/publish' : '/api/recover';
      const request = post(`Content-Length: ${length}\r\nExpect: 100-continue\r\n`)
        .replace('/api/recover', path)
        .replace('application/json', type);
      const answer = await rawRequest(site.port, request.replaceAll('HOST', `localhost:${site.port}`));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\nconnection: close\r\n`, 'i'));
    });
  }
});

/** Sends a request with a body of spaces, and reads only when all of it is sent. */
async function sendThenRead(port: number, head: string, mebibytes: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1').pause();
  const broken = once(socket, 'error').then(([error]) => {
    throw error;
  });
  const piece = Buffer.alloc(1024 * 1024, 0x20);
  const sendAll = async () => {
    socket.write(`${head}\r\nContent-Length: ${mebibytes * piece.length}\r\n\r\n`);
    for (let sent = 0; sent < mebibytes; sent++)
      await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
    socket.resume();
    return String((await once(socket, 'data'))[0]);
  };
  return Promise.race([sendAll(), broken]).finally(() => socket.destroy());
}
