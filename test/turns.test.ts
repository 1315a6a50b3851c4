import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { inTurns } from '../src/http/turns.ts';

test('a client with many costly calls at once leaves another its turn, and what it gave up is dropped', async () => {
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const handle = inTurns(
    (request) => {
      // Longer than a slice.
      for (const begun = performance.now(); performance.now() - begun < 6;);
      order.push(request.url ?? '');
      if (order.length === 22) done.resolve();
    },
    (request) => request.url?.charAt(0) ?? '',
  );
  const call = (url: string, socket = new Socket()) => {
    const request = Object.assign(new IncomingMessage(socket), { url });
    handle(request, new ServerResponse(request));
  };
  for (let n = 0; n < 20; n++) call(`a${n}`);
  call('a, gone', new Socket().destroy());
  call('b0');
  call('b1');
  await done.promise;
  assert.deepEqual(order.slice(0, 5), ['a0', 'a1', 'b0', 'a2', 'b1']);
  assert.equal(order.at(-1), 'a19');
});
