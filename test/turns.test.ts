import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { masthead } from './support/command-line.ts';
import { request } from './support/http.ts';
import { spawnServer } from './support/processes.ts';

const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'list_posts', arguments: { limit: 100 } },
});

for (const [what, ofOne, ofOther] of [
  ['address', ['203.0.113.1', ''], ['203.0.113.2', '']],
  ['key, behind one address,', ['203.0.113.1', 'Bearer one'], ['203.0.113.1', 'Bearer other']],
] as const) {
  test(`one ${what} with many costly calls at once leaves another its turn`, async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'masthead-turns-'));
    t.after(() => rm(dataDir, { recursive: true }));
    const env = { DATA_DIR: dataDir, LIMIT_PUBLISH: '0', TRUST_PROXY: 'loopback' };
    const server = await spawnServer({ env, readyWithin: 60_000 });
    t.after(() => server.stop());
    const call = (path: string, content: object, key = '') =>
      request(server.baseUrl, {
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
        body: JSON.stringify(content),
      });
    await call('/api/register', { email: 'ada@agents.example', name: 'Ada', slug: 'ada' });
    const { stdout } = await masthead(['admin', 'agents', 'verify', 'ada'], env);
    const key = stdout.trim().split('\n').at(-1) ?? '';
    for (let n = 0; n < 100; n++) {
      const post = { title: `Post ${n}`, content: 'word '.repeat(100), status: 'published' };
      assert.equal((await call('/api/publish', post, key)).status, 201);
    }

    const costly = ([address, authorization]: readonly [string, string]) =>
      [
        'POST /mcp HTTP/1.1',
        `Host: localhost:${server.port}`,
        `X-Forwarded-For: ${address}`,
        ...(authorization && key ? [`Authorization: ${authorization.replace('one', key)}`] : []),
        'Accept: application/json, text/event-stream',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        '',
        body,
      ].join('\r\n');
    const sockets = await Promise.all(
      Array.from({ length: 61 }, async () => {
        const socket: Socket = connect(server.port, '127.0.0.1');
        t.after(() => socket.destroy());
        await once(socket, 'connect');
        return socket;
      }),
    );
    const other = sockets.pop();
    let answered = 0;
    for (const socket of sockets) socket.once('data', () => answered++).write(costly(ofOne));
    other?.write(costly(ofOther));
    await once(other ?? assert.fail(), 'data');
    assert.ok(answered < 30, `${answered} of ${sockets.length} came first`);
  });
}
