import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { limitInFlight } from '../src/http/in-flight.ts';

/** Begins calls of an address, whose answers end when they are closed. */
function start() {
  const begun: string[] = [];
  const refused: string[] = [];
  const handle = limitInFlight(
    ({ url = '', isTooMuch }) => (isTooMuch ? refused : begun).push(url),
    ({ method }) => method === 'POST',
    ({ url = '' }) => url.charAt(0),
  );
  const call = (url: string, method = 'GET') => {
    const request = Object.assign(new IncomingMessage(new Socket()), { url, method });
    const response = new ServerResponse(request);
    handle(request, response);
    return { end: () => response.emit('close') };
  };
  const calls = (address: string, count: number) =>
    Array.from({ length: count }, (_, n) => call(`${address}${n}`));
  return { begun, refused, call, calls };
}

test('of one address so many calls are under way, the others wait in order, and more are refused', () => {
  const { begun, refused, call, calls } = start();
  const some = calls('a', 64);
  const [waits, leaves] = [call('a next'), call('a leaves')];
  assert.equal(begun.length, 64);
  call('b');
  call('a posts', 'POST');
  assert.deepEqual(begun.slice(64), ['b', 'a posts']);
  leaves?.end();
  some[5]?.end();
  assert.deepEqual(begun.slice(66), ['a next']);
  calls('a', 512);
  assert.deepEqual(refused, []);
  call('a too much');
  assert.deepEqual(refused, ['a too much']);
  waits?.end();
  assert.equal(begun.at(-1), 'a0');
});

test('an address is counted on while some of its calls are under way, and anew when none is', () => {
  const { begun, calls } = start();
  const [first, ...others] = calls('a', 64);
  first?.end();
  calls('a', 3);
  assert.equal(begun.length, 65);
  for (const one of others) one.end();
  assert.equal(begun.length, 67);
});
