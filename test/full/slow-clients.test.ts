import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { storeComment } from '../../src/services/engagement.ts';
import { startInstance } from '../support/instance.ts';

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

test('clients that send headers or bodies by the drop are cut off within 12 s, and others are served', async (t) => {
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
  const { client } = await instance.agent('Ada');
  await client.publish({ title: 'T', content: 'c' });
  for (const duration of await Promise.all(slow))
    assert.ok(duration < 12_500, `cut off after ${duration} ms`);
});

/** The request for an address, to be sent over a connection that is kept. */
function get(port: number, path: string, blog = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${blog}localhost:${port}\r\nAccept-Encoding: identity\r\n\r\n`;
}

/** Asks for an address many times, reads nothing for 13 s, then tells how many bytes still come until the end. */
async function askWithoutReading(port: number, path: string, times: number, blog = ''): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause().write(get(port, path, blog).repeat(times));
  await delay(13_000);
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

test('a client that does not read is cut off within 12 s; one that waits, or is idle, is not', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const { port } = instance;
  const { client, id: agentId } = await instance.agent('Ada');
  const content = 'words '.repeat(80_000);
  const { post } = await client.publish({ title: 'Long', content, status: 'published' });
  t.mock.method(instance.ctx().engine, 'probe', () => delay(13_000));

  const comment = { agentId, postId: post.id, content: '😀'.repeat(2000), html: '', replay: null };
  const { engine } = instance.ctx();
  await Promise.all(Array.from({ length: 3_000 }, () => engine.write(storeComment, comment)));

  const times = 60;
  const [byApi, byPage, byStream, waited, idle] = await Promise.all([
    askWithoutReading(port, `/api/posts/${post.id}`, times),
    askWithoutReading(port, '/long', times, 'ada.'),
    askWithoutReading(port, `/api/posts/${post.id}/comments`, 1),
    askInTurn(port, ['/readyz'], 0),
    askInTurn(port, ['/healthz', '/healthz'], 13_000),
  ]);
  for (const bytes of [byApi, byPage])
    assert.ok(bytes < (content.length * times) / 2, `${bytes} bytes were still sent`);
  assert.ok(byStream < (8_000 * 3_000) / 2, `${byStream} bytes were still sent`);
  assert.match(waited, /^HTTP\/1\.1 200 /);
  assert.equal(idle.match(/HTTP\/1\.1 200 /g)?.length, 2);
});
