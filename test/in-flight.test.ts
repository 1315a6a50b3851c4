import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse, type IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { limitAnswers, limitHeld, limitInFlight } from '../src/http/in-flight.ts';
import { Amounts } from '../src/http/read-body.ts';

/** Begins calls of an address, whose answers end when they are closed. */
function start() {
  const begun: string[] = [];
  const refused: string[] = [];
  const handle = limitInFlight(
    ({ url = '', isTooMuchOf }) => (isTooMuchOf ? refused : begun).push(url),
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

test('amounts that have come to nothing are forgotten now and then, and no others', () => {
  const amounts = new Amounts();
  const names = Array.from({ length: 1_000 }, (_, n) => `name ${n}`);
  for (const [n, name] of names.entries()) {
    amounts.add(name, 2);
    amounts.add(name, n % 100 === 0 ? -1 : -2);
  }
  assert.deepEqual(
    names.filter((name) => amounts.of(name) === 1),
    names.filter((_, n) => n % 100 === 0),
  );
  assert.ok(amounts.size < 100, String(amounts.size));
});

describe('bodies of calls that wait for their turn', () => {
  const packet = 64 * 1024;
  function holding() {
    const hold = limitHeld(
      ({ method }) => method === 'POST',
      ({ url = '' }) => url.charAt(0),
    );
    return (url: string, headers: IncomingHttpHeaders, method = 'POST', tellToGoOn?: () => void) => {
      const request = Object.assign(new IncomingMessage(new Socket()), { url, headers, method });
      if (tellToGoOn) request.tellToGoOn = tellToGoOn;
      const letGo = hold(request);
      return { request, letGo, refusal: request.isTooMuchOf };
    };
  }
  const ofLength = (bytes: number) => ({ 'content-length': String(bytes) });
  const large = ofLength(4 * 1024 * 1024);

  test('take a packet each at most, of one address and of all; those that are small have a budget of their own', () => {
    const held = holding();
    const some = Array.from({ length: 64 }, () => held('a', large));
    assert.deepEqual(new Set(some.map(({ refusal }) => refusal)), new Set([undefined]));
    assert.equal(held('a', large).refusal, 'share');
    assert.equal(held('a', { 'transfer-encoding': 'chunked' }).refusal, 'share');
    assert.equal(held('a', large, 'GET').refusal, undefined);
    // It has sent nothing.
    assert.equal(held('a', large, 'POST', () => {}).refusal, undefined);
    // At least a hundred of a key, whatever their size.
    for (let n = 0; n < 384; n++) assert.equal(held('a', ofLength(packet)).refusal, undefined);
    assert.equal(held('a', ofLength(packet)).refusal, 'share');
    some[0]?.letGo();
    assert.equal(held('a', large).refusal, undefined);
    for (const address of ['b', 'c', 'd'])
      for (let n = 0; n < 64; n++) assert.equal(held(address, large).refusal, undefined);
    assert.equal(held('e', large).refusal, 'total');
    for (const { letGo } of some.slice(1)) letGo();
    assert.equal(held('e', large).refusal, undefined);
  });

  test('count from their first byte where a client says that it waits for 100 Continue, and sends all the same', async () => {
    const held = holding();
    const waiting = Array.from({ length: 65 }, () => held('a', large, 'POST', () => {}));
    const chunk = () => Buffer.from(new ArrayBuffer(packet));
    const [last = assert.fail(), patient = assert.fail(), ...others] = waiting;
    for (const { request } of others) request.push(chunk());
    held('a', large).letGo();
    last.request.push(chunk());
    assert.equal(held('a', large).refusal, 'share');
    patient.request.push(null);
    const [first = assert.fail()] = others;
    assert.equal(first.request.readableLength, packet);
    const dropped = held('a', large, 'POST', () => {}).request;
    const bytes = chunk();
    dropped.push(bytes);
    assert.equal(dropped.isTooMuchOf, 'share');
    await new Promise(setImmediate);
    assert.equal(bytes.byteLength, 0);
    for (const { letGo, request } of waiting) {
      assert.equal(request.isTooMuchOf, undefined);
      letGo();
    }
    for (let n = 0; n < 64; n++) assert.equal(held('a', large).refusal, undefined);
    // What comes once it is its turn has a budget of its own.
    const late = held('b', large, 'POST', () => {});
    late.letGo();
    late.request.push(chunk());
    assert.equal(late.request.readableLength, packet);
    for (let n = 0; n < 64; n++) assert.equal(held('b', large).refusal, undefined);
  });

  test('of few bytes are as many as the bytes allow', () => {
    const held = holding();
    for (let n = 0; n < 10_000; n++) assert.equal(held('a', ofLength(300)).refusal, undefined);
  });

  test('are dropped as they come where there is no room', async () => {
    const held = holding();
    for (let n = 0; n < 64; n++) held('a', large);
    const { request } = held('a', large);
    const chunk = Buffer.from(new ArrayBuffer(packet));
    request.push(chunk);
    await new Promise(setImmediate);
    assert.equal(chunk.byteLength, 0);
    const { request: other } = held('b', large);
    other.push(Buffer.from(new ArrayBuffer(packet)));
    await new Promise(setImmediate);
    assert.equal(other.readableLength, packet);
  });
});

describe('answers that are being sent', () => {
  const mebibyte = 1024 * 1024;
  function sending() {
    const answers = limitAnswers(({ url = '' }) => url.charAt(0));
    /** Sends an answer to an address and an agent, each named by a letter; returns what was full, or what ends it. */
    return (whose: string, body: Buffer | string) => {
      const request = Object.assign(new IncomingMessage(new Socket()), { url: whose });
      const response = new ServerResponse(request);
      const owner = whose.slice(1);
      const full = answers.fullFor(request, body, owner);
      if (full === null) answers.hold(request, response, body, owner);
      return { full, end: () => response.emit('close') };
    };
  }
  const bytes = (length: number) => Buffer.alloc(length * mebibyte);

  test('take so many bytes of an agent, of an address and of all; what is short does not count', () => {
    const send = sending();
    const some = Array.from({ length: 4 }, () => send('aX', bytes(4)));
    assert.deepEqual(new Set(some.map(({ full }) => full)), new Set([null]));
    assert.equal(send('aX', 'x'.repeat(16 * 1024)).full, 'share');
    assert.equal(send('aX', 'x'.repeat(16 * 1024 - 1)).full, null);
    assert.equal(send('aY', bytes(16)).full, null);
    // Of its address.
    assert.equal(send('aZ', bytes(4)).full, 'share');
    assert.equal(send('bX', bytes(4)).full, 'share');
    assert.equal(send('b', bytes(16)).full, null);
    assert.equal(send('c', bytes(16)).full, null);
    assert.equal(send('d', bytes(4)).full, 'total');
    some[0]?.end();
    assert.equal(send('d', bytes(4)).full, null);
  });

  test('are sent whatever their size to a client that has read all others', () => {
    const send = sending();
    const first = send('a', bytes(40));
    assert.equal(first.full, null);
    assert.equal(send('a', bytes(1)).full, 'share');
    assert.equal(send('b', bytes(20)).full, null);
    first.end();
    assert.equal(send('a', bytes(20)).full, null);
  });

  test('count once where they are the same bytes, until nobody is sent them any more', () => {
    const send = sending();
    const page = bytes(12);
    const some = ['a', 'a', 'b', 'c', 'd', 'e', 'f'].map((whose) => send(whose, page));
    assert.deepEqual(new Set(some.map(({ full }) => full)), new Set([null]));
    assert.equal(send('a', bytes(12)).full, 'share');
    some[0]?.end();
    assert.equal(send('a', bytes(12)).full, 'share');
    some[1]?.end();
    assert.equal(send('a', bytes(12)).full, null);
  });

  test('wait for room where they are sent in parts, each until it has been taken, or until the client leaves', async () => {
    const answers = limitAnswers(({ url = '' }) => url);
    /** An answer to an address, which takes the next part when there is room. */
    const begin = (address: string) => {
      const request = Object.assign(new IncomingMessage(new Socket()), { url: address });
      const response = new ServerResponse(request);
      const parts = answers.inParts(request, response, '');
      const outcome: boolean[] = [];
      void parts.room().then((isThere) => outcome.push(isThere));
      return { parts, response, outcome };
    };
    const some = Array.from({ length: 18 }, () => begin('a'));
    const other = begin('b');
    await delay(1);
    assert.deepEqual(
      some.map(({ outcome }) => outcome),
      [...Array.from({ length: 16 }, () => [true]), [], []],
    );
    assert.deepEqual(other.outcome, [true]);
    const [first = assert.fail(), second = assert.fail()] = some;
    const [next = assert.fail(), last = assert.fail()] = some.slice(-2);
    first.parts.sending(bytes(1));
    await delay(1);
    assert.deepEqual(next.outcome, []);
    await first.parts.sent();
    await delay(1);
    assert.deepEqual([next.outcome, last.outcome], [[true], []]);
    last.response.destroy();
    last.response.emit('close');
    await delay(1);
    assert.deepEqual(last.outcome, [false]);
    const another = begin('a');
    second.response.emit('close');
    await delay(1);
    assert.deepEqual(another.outcome, [true]);
  });
});
