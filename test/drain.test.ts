import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createLog } from '../src/platform/log.ts';
import { createDrain } from '../src/process/drain.ts';

test('a server that lingers takes new connections until then, and closes when all are answered', async () => {
  const server = createServer((_request, response) => response.end('served'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
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
