import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../client/src/index.ts';
import { runCommandLine } from '../../src/cli/main.ts';
import { storeComment } from '../../src/services/community/engagement.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { request, unlessBusy } from '../support/http.ts';
import { startInstance } from '../support/instance.ts';
import { memoryOf } from '../support/memory.ts';
import { spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';

/** Opens a connection, sends some bytes now and then, and tells when the server ended it, in milliseconds. */
function dawdle(port: number, first: string, drop: string): Promise<number> {
  const started = performance.now();
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(first));
    const timer = setInterval(() => socket.write(drop), 500);
    socket.on('error', () => undefined);
    socket.resume().on('close', () => {
      clearInterval(timer);
      resolve(performance.now() - started);
    });
  });
}

/** The request for an address, to be sent over a connection that is kept. */
function get(port: number, path: string, blog = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${blog}localhost:${port}\r\nAccept-Encoding: identity\r\n\r\n`;
}

/** Asks for an address many times, reads nothing for half a minute, then tells how many bytes still come until the end. */
async function askWithoutReading(port: number, path: string, times: number, blog = ''): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause().write(get(port, path, blog).repeat(times));
  await delay(30_000);
  let bytes = 0;
  socket.on('data', (chunk) => (bytes += chunk.length)).resume();
  socket.setTimeout(2_000, () => socket.destroy());
  await new Promise((resolve) => socket.on('close', resolve));
  return bytes;
}

/** Sends requests over one connection, each when `pause` ms have passed since the answer before; all that came back. */
async function askInTurn(port: number, paths: readonly string[], pause: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  for (const path of paths) {
    socket.write(get(port, path));
    const [answer] = await once(socket, 'data');
    received += String(answer);
    await delay(pause);
  }
  socket.destroy();
  return received;
}

/** Resolves when a number has stayed the same for a second. */
async function untilSame(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); await delay(1_000)) before = count();
}

const mebibyte = 1024 * 1024;
const many = scale > 1 ? 1_000 : 200;
const chunk = `${mebibyte.toString(16)}\r\n${'x'.repeat(mebibyte)}\r\n`;

// Most of each is waiting.
describe('slow clients', { concurrency: 3 }, () => {
  test('clients that send headers or bodies by the drop are cut off, and others are served', async (t) => {
    const instance = await startInstance();
    t.after(() => instance.close());
    const { port } = instance;
    const head = `POST /api/register HTTP/1.1\r\nHost: localhost:${port}\r\n`;
    const slow = [
      ...Array.from({ length: 50 }, () => dawdle(port, head, 'X-A: b\r\n')),
      ...Array.from({ length: 50 }, () =>
        dawdle(port, `${head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`, ' '),
      ),
    ];
    const { key } = await instance.agent('Ada');
    // As a client does, it repeats what a busy machine has refused for a moment.
    const client = createClient({ baseUrl: instance.baseUrl, apiKey: key });
    await client.publish({ title: 'T', content: 'c' });
    // After 10 s, and what Node does by itself after 60: a busy machine comes between.
    for (const duration of await Promise.all(slow))
      assert.ok(duration < 50_000, `cut off after ${duration} ms`);
  });

  test('a client that does not read is cut off; one that waits, or is idle, is not', async (t) => {
    const instance = await startInstance();
    t.after(() => instance.close());
    const { port } = instance;
    const { client, id: agentId } = await instance.agent('Ada');
    const content = 'words '.repeat(80_000);
    const { post } = await client.publish({ title: 'Long', content, status: 'published' });
    t.mock.method(instance.ctx().engine, 'probe', () => delay(13_000));

    const comment = {
      agentId,
      postId: post.id,
      content: '😀'.repeat(2000),
      html: '',
      unseen: null,
      replay: null,
    };
    const { engine } = instance.ctx();
    for (let n = 0; n < 3_000; n += 500)
      await Promise.all(Array.from({ length: 500 }, () => engine.write(storeComment, comment)));

    // As many as a connection may have unanswered.
    const times = 16;
    const [byApi, byPage, byStream, waited, idle] = await Promise.all([
      askWithoutReading(port, `/api/posts/${post.id}`, times),
      askWithoutReading(port, '/long', times, 'ada.'),
      askWithoutReading(port, `/api/posts/${post.id}/comments`, 1),
      askInTurn(port, ['/readyz'], 0),
      askInTurn(port, ['/healthz', '/healthz'], 13_000),
    ]);
    for (const bytes of [byApi, byPage])
      assert.ok(
        bytes > 0 && bytes < (content.length * times * 3) / 4,
        `${bytes} of ${content.length * times} bytes were still sent`,
      );
    assert.ok(byStream < (8_000 * 3_000) / 2, `${byStream} bytes were still sent`);
    assert.match(waited, /^HTTP\/1\.1 200 /);
    assert.equal(idle.match(/HTTP\/1\.1 200 /g)?.length, 2);
  });

  for (const [what, count, framing, body] of [
    [`${many} bodies of 4 MiB`, many, `Content-Length: ${4 * mebibyte}`, 'x'.repeat(4 * mebibyte - 1)],
    ['200 bodies of unknown length', 200, 'Transfer-Encoding: chunked', chunk.repeat(3)],
    ['5 bodies in chunks of a byte', 5, 'Transfer-Encoding: chunked', '1\r\nx\r\n'.repeat(400_000)],
    ['200 bodies of 64 KiB', 200, `Content-Length: ${mebibyte / 16}`, 'x'.repeat(mebibyte / 16 - 1)],
  ] as const) {
    test(`${what} of one key that never end take no memory, nor any other call's turn`, async (t) => {
      const dataDir = scratchFolder('slow');
      const env = { DATA_DIR: dataDir, LIMIT_PUBLISH: '0', LIMIT_COMMENT: '0', LIMIT_REGISTER: '0' };
      const server = await spawnServer({ env });
      t.after(() => server.stop());
      const send = (path: string, content: object, key = '') =>
        request(server.baseUrl, {
          method: 'POST',
          path,
          headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
          body: JSON.stringify(content),
        });
      const keyOf = async (name: string) => {
        await send('/api/register', { email: `${name}@agents.example`, name, slug: name });
        let key = '';
        await runCommandLine(['admin', 'agents', 'verify', name], {
          out: (line) => (key = line),
          err: assert.fail,
          env,
        });
        return key;
      };
      const [key, otherKey] = [await keyOf('ada'), await keyOf('bob')];
      const publish = async (of: string, slug: string, bytes: number) => {
        const content = 'word '.repeat(bytes / 5);
        return unlessBusy(() => send('/api/publish', { slug, title: slug, content }, of));
      };

      const head = `POST /api/publish HTTP/1.1\r\nHost: localhost:${server.port}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`;
      // One for all: a string would be copied for each.
      const bytes = Buffer.from(head + body, 'latin1');
      const sockets: Socket[] = Array.from({ length: count }, () => {
        const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
        socket.write(bytes);
        return socket.resume();
      });
      t.after(() => sockets.forEach((socket) => socket.destroy()));
      let most = 0;
      const watch = setInterval(() => (most = Math.max(most, memoryOf(server.pid))), 100);
      t.after(() => clearInterval(watch));

      await untilSame(() =>
        sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0),
      );
      const answers = await Promise.all([
        ...Array.from({ length: 100 }, (_, i) => publish(key, `of-ada-${i}`, 5_000)),
        ...Array.from({ length: 20 }, (_, i) => publish(otherKey, `of-bob-${i}`, 5_000)),
        publish(otherKey, 'long', 500_000),
      ]);
      for (const answer of answers) assert.equal(answer.status, 201, answer.text);
      await delay(1_000);
      assert.ok(most > 0 && most <= 300, `${most} MiB`);
    });
  }
});
