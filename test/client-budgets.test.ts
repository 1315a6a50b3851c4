import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { assertOk, assertProblem, startInstance, type Instance } from './support/instance.ts';

/** Of one address: connections, those that are answered and still read, calls without a body, and those that wait. */
const mostConnections = 1_024;
const mostReadOn = 64;
const mostInFlight = 64;
const mostWaiting = 512;

// Before anything of a variant or an engine is asked.
describe('one address', () => {
  let instance: Instance;
  const the = () => instance;
  before(async () => {
    instance = await startInstance({ env: { TRUST_PROXY: '127.0.0.2' } });
  });
  after(() => instance.close());

  async function open(count: number, localAddress: string): Promise<Socket[]> {
    const sockets: Socket[] = [];
    while (sockets.length < count) {
      // No more at once than a listening socket holds: of others the first packet is lost, and sent again in seconds.
      const some = Array.from({ length: Math.min(128, count - sockets.length) }, () => {
        const socket = connect({ port: the().port, host: '127.0.0.1', localAddress });
        return socket.on('error', () => undefined).resume();
      });
      await Promise.all(some.map((socket) => once(socket, 'connect')));
      sockets.push(...some);
    }
    return sockets;
  }

  test('has a budget of connections: the oldest idle one makes room; those of a proxy are not its own', async (t) => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const probe = t.mock.method(the().ctx().engine, 'probe', () => gate);
    const ofProxy = await open(10, '127.0.0.2');
    const [busy] = await open(1, '127.0.0.1');
    busy?.write(`GET /readyz HTTP/1.1\r\nHost: localhost:${the().port}\r\n\r\n`);
    while (probe.mock.callCount() === 0) await new Promise(setImmediate);
    const own = await open(mostConnections - 1, '127.0.0.1');
    t.after(() => [...ofProxy, ...own].forEach((socket) => socket.destroy()));
    const [oldest] = own;
    assert.ok(oldest && busy);
    const closed = once(oldest, 'close');
    const more = await open(1, '127.0.0.1');
    await closed;
    const answered = once(busy, 'data');
    release();
    assert.match(String(await answered), /^HTTP\/1\.1 200 /);
    for (const socket of [busy, ...more, ...ofProxy, ...own.slice(1)]) assert.equal(socket.closed, false);
    for (const socket of [busy, ...more]) socket.destroy();
  });

  test('has a budget of answered connections whose bodies still come: the oldest is closed for another', async (t) => {
    const refused = async (address: string) => {
      const [socket] = await open(1, address);
      assert.ok(socket);
      t.after(() => socket.destroy());
      socket.write(
        `POST /api/publish HTTP/1.1\r\nHost: localhost:${the().port}\r\nContent-Length: 100000\r\n\r\n`,
      );
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 401 /);
      return socket;
    };
    const other = await refused('127.0.0.3');
    // Whose body has come, so that it counts no more.
    const whole = await refused('127.0.0.1');
    whole.write('x'.repeat(100_000));
    whole.write(`GET /healthz HTTP/1.1\r\nHost: localhost:${the().port}\r\n\r\n`);
    assert.match(String(await once(whole, 'data')), /^HTTP\/1\.1 200 /);
    const sockets: Socket[] = [];
    for (let n = 0; n < mostReadOn; n++) sockets.push(await refused('127.0.0.1'));
    const [oldest, ...newer] = sockets;
    assert.equal(oldest?.closed, false);
    const closed = once(oldest, 'close');
    const newest = await refused('127.0.0.1');
    await closed;
    for (const socket of [other, whole, newest, ...newer]) assert.equal(socket.closed, false);
  });

  test('has a budget of calls without a body: others wait, and of more yet are refused', async (t) => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const probe = t.mock.method(the().ctx().engine, 'probe', () => gate);
    // As they come in.
    const began: { request: IncomingMessage; response: ServerResponse }[] = [];
    const note = (message: unknown) => began.push(message as (typeof began)[number]);
    const cameIn = async (count: number) => {
      while (began.length < count) await new Promise(setImmediate);
    };
    subscribe('http.server.request.start', note);
    t.after(() => unsubscribe('http.server.request.start', note));
    const calls = await open(mostInFlight + mostWaiting, '127.0.0.1');
    t.after(() => calls.forEach((socket) => socket.destroy()));
    for (const socket of calls) socket.write(`GET /readyz HTTP/1.1\r\nHost: localhost:${the().port}\r\n\r\n`);
    await cameIn(calls.length);
    const last = began.at(-1);
    while (probe.mock.callCount() < mostInFlight) await new Promise(setImmediate);
    const refused = await the().call('GET', '/api/limits');
    assertProblem(refused, 'unavailable');
    assert.equal(refused.headers['retry-after'], '1');
    assert.equal(probe.mock.callCount(), mostInFlight);
    const elsewhere = new Agent({ localAddress: '127.0.0.3' });
    // Neither another address nor a body waits for it.
    const other = await the().call('GET', '/api/limits', { agent: elsewhere });
    assertOk(other);
    assertProblem(await the().call('POST', '/api/register', { body: {} }), 'invalid_input');

    // One that waits and leaves is not begun, and makes room.
    const leaving = calls.find((socket) => socket.localPort === last?.request.socket.remotePort);
    assert.ok(leaving && last);
    const answers = calls.filter((socket) => socket !== leaving).map((socket) => once(socket, 'data'));
    const left = once(last.response, 'close');
    leaving.destroy();
    await left;
    const waits = the().call('GET', '/api/limits');
    await cameIn(began.length + 1);
    release();
    for (const [data] of await Promise.all(answers)) assert.match(String(data), /^HTTP\/1\.1 200 /);
    assertOk(await waits);
    assert.equal(probe.mock.callCount(), mostInFlight + mostWaiting - 1);
  });
});
