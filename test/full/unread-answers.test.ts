import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { storeComment } from '../../src/services/community/engagement.ts';
import { atMost } from '../support/at-most.ts';
import {
  assertOk,
  assertProblem,
  startInstance,
  type Instance,
  type TestAgent,
} from '../support/instance.ts';

const mebibyte = 1024 * 1024;
/** Of answers that one owner has not read. */
const most = 16 * mebibyte;
/** Becomes 2.3 MiB of HTML: seven leave next to nothing of the share. */
const long = '&'.repeat(478_000);
/** The system takes one such answer, whether or not it is read. */
const timesEach = 2;
const connections = 9;
const lastPart = '0\r\n\r\n';

// On one variant and engine: answers are sent by what is the same for all.
describe('answers that nobody reads', () => {
  let instance: Instance;
  let ada: TestAgent;
  before(async () => {
    instance = await startInstance({ env: { TRUST_PROXY: '127.0.0.2' } });
    ada = await instance.agent('Ada');
  });
  after(() => instance.close());

  type Ask = { readonly path: string; readonly host?: string; readonly key?: string; readonly body?: object };

  /** Asks for each over a connection of its own, several times, and reads nothing; returns what the server has to send. */
  async function askUnread(
    t: TestContext,
    asks: readonly Ask[],
    { forwardedFor = '', inParts = false } = {},
  ) {
    const asked = new Map<Socket, ServerResponse[]>();
    const note = (message: unknown) => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
      const { socket } = request;
      asked.set(socket, [...(asked.get(socket) ?? []), response]);
      // Else it is cut off when it has taken nothing for some seconds.
      socket.setTimeout = () => socket;
    };
    subscribe('http.server.request.start', note);
    const sockets = await Promise.all(
      asks.map(async ({ path, host = '', key, body }) => {
        const localAddress = forwardedFor === '' ? '127.0.0.1' : '127.0.0.2';
        const socket = connect({ port: instance.port, host: '127.0.0.1', localAddress });
        const json = body === undefined ? '' : JSON.stringify(body);
        const lines = [
          `${json === '' ? 'GET' : 'POST'} ${path} HTTP/1.1`,
          `Host: ${host}localhost:${instance.port}`,
          ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
          ...(forwardedFor === '' ? [] : [`X-Forwarded-For: ${forwardedFor}`]),
          ...(json === '' ? [] : ['Content-Type: application/json', `Content-Length: ${json.length}`]),
        ];
        socket.on('error', () => undefined).pause();
        socket.write(`${lines.join('\r\n')}\r\n\r\n${json}`.repeat(timesEach));
        await once(socket, 'connect');
        return socket;
      }),
    );
    const held = () => [...asked.keys()].reduce((sum, { writableLength }) => sum + writableLength, 0);
    let [sent, atRest] = [0, 0];
    // Of answers in parts, some wait for room.
    const isWaiting = ({ headersSent, writableFinished }: ServerResponse) =>
      inParts && atRest > 50 && headersSent && !writableFinished;
    const isSettled = () => {
      const last = sent;
      sent = [...asked.keys()].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
      atRest = sent === last ? atRest + 1 : 0;
      return (
        asked.size === sockets.length &&
        [...asked].every(
          ([{ writableLength }, responses]) =>
            writableLength > 0 ||
            (responses.length === timesEach && responses.every((response) => response.writableFinished)) ||
            responses.some(isWaiting),
        )
      );
    };
    while (!isSettled()) await delay(20);
    unsubscribe('http.server.request.start', note);
    const stop = async () => {
      for (const socket of sockets) socket.destroy();
      while ([...asked.keys()].some((socket) => !socket.closed)) await delay(10);
    };
    t.after(stop);
    return { bytes: held(), sockets, stop };
  }

  const dryRun = (title: string) => ({ title, content: long });

  test('take so much memory of a key, as dry runs; what is more is 503, and what is stored is said', async (t) => {
    const path = '/api/publish?dryRun=true&html=true';
    const { post } = await ada.client.publish({ title: 'Short', content: 'c', status: 'published' });
    const asks = Array.from({ length: connections }, (_, n) => ({
      path,
      key: ada.key,
      body: dryRun(`${n}`),
    }));
    const { bytes, stop } = await askUnread(t, asks);
    assert.ok(bytes > most / 2 && bytes <= most, `${bytes} bytes`);

    const { key } = ada;
    const used = async () =>
      (await instance.call('GET', '/api/me', { key })).headers['x-ratelimit-remaining'];
    const left = Number(await used());
    const refused = await instance.call('POST', path, { key, body: dryRun('More') });
    assertProblem(refused, 'unavailable');
    assert.equal(refused.headers['retry-after'], '1');
    assert.match(refused.text, /being sent at once/);
    const compressed = await instance.call('POST', path, {
      key,
      body: { title: 'More', content: randomText(200_000) },
      headers: { 'accept-encoding': 'gzip' },
    });
    assertProblem(compressed, 'unavailable');
    const params = { name: 'publish', arguments: { ...dryRun('More'), dryRun: true, html: true } };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    assertProblem(await instance.call('POST', '/mcp', { key, body: message }), 'unavailable');
    // Not counted, but for the call that asks.
    assert.equal(Number(await used()), left - 1);
    // What tells of a change is sent, however long it is.
    const appended = await instance.call('PATCH', `/api/posts/${post.id}`, {
      key,
      body: { append: `\n\n${'word '.repeat(3_600)}` },
    });
    assertOk(appended);
    assert.ok(appended.bytes.length > mebibyte / 64);
    // The share of its address is larger.
    const bob = await instance.agent('Bob');
    assertOk(await instance.call('POST', path, { key: bob.key, body: dryRun('Of another') }));

    await stop();
    assertOk(await instance.call('POST', path, { key, body: dryRun('More') }));
    assert.equal((await instance.call('POST', '/mcp', { key, body: message })).status, 200);
  });

  test('take so much of an address as pages; one that all are sent counts once', async (t) => {
    const slugs = Array.from({ length: connections }, (_, n) => `long-${n}`);
    for (const slug of slugs)
      await ada.client.publish({ slug, title: slug, content: `${long}${slug}`, status: 'published' });
    const pages = slugs.map((slug) => ({ path: `/${slug}`, host: 'ada.' }));
    const [page = assert.fail()] = pages;
    const open = async ({ path, host }: typeof page, forwardedFor: string) =>
      instance.call('GET', path, {
        host: `${host}localhost:${instance.port}`,
        headers: { 'x-forwarded-for': forwardedFor },
        agent: new Agent({ localAddress: '127.0.0.2' }),
      });
    for (const each of pages) assert.equal((await open(each, '203.0.113.9')).status, 200);

    const same = await askUnread(
      t,
      Array.from({ length: connections }, () => page),
      { forwardedFor: '203.0.113.1' },
    );
    assert.ok(same.bytes > most, `${same.bytes} bytes of one page`);
    await same.stop();
    const { bytes, stop } = await askUnread(t, pages, { forwardedFor: '203.0.113.1' });
    assert.ok(bytes > most / 2 && bytes <= most, `${bytes} bytes`);
    const answers = await Promise.all(pages.map(async (each) => open(each, '203.0.113.1')));
    const refused = answers.filter(({ status }) => status === 503);
    assert.ok(refused.length > 0);
    for (const { headers, text } of refused) {
      assert.equal(headers['retry-after'], '1');
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers.etag, undefined);
      assert.match(text, /^<!doctype html>/i);
    }
    // Another client of the same proxy.
    for (const each of pages) assert.equal((await open(each, '203.0.113.2')).status, 200);
    await stop();
    for (const each of pages) assert.equal((await open(each, '203.0.113.1')).status, 200);
  });

  test('take so much of an address as lists that are sent in parts, which go on once there is room', async (t) => {
    const { post } = await ada.client.publish({ title: 'Discussed', content: 'c', status: 'published' });
    const comment = { agentId: ada.id, postId: post.id, content: '😀'.repeat(2_000), html: '', unseen: null };
    await atMost(8, Array.from({ length: 1_001 }), () =>
      instance.ctx().engine.write(storeComment, { ...comment, replay: null }),
    );
    const path = `/api/posts/${post.id}/comments`;
    const { bytes, sockets, stop } = await askUnread(
      t,
      Array.from({ length: 4 * connections }, () => ({ path })),
      { inParts: true },
    );
    assert.ok(bytes > most / 2 && bytes <= most, `${bytes} bytes`);
    const { status } = await instance.call('GET', path);
    assert.equal(status, 503);
    const [next = assert.fail()] = sockets;
    for (const other of sockets) if (other !== next) other.destroy();
    let text = '';
    next.setEncoding('utf8').on('data', (part: string) => (text += part));
    next.resume();
    while (!text.includes(lastPart)) await delay(20);
    assert.equal(text.slice(0, text.indexOf(lastPart)).match(/"postId"/g)?.length, 1_001);
    await stop();
    assert.equal((await instance.call('GET', path)).status, 200);
  });

  test('take so much of an address as pages that are made for each', async (t) => {
    const { post } = await ada.client.publish({ title: 'Draft', content: `${long}draft` });
    const { previewUrl } = await ada.client.previewPost(post.id);
    const { pathname: path } = new URL(previewUrl);
    const { bytes } = await askUnread(
      t,
      Array.from({ length: connections }, () => ({ path })),
    );
    assert.ok(bytes > most / 2 && bytes <= most, `${bytes} bytes`);
    assert.equal((await instance.call('GET', path)).status, 503);
    assert.equal((await instance.call('HEAD', path)).status, 200);
  });
});

/** A text that does not become shorter by compression. */
function randomText(length: number): string {
  let text = '';
  for (let n = 1; text.length < length; n = (n * 48_271) % 2_147_483_647) text += n.toString(36);
  return text;
}
