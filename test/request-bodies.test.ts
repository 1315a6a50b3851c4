import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../src/errors.ts';
import { assertProblem, startInstance, type Instance, type TestAgent } from './support/instance.ts';

const mebibyte = 1024 * 1024;
/** What one key may have on its way in bodies of the largest size, and in small ones. */
const mostLarge = 4;
const mostSmall = 256;

// On one variant and engine: bodies are read before either matters.
describe('request bodies', () => {
  let instance: Instance;
  let ada: TestAgent;
  let bob: TestAgent;
  const open: Socket[] = [];
  const the = () => instance;
  before(async () => {
    instance = await startInstance({
      env: { LIMIT_PUBLISH: '900', LIMIT_API: '900', TRUST_PROXY: '127.0.0.1' },
    });
    ada = await the().agent('Ada');
    bob = await the().agent('Bob');
  });
  after(() => instance.close());
  afterEach(async () => {
    await Promise.all(open.splice(0).map(abort));
  });

  type Publishing = { readonly query?: string; readonly address?: string };
  const publish = ({ key }: TestAgent, bytes: number, { query = '', address }: Publishing = {}) => {
    const body = { slug: `of-${bytes}`, title: 'T', content: 'word '.repeat(bytes / 5) };
    const headers = address === undefined ? {} : { 'x-forwarded-for': address };
    return the().call('POST', `/api/publish${query}`, { key, body, headers });
  };
  const left = async ({ client }: TestAgent, policy: string) =>
    (await client.limits()).limits.find((limit) => limit.policy === policy)?.remaining;

  /** Begins to publish, and resolves once the service has told the client to send the body, which it does not. */
  async function begin(
    { key }: TestAgent,
    framing: string,
    { isAwaited = true, address = '127.0.0.1' } = {},
  ): Promise<Socket> {
    const socket = connect(the().port, '127.0.0.1').on('error', () => undefined);
    open.push(socket);
    socket.write(
      `POST /api/publish HTTP/1.1\r\nHost: localhost:${the().port}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nX-Forwarded-For: ${address}\r\nExpect: 100-continue\r\n${framing}\r\n\r\n`,
    );
    if (isAwaited) assert.match(await answerOf(socket), /^HTTP\/1\.1 100 /);
    return socket;
  }
  const beginAll = (agent: TestAgent, count: number, bytes: number, address?: string) =>
    Promise.all(Array.from({ length: count }, () => begin(agent, `Content-Length: ${bytes}`, { address })));
  /** Asks whether to send a body, until the answer is this one. Asking takes no memory. */
  const untilToldTo = async (goOn: RegExp, bytes: number, { agent = bob, address = '127.0.0.1' } = {}) => {
    for (let tries = 0; tries < 200; tries++) {
      const asking = await begin(agent, `Content-Length: ${bytes}`, { isAwaited: false, address });
      const answer = await answerOf(asking);
      await abort(asking);
      if (goOn.test(answer)) return;
      await delay(20);
    }
    assert.fail(`never ${goOn.source}`);
  };

  test('beyond 64 KiB are refused beyond at most 16 MiB of one key, and not counted', async () => {
    const publishing = await left(ada, 'publish');
    const others = await left(ada, 'api');
    await beginAll(ada, mostLarge, 4 * mebibyte);
    const mcp = { jsonrpc: '2.0', id: 1, method: 'ping', params: { text: 'x'.repeat(mebibyte) } };
    const refused = [
      await publish(ada, 100_000),
      await publish(ada, 100_000, { query: '?dryRun=true' }),
      await the().call('POST', '/mcp', { key: ada.key, body: mcp }),
    ];
    for (const answer of refused) {
      assertProblem(answer, 'unavailable');
      assert.equal(answer.headers['retry-after'], '1');
      assert.ok(answer.headers['ratelimit']);
    }
    const chunked = await begin(ada, 'Transfer-Encoding: chunked');
    chunked.write(`30000\r\n${'x'.repeat(0x30000)}\r\n`);
    assert.match(await answerOf(chunked), /^HTTP\/1\.1 503 /);

    const dryRun = await publish(ada, 5_000, { query: '?dryRun=true' });
    assert.equal(dryRun.status, 200);
    assert.equal(dryRun.headers['x-ratelimit-remaining'], String(Number(others) - 1));
    assert.equal(await left(ada, 'publish'), publishing);
  });

  test('of one key stand in the way neither of its small ones nor of any of others', async () => {
    await beginAll(ada, mostLarge, 4 * mebibyte);
    await beginAll(ada, 200, 64 * 1024);
    const answers = await Promise.all([
      ...Array.from({ length: 100 }, () => publish(ada, 5_000, { query: '?dryRun=true' })),
      ...Array.from({ length: 3 }, () => publish(bob, 500_000)),
    ]);
    for (const answer of answers) assert.ok(answer.status < 300, answer.text);
  });

  test('leave room for others however many keys promise all that they may, and send nothing', async () => {
    const greedy = await Promise.all(Array.from({ length: 6 }, (_, i) => the().agent(`greedy-${i}`)));
    await Promise.all(
      greedy.flatMap((agent) => [
        ...Array.from({ length: mostLarge }, () => begin(agent, `Content-Length: ${4 * mebibyte}`)),
        ...Array.from({ length: 52 }, () => begin(agent, `Content-Length: ${64 * 1024}`)),
      ]),
    );
    // Read whole, and then seen to be longer than a post may be.
    assertProblem(await publish(bob, 1_000_000), 'too_large');
    for (const bytes of [100_000, 60_000, 5_000]) {
      const answer = await publish(bob, bytes, { query: '?dryRun=true' });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  test('are refused as the service has no room where others send all that it takes', async () => {
    const greedy = await Promise.all(Array.from({ length: 4 }, (_, i) => the().agent(`sending-${i}`)));
    const sent = Buffer.alloc(4 * mebibyte - 1, 0x20);
    const sockets = await Promise.all(
      greedy.map((agent, i) => beginAll(agent, mostLarge, 4 * mebibyte, `192.0.2.${i % 2}`)),
    );
    for (const socket of sockets.flat()) socket.write(sent);
    await untilToldTo(/^HTTP\/1\.1 503 /, 100_000);
    const answer = await publish(bob, 100_000, { query: '?dryRun=true' });
    assertProblem(answer, 'unavailable');
    assert.match(answer.text, /As much as this service has room for/);
    assert.equal((await publish(bob, 5_000, { query: '?dryRun=true' })).status, 200);
    await Promise.all(open.splice(0).map(abort));
    await untilToldTo(/^HTTP\/1\.1 100 /, 4 * mebibyte);
  });

  describe('of one address leave room for others, whatever keys it has', () => {
    let greedy: TestAgent[];
    let neighbour: TestAgent;
    before(async () => {
      greedy = await Promise.all([the().agent('near-1'), the().agent('near-2')]);
      neighbour = await the().agent('near-3');
    });
    // All of one /64.
    const addressOf = (host: number) => `2001:db8:1:2::${host}`;
    const elsewhere = { query: '?dryRun=true', address: '2001:db8:1:3::1' };
    const beginOfAll = async (count: number, bytes: number, sent: number) => {
      const all = greedy.map((agent, i) => beginAll(agent, count, bytes, addressOf(i)));
      const sockets = (await Promise.all(all)).flat();
      for (const socket of sockets) socket.write(Buffer.alloc(sent, 0x20));
      return sockets;
    };

    test('beyond 64 KiB', async () => {
      const near = { agent: neighbour, address: addressOf(9) };
      const sockets = await beginOfAll(mostLarge, 4 * mebibyte, 4 * mebibyte - 1);
      await untilToldTo(/^HTTP\/1\.1 503 /, 100_000, near);
      const answer = await publish(neighbour, 100_000, near);
      assertProblem(answer, 'unavailable');
      assert.match(answer.text, /Too much of this key or address/);
      for (const bytes of [500_000, 5_000]) {
        const others = await publish(bob, bytes, elsewhere);
        assert.equal(others.status, 200, others.text);
      }
      for (const socket of sockets) assert.equal(socket.closed, false);
      await Promise.all(sockets.map(abort));
      await untilToldTo(/^HTTP\/1\.1 100 /, 4 * mebibyte, near);
    });

    test('up to 64 KiB, where those of the address wait', async () => {
      const sockets = await beginOfAll(mostSmall, 64 * 1024, 33_000);
      const headers = { 'x-forwarded-for': addressOf(9) };
      const beginToWait = async () => {
        const socket = await begin(neighbour, 'Content-Length: 60000', {
          isAwaited: false,
          address: addressOf(9),
        });
        const answer = answerOf(socket);
        // What comes after it on other connections is answered after it, unless it waits.
        for (let n = 0; n < 3; n++) await the().call('GET', '/api/limits', { key: neighbour.key, headers });
        if ((await Promise.race([answer, Promise.resolve(null)])) === null) return { answer };
        await abort(socket);
        return null;
      };
      let waiting = await beginToWait();
      for (let tries = 0; tries < 50 && waiting === null; tries++) waiting = await beginToWait();
      assert.ok(waiting, 'never');
      assert.equal((await publish(bob, 60_000, elsewhere)).status, 200);
      for (const socket of sockets) assert.equal(socket.closed, false);
      await Promise.all(sockets.map(abort));
      assert.match(await waiting.answer, /^HTTP\/1\.1 100 /);
    });
  });

  test('take no memory once they are read', async () => {
    const inBuffers = () => process.memoryUsage().arrayBuffers;
    const atFirst = inBuffers();
    let most = 0;
    for (let i = 0; i < 6; i++) {
      assertProblem(await publish(ada, 3 * mebibyte), 'too_large');
      most = Math.max(most, inBuffers() - atFirst);
    }
    // One that is read, and what has come in of it.
    assert.ok(most < 4 * mebibyte, `${most} bytes`);
  });

  test('give their room back however they end', async () => {
    const large = `{"title":"T","content":"${'x'.repeat(4 * mebibyte - 100)}"}`;
    const send = (body: string) => the().call('POST', '/api/publish', { key: ada.key, body });
    for (let i = 0; i <= mostLarge; i++) {
      assertProblem(await send(large), 'too_large');
      assertProblem(await send(large.slice(0, -2)), 'invalid_json');
      await abort(await begin(ada, `Content-Length: ${4 * mebibyte}`));
      const [half] = await beginAll(ada, 1, 4 * mebibyte);
      await new Promise((resolve) => half?.write(Buffer.alloc(mebibyte), resolve));
      if (half) await abort(half);
      const chunked = await begin(ada, 'Transfer-Encoding: chunked');
      chunked.write(`200000\r\n${'x'.repeat(2 * mebibyte)}\r\nno chunk\r\n`);
      await once(chunked, 'close');
    }
    const whole = await Promise.all(Array.from({ length: mostLarge }, () => send(large)));
    for (const answer of whole) assertProblem(answer, 'too_large');
  });

  test('up to 64 KiB wait for their turn', async () => {
    const unfinished = await beginAll(ada, mostSmall, 64 * 1024);
    const waiting = Array.from({ length: 150 }, () => publish(ada, 5_000, { query: '?dryRun=true' }));
    const gone = await begin(ada, 'Content-Length: 60000', { isAwaited: false });
    await abort(gone);
    // By then the service knows that it has left, which lets others go on too.
    for (let n = 0; n < 3; n++) assert.ok((await publish(bob, 5_000)).status < 300);
    for (const socket of unfinished.slice(0, 200)) void abort(socket);
    for (const answer of await Promise.all(waiting)) assert.ok(answer.status < 300, answer.text);
  });

  test('are on the budget until their calls are answered', async () => {
    const eve = await the().agent('Eve');
    const publishing = await left(eve, 'publish');
    const sent = Array.from({ length: 40 }, (_, at) => publish(eve, 475_000 + at));
    const bystander = publish(bob, 5_000);
    const refused = (await Promise.all(sent)).filter(({ status }) => status !== 201);
    assert.ok((await bystander).status < 300);
    // 16 MiB hold 33 of them, if none is answered before the last has come.
    for (const answer of refused) {
      assertProblem(answer, 'unavailable');
      assert.equal(answer.headers['retry-after'], '1');
    }
    assert.equal(await left(eve, 'publish'), Number(publishing) - sent.length + refused.length);
  });

  test('of calls whose clients have left are not worked on', async () => {
    const eve = await the().agent('Leaving');
    // It keeps the key's turn while the others come.
    const table = `${'|a'.repeat(200)}\n${'|-'.repeat(200)}\n${'|b\n'.repeat(4000)}`;
    const dryRun = () =>
      the().call('POST', '/api/publish?dryRun=true', {
        key: eve.key,
        body: { title: 'T', content: table },
      });
    const publishing = await left(eve, 'publish');
    const busy = [dryRun(), dryRun()];
    const body = JSON.stringify({ title: 'Left', slug: 'left', content: 'c' });
    const leaving = await begin(eve, `Content-Length: ${body.length}`);
    await new Promise((resolve) => leaving.write(body, resolve));
    // The service has read it when it has read what was sent after it.
    await begin(eve, 'Content-Length: 5');
    await abort(leaving);
    await Promise.all(busy);
    assert.equal((await publish(eve, 5_005)).status, 201);
    const { posts } = await eve.client.listPosts();
    assert.ok(!posts.some(({ slug }) => slug === 'left'));
    assert.equal(await left(eve, 'publish'), Number(publishing) - 2);
  });

  test('whose documents cannot wait are refused, and not counted, in every interface', async (t) => {
    const full = new AppError('unavailable', 'Too many documents are waiting.', {
      retryAfter: 1,
      uncounted: true,
    });
    t.mock.method(the().ctx().renderer, 'renderPost', () => Promise.reject(full));
    const [publishing, others] = [await left(bob, 'publish'), await left(bob, 'api')];
    for (const query of ['', '?dryRun=true']) {
      const answer = await publish(bob, 5_000, { query });
      assertProblem(answer, 'unavailable');
      assert.equal(answer.headers['retry-after'], '1');
    }
    for (const dryRun of [false, true]) {
      const params = { name: 'publish', arguments: { title: 'T', content: 'c', dryRun } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const headers = { accept: 'application/json, text/event-stream' };
      const answer = await the().call('POST', '/mcp', { key: bob.key, headers, body });
      assert.match(answer.text, /unavailable/);
    }
    assert.equal(await left(bob, 'publish'), publishing);
    // Asking for what is left counts.
    assert.equal(await left(bob, 'api'), Number(others) - 2);
  });

  /** The same text in chunks of so many bytes each. */
  const chunked = (text: string, ...sizes: number[]) => {
    const bytes = Buffer.from(text);
    let all = '';
    for (let [at, n] = [0, 0]; at < bytes.length; n++) {
      const chunk = bytes.subarray(at, (at += sizes[n % sizes.length] ?? 1));
      all += `${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`;
    }
    return Buffer.from(`${all}0\r\n\r\n`, 'latin1');
  };

  for (const sizes of [[33], [1, 1, 100], [700, 5, 1_024, 20_000, 3], [16_384, 1]])
    test(`in chunks of ${sizes.join(', ')} bytes are read whole`, async () => {
      const socket = await begin(bob, 'Transfer-Encoding: chunked');
      const title = `Chunks of ${sizes.join(', ')}`;
      const content = `${'ä word '.repeat(12_000)}end`;
      // The next request comes in the same packet as the end of this one.
      const next = `GET /healthz HTTP/1.1\r\nHost: localhost:${the().port}\r\nConnection: close\r\n\r\n`;
      socket.write(Buffer.concat([chunked(JSON.stringify({ title, content }), ...sizes), Buffer.from(next)]));
      let answers = '';
      for await (const data of socket) answers += String(data);
      assert.deepEqual(answers.match(/(?<=HTTP\/1\.1 )\d+/g), ['201', '200']);
      const { posts } = await bob.client.listPosts();
      const { post } = await bob.client.getPost(posts.find((each) => each.title === title)?.id ?? '');
      assert.equal(post.content, content);
    });

  test('in chunks of a byte are read whole where they come one after the other', async () => {
    const socket = await begin(bob, 'Transfer-Encoding: chunked');
    const sent = chunked(JSON.stringify({ title: 'Slowly', content: 'w '.repeat(400) }), 1);
    const answer = answerOf(socket);
    for (let at = 0; at < sent.length; at += 72) {
      socket.write(sent.subarray(at, at + 72));
      await delay(5);
    }
    assert.match(await answer, /^HTTP\/1\.1 201 /);
  });

  test('in thousands of tiny chunks at once end their connection, and no other', async () => {
    const headOf = (type: string, framing: string) =>
      `POST /api/publish HTTP/1.1\r\nHost: localhost:${the().port}\r\nAuthorization: Bearer ${bob.key}\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n`;
    const connectOnce = () => {
      const socket = connect(the().port, '127.0.0.1').on('error', () => undefined);
      return { socket, closed: once(socket, 'close') };
    };
    const awaited = 'Transfer-Encoding: chunked\r\nExpect: 100-continue';
    const body = chunked(JSON.stringify({ title: 'Tiny', content: 'w '.repeat(4_000) }), 1);
    for (const framing of [awaited, 'Transfer-Encoding: chunked']) {
      const { socket, closed } = connectOnce();
      socket.write(Buffer.concat([Buffer.from(headOf('application/json', framing)), body]));
      const answer = await answerOf(socket);
      assert.match(answer, /HTTP\/1\.1 400 /);
      assert.match(answer, /Content-Length, or gather what you send/);
      await closed;
    }
    // What came before the refusal is not taken for the whole, though the end came with it.
    const { socket, closed } = connectOnce();
    const markdown = chunked(
      `---\ntitle: Tiny\n---\n${'w '.repeat(9_000)}`,
      ...Array<number>(17).fill(1_000),
      ...Array<number>(2_000).fill(1),
    );
    socket.write(headOf('text/markdown', awaited));
    assert.match(await answerOf(socket), /^HTTP\/1\.1 100 /);
    socket.write(markdown);
    assert.match(await answerOf(socket), /HTTP\/1\.1 400 /);
    await closed;
    // Parsers are used again.
    for (let n = 0; n < 4; n++) assert.equal((await publish(bob, 100 + n)).status, 201);
    const list = await bob.client.listPosts();
    assert.ok(!list.posts.some(({ title }) => title === 'Tiny'));
  });
});

async function answerOf(socket: Socket): Promise<string> {
  const [data] = await once(socket, 'data');
  return String(data);
}

async function abort(socket: Socket): Promise<void> {
  if (socket.closed) return;
  const closed = once(socket, 'close');
  socket.destroy();
  await closed;
}
