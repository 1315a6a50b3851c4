import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test, type TestContext } from 'node:test';
import { startInstance, type Instance } from './support/instance.ts';

/** Requests of one connection that may be unanswered. */
const most = 16;

// On one variant and engine: requests wait before either matters.
describe('requests that are sent before the answer to the one before', () => {
  let instance: Instance;
  before(async () => {
    instance = await startInstance();
  });
  after(() => instance.close());

  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost:${instance.port}\r\n\r\n`;

  /** All that comes back until the connection is closed, here where nothing comes for long. */
  async function exchange(sent: string): Promise<string> {
    const socket = connect(instance.port, '127.0.0.1').on('error', () => undefined);
    let received = '';
    socket.setEncoding('utf8').on('data', (data: string) => (received += data));
    socket.setTimeout(5_000, () => socket.destroy());
    socket.write(sent);
    await new Promise((resolve) => socket.once('close', resolve));
    return received;
  }

  /** Lets the write probe wait until it is told to go on; returns how often it was asked for. */
  function stopProbes(t: TestContext) {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const probe = t.mock.method(instance.ctx().engine, 'probe', () => {
      asked.resolve();
      return gate.promise;
    });
    return { gate, asked: asked.promise, count: () => probe.mock.callCount() };
  }

  test('are answered in order, each after the one before', async () => {
    const agent = await instance.agent('Ada');
    const body = JSON.stringify({ title: 'Pipelined', content: 'c', status: 'published' });
    const publish = `POST /api/publish HTTP/1.1\r\nHost: localhost:${instance.port}\r\nAuthorization: Bearer ${agent.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const list = get('/api/posts?agent=ada');
    const last = list.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    const answers = (await exchange(`${list}${publish}${list.repeat(most - 3)}${last}`)).split(
      /(?=HTTP\/1\.1 )/,
    );
    assert.deepEqual(
      answers.map((answer) => answer.slice(9, 12)),
      ['200', '201', ...Array.from({ length: most - 2 }, () => '200')],
    );
    const shows = answers.map((answer) => /"slug":"pipelined"/.test(answer));
    assert.deepEqual(shows, [false, ...Array.from({ length: most - 1 }, () => true)]);
  });

  test('end their connection where they are more than may wait, and are not worked off', async (t) => {
    const { gate, count } = stopProbes(t);
    assert.equal(await exchange(get('/readyz').repeat(15_000)), '');
    gate.resolve();
    assert.equal((await instance.call('GET', '/healthz')).status, 200);
    assert.ok(count() <= 1, `${count()} were begun`);
  });

  /** By what they are, `HOST` stands for ours. */
  const kinds: Readonly<Record<string, string>> = {
    'of the usual kind': 'GET / HTTP/1.1\r\nHost: HOST\r\n\r\n',
    'with an expectation that nobody knows': 'GET / HTTP/1.1\r\nHost: HOST\r\nExpect: x, y\r\n\r\n',
    'with that and no host': 'GET / HTTP/1.1\r\nExpect:x\r\n\r\n',
    'with that and a body':
      'POST /api/recover HTTP/1.1\r\nHost: HOST\r\nExpect: x\r\nContent-Length: 1\r\n\r\na',
    'that wait for 100 Continue': 'GET / HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\n\r\n',
    'of another version': 'GET / HTTP/2.0\r\nConnection: keep-alive\r\n\r\n',
    'of an old version': 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
    'for a host that is none': 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n',
    'for the whole service': 'OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n',
  };
  for (const [what, request] of Object.entries(kinds))
    test(`are not even parsed where they are more than may wait, ${what}`, async (t) => {
      const { gate } = stopProbes(t);
      let parsed = 0;
      const countOne = () => parsed++;
      subscribe('http.server.request.start', countOne);
      t.after(() => unsubscribe('http.server.request.start', countOne));
      const one = request.replace('HOST', `localhost:${instance.port}`);
      assert.equal(await exchange(get('/readyz') + one.repeat(500)), '');
      gate.resolve();
      assert.equal(parsed, most + 1);
    });

  test('are dropped when the client leaves', async (t) => {
    const { gate, asked, count } = stopProbes(t);
    const socket = connect(instance.port, '127.0.0.1');
    socket.write(get('/readyz').repeat(most));
    await asked;
    socket.resetAndDestroy();
    await once(socket, 'close');
    // What is asked for after that finds the connection closed.
    assert.equal((await instance.call('GET', '/healthz')).status, 200);
    gate.resolve();
    assert.equal((await instance.call('GET', '/healthz')).status, 200);
    assert.equal(count(), 1);
  });
});
