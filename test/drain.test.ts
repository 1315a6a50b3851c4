import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLog } from '../src/platform/log.ts';
import { createDrain } from '../src/process/drain.ts';
import { request } from './support/http.ts';

test('a server that lingers takes new connections until then, and closes when all are answered', async () => {
  const server = createServer((_request, response) => response.end('served'));
  const port = await listening(server);
  const call = async () =>
    (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).text();
  const drain = createDrain(server, createLog('silent'));
  const close = () => new Promise((resolve) => server.close(resolve));
  let isClosed = false;
  const drained = drain({ ms: 1_500, always: true }, close).then(() => (isClosed = true));
  for (let n = 0; n < 3; n++) {
    assert.equal(await call(), 'served');
    assert.equal(isClosed, false);
  }
  await drained;
  await assert.rejects(call());
});

test('the answer to a request from before it closed is said to be the last one on its connection', async () => {
  const calls: ServerResponse[] = [];
  const server = createServer((_request, response) => calls.push(response));
  const drain = createDrain(server, createLog('silent'));
  const port = await listening(server);
  const agent = new Agent({ keepAlive: true });
  const answered = request(`http://127.0.0.1:${port}`, { agent });
  await once(server, 'request');
  const closed = drain({ ms: 20, always: true }, () => new Promise((resolve) => server.close(resolve)));
  while (server.listening) await delay(5);
  calls[0]?.end('served');
  assert.equal((await answered).headers['connection'], 'close');
  await closed;
});

test('it stops listening in a turn in which no other work delays what comes in', async () => {
  for (const first of [0, 1]) {
    const server = createServer();
    await listening(server);
    const worked = Promise.withResolvers<boolean>();
    const work = (turn: number, wasDelayed: boolean) => {
      if (!server.listening) return worked.resolve(wasDelayed);
      const isDelayed = turn % 2 === 0;
      // Whoever connects meanwhile is not accepted before the next turn.
      if (isDelayed) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      setImmediate(work, turn + 1, isDelayed);
    };
    work(first, false);
    await createDrain(server, createLog('silent'))({ ms: 0, always: false }, async () => undefined);
    assert.equal(await worked.promise, false);
  }
});

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
