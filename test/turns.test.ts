import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, get, IncomingMessage, ServerResponse, type Server } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Unit } from '../src/db/postgres/postgres-batch.ts';
import { createLanes, type Joining } from '../src/db/postgres/postgres-lanes.ts';
import { loadConfig } from '../src/config/config.ts';
import { defineWrite } from '../src/db/write.ts';
import { AppError } from '../src/errors.ts';
import { arrivals, createArrivals } from '../src/platform/arrivals.ts';
import { beginInSlices } from '../src/http/connection-budget.ts';
import { createPace, prepareParser, readAgain, stopReading } from '../src/http/parser.ts';
import { createReadOn, dropBody } from '../src/http/read-body.ts';
import { clientsOf, createTurns } from '../src/http/turns.ts';
import { createRenderer } from '../src/markdown/pool/renderer.ts';
import { Turns } from '../src/markdown/pool/turns.ts';
import { createSlices, longWork } from '../src/platform/slices.ts';
import { createAddressReader } from '../src/rules/client-address.ts';
import { startInstance, type TestAgent } from './support/instance.ts';
import { png } from './support/pictures.ts';

/** Network and key are the first two characters of the path. */
const clientOf = ({ url = '' }: IncomingMessage) => ({ network: url.charAt(0), key: url.charAt(1) });
const requestOf = (url: string, socket = new Socket()) => Object.assign(new IncomingMessage(socket), { url });

/** Time that passes only by work: how long the machine takes for it decides nothing. `work` takes longer than a slice. */
function mockTime({ mock }: TestContext) {
  let now = performance.now();
  mock.method(performance, 'now', () => now);
  return { work: () => void (now += 6) };
}

test('a client with many costly calls at once leaves another its turn, and what it gave up is dropped', async (t) => {
  const { work } = mockTime(t);
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const handle = createTurns(clientOf, { areComing: () => false }).inTurns((request) => {
    work();
    order.push(request.url ?? '');
    if (order.length === 32) done.resolve();
  });
  const call = (url: string, socket?: Socket) => {
    const request = requestOf(url, socket);
    handle(request, new ServerResponse(request));
  };
  for (let n = 0; n < 20; n++) {
    if (n === 10) call('a-, gone', new Socket().destroy());
    call(`a-${n}`);
  }
  // Keys that it makes up gain an address nothing.
  for (let n = 0; n < 10; n++) call(`a${n}`);
  call('b-0');
  call('b-1');
  await done.promise;
  const [first = '', ...others] = order;
  assert.equal(first, 'a-0');
  assert.deepEqual(others.slice(0, 2).toSorted(), ['a-1', 'b-0']);
  assert.ok(others.indexOf('b-1') < 5, String(others));
  const ofAddress = order.filter((url) => url.startsWith('a'));
  assert.deepEqual(ofAddress.slice(0, 5), ['a-0', 'a-1', 'a0', 'a1', 'a2']);
  assert.equal(ofAddress.at(-1), 'a-19');
  assert.ok(!order.includes('a-, gone'));
});

test('addresses share the time, and not the number of calls', async (t) => {
  const { work } = mockTime(t);
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const handle = createTurns(clientOf, { areComing: () => false }).inTurns(({ url = '' }) => {
    if (url.startsWith('a')) work();
    order.push(url);
    if (order.length === 60) done.resolve();
  });
  for (let n = 0; n < 20; n++) handle(requestOf(`a-${n}`), new ServerResponse(requestOf('')));
  for (let n = 0; n < 40; n++) handle(requestOf(`b-${n}`), new ServerResponse(requestOf('')));
  await done.promise;
  const last = order.lastIndexOf('b-39');
  assert.ok(last < 46, `after ${last - 39} of the costly ones`);
});

test('calls wait while connections come in', async () => {
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  let areComing = true;
  const handle = createTurns(clientOf, { areComing: () => areComing }).inTurns(({ url = '' }) => {
    order.push(url);
    done.resolve();
  });
  handle(requestOf('a-0'), new ServerResponse(requestOf('')));
  for (let n = 0; n < 5; n++) await new Promise(setImmediate);
  assert.deepEqual(order, []);
  areComing = false;
  await done.promise;
});

test('a server takes all connections that wait before it goes on, but for a while at most', async (t) => {
  const coming = createArrivals();
  assert.equal(coming.areComing(), false);
  coming.hasCome();
  assert.equal(coming.areComing(), true);
  // None came meanwhile.
  for (let n = 0; n < 2; n++) await new Promise(setImmediate);
  assert.equal(coming.areComing(), false);

  // However slow the machine is.
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const server = createServer((_request, response) => response.end());
  beginInSlices(server, coming, () => 'address');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.after(() => server.close());
  // All wait before the first is taken: this thread sleeps while another process connects.
  const connecting = `
    let connected = 0;
    const begin = () => require('node:net').connect(${port}, '127.0.0.1', () => ++connected === 50 && process.exit());
    for (let n = 0; n < 50; n++) begin();`;
  assert.equal(spawnSync(process.execPath, ['-e', connecting]).status, 0);
  let taken = 0;
  server.on('connection', () => taken++);
  // Each turn of the event loop takes one.
  await once(server, 'connection');
  while (coming.areComing()) await new Promise(setImmediate);
  assert.equal(taken, 50);

  // Where they never end, other work goes on.
  const busy = createArrivals();
  busy.hasCome();
  for (; busy.areComing() && now < 2_000; now++) {
    busy.hasCome();
    await new Promise(setImmediate);
  }
  assert.equal(busy.areComing(), false);
});

/** A server that begins no more connections than have sent something, `join` for another, and those of it. */
async function besideMany(
  t: TestContext,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const server = createServer(handle);
  beginInSlices(server, createArrivals(), () => 'address');
  const open: Socket[] = [];
  server.on('connection', (socket: Socket) => open.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const join = async () => {
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    await Promise.all([once(client, 'connect'), once(server, 'connection')]);
    return client;
  };
  const clients: Socket[] = [];
  t.after(() => {
    for (const socket of [...clients, ...open]) socket.destroy();
    server.close();
  });
  while (clients.length < 512) clients.push(await join());
  await someTurns();
  assert.ok(open.splice(0).every(isBegun));
  return { server, join, open };
}

async function someTurns(): Promise<void> {
  for (let n = 0; n < 50; n++) await new Promise(setImmediate);
}

function isBegun(socket?: Socket): boolean {
  return Boolean(socket && Reflect.get(socket, 'parser'));
}

test('beside many a connection is begun when it sends something, and closed where it sends nothing for as long as a head may take', async (t) => {
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const { server, join, open } = await besideMany(t, (request, response) =>
    request.on('data', (part) => response.write(part)),
  );
  const speaking = await join();
  const reset = await join();
  const ended = await join();
  const silent = await join();
  await someTurns();
  assert.deepEqual(open.map(isBegun), [false, false, false, false]);
  // The head and the beginning of a body in one packet, of which the small chunk is not kept back.
  speaking.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
  const [answer] = await once(speaking, 'data');
  assert.match(String(answer), /abc/);
  assert.deepEqual(open.map(isBegun), [true, false, false, false]);
  const gone = open.slice(1, 3).map((socket) => new Promise((resolve) => socket.on('close', resolve)));
  reset.resetAndDestroy();
  ended.end();
  await Promise.all(gone);

  now += server.headersTimeout - 1_000;
  // As long as it takes until the next look.
  await delay(1_500);
  assert.equal(open[3]?.destroyed, false);
  now += 1_001;
  await once(silent, 'close');
  assert.deepEqual([open[3]?.destroyed, open[0]?.destroyed], [true, false]);
});

test('what a connection brings that is begun late is served as that of any other', async (t) => {
  const large = 'x'.repeat(12_000_000);
  const sent = Promise.withResolvers<void>();
  const { server, join } = await besideMany(t, ({ url }, response) => {
    // One answer is made after the other.
    if (url === '/large') response.end(large, sent.resolve);
    else void sent.promise.then(() => response.end('small'));
  });
  const failures: (Error & { readonly rawPacket: string })[] = [];
  server.on('clientError', (error, socket) => {
    failures.push(Object.assign(error, { rawPacket: String(Reflect.get(error, 'rawPacket')) }));
    socket.destroy();
  });
  // Node reads no more of a client that does not take its answers.
  const slow = await join();
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
  slow.pause().write(head('/large') + head('/small'));
  await delay(100);
  slow.write(head('/small'));
  await delay(100);
  let answers = '';
  slow.on('data', (part) => (answers += String(part))).resume();
  while (answers.length < large.length || !/small.*small/s.test(answers.slice(-2_000)))
    await Promise.race([once(slow, 'data'), once(slow, 'close').then(() => assert.fail(failures[0]))]);

  const other = await join();
  other.write('BREW /coffee HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(other, 'close');
  assert.match(String(failures[0]?.rawPacket), /^BREW/);
});

test('what brings the event loop more to do is begun a little at a time', async (t) => {
  t.mock.method(performance, 'now', () => 0);
  const inSlices = createSlices({ most: 2 });
  const begun: number[] = [];
  for (let n = 0; n < 6; n++) inSlices(() => begun.push(n));
  assert.deepEqual(begun, [0, 1]);
  await new Promise(setImmediate);
  // The oldest and the newest by turns.
  assert.deepEqual(begun, [0, 1, 2, 5]);
  await new Promise(setImmediate);
  assert.deepEqual(begun, [0, 1, 2, 5, 3, 4]);
});

test('packets are read at a pace, and none while connections come in', async (t) => {
  // So that they come for as long as we say; later than what other tests have seen come.
  const now = performance.now() + 1_000;
  t.mock.method(performance, 'now', () => now);
  let [stopped, started] = [0, 0];
  const allStarted = Promise.withResolvers<void>();
  const ofNode = {
    reading: true,
    readStop: () => stopped++,
    readStart: () => ++started === 4 && allStarted.resolve(),
  };
  const readInTurn = createPace({ most: 16, every: 4 });
  for (let n = 0; n < 20; n++)
    readInTurn(Object.assign(new Socket(), { _handle: Object.create(ofNode) as unknown }), () => 'a');
  assert.equal(stopped, 4);
  arrivals.hasCome();
  for (const end = Date.now() + 50; Date.now() < end; await new Promise(setImmediate)) arrivals.hasCome();
  assert.equal(started, 0);
  await allStarted.promise;
});

test('addresses take turns with the packets that are read of them, and who has left has none', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const order: string[] = [];
  const readSlowly = createPace({ most: 1, every: 8 });
  const packetOf = (name: string) => {
    const ofNode = { reading: true, readStop: () => {}, readStart: () => order.push(name) };
    const socket = Object.assign(new Socket(), { _handle: Object.create(ofNode) as unknown });
    readSlowly(socket, () => name.charAt(0));
    return socket;
  };
  packetOf('a, of which nothing is stopped');
  for (let n = 0; n < 5; n++) packetOf(`a${n}`);
  for (const name of ['b0', 'b1', 'c0']) packetOf(name);
  const left = packetOf('c1');
  packetOf('c2');
  Reflect.set(left, '_handle', null);
  await once(left.destroy(), 'close');
  for (let n = 0; n < 9; n++) t.mock.timers.tick(8);
  assert.deepEqual(order, ['a0', 'b0', 'c0', 'a1', 'b1', 'c2', 'a2', 'a3', 'a4']);
});

test('who sends small chunks waits for a packet of another client, not for all of them, also behind one proxy', async (t) => {
  const instance = await startInstance({ env: { TRUST_PROXY: 'loopback' } });
  t.after(() => instance.close());
  let answered = 0;
  const begun: unknown[] = [];
  const countOne = (message: unknown) => begun.push(message);
  subscribe('http.server.request.start', countOne);
  t.after(() => unsubscribe('http.server.request.start', countOne));
  const chunks = '1\r\n \r\n'.repeat(2);
  /** Half of a body. */
  const begin = (address: string) => {
    const socket = connect(instance.port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
    socket.write(
      `POST /api/recover HTTP/1.1\r\nHost: localhost:${instance.port}\r\nX-Forwarded-For: ${address}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    );
    return socket;
  };
  const areBegun = async (all: number) => {
    while (begun.length < all) await new Promise(setImmediate);
  };
  const end = `${chunks}0\r\n\r\n`;
  const others = Array.from({ length: 200 }, () => begin('192.0.2.1'));
  await areBegun(200);
  for (const socket of others) socket.once('data', () => answered++).write(end);
  const own = begin('192.0.2.2');
  await areBegun(201);
  const before = answered;
  own.write(end);
  await once(own, 'data');
  assert.ok(answered - before < (200 - before) / 2, `after ${before}, ${answered} of 200 were read`);
});

test('behind a proxy nobody waits for the turn of whoever used a connection before: its answer waits for that', async (t) => {
  const instance = await startInstance({ env: { TRUST_PROXY: 'loopback' } });
  t.after(() => instance.close());
  const begun: unknown[] = [];
  const countOne = (message: unknown) => begun.push(message);
  subscribe('http.server.request.start', countOne);
  t.after(() => unsubscribe('http.server.request.start', countOne));
  const headOf = (call: string) => `${call} HTTP/1.1\r\nHost: localhost:${instance.port}\r\n`;
  const send = async (call: string, body: string) => {
    const all = begun.length + 1;
    const socket = connect(instance.port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
    socket.write(
      `${headOf(call)}X-Forwarded-For: 192.0.2.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    );
    while (begun.length < all) await new Promise(setImmediate);
    return socket;
  };
  const whole = '1\r\n{\r\n1\r\n}\r\n0\r\n\r\n';
  // Nobody has a turn meanwhile.
  const coming = t.mock.method(arrivals, 'areComing', () => true);
  await send('POST /api/recover', '1\r\n{\r\n');
  const calls = ['POST /api/recover', 'POST /api/nothing', 'POST /api/publish', 'GET /'];
  const shared: Socket[] = [];
  for (const call of calls) shared.push(await send(call, whole));
  const answers = shared.map((socket) => once(socket, 'data'));
  const early: string[] = [];
  for (const socket of shared) socket.once('data', (data) => early.push(String(data)));
  for (let n = 0; n < 20; n++) assert.equal((await instance.call('GET', '/healthz')).status, 200);
  assert.deepEqual(early, []);
  coming.mock.restore();
  await Promise.all(answers);
  for (const socket of shared) socket.write(`${headOf('GET /healthz')}X-Forwarded-For: 192.0.2.2\r\n\r\n`);
  for (const [answer] of await Promise.all(shared.map((socket) => once(socket, 'data'))))
    assert.match(String(answer), /"status":"ok"/);
});

test('what answers by itself, a page or a picture, waits too where a part of the body does that came later', async (t) => {
  const instance = await startInstance({ env: { TRUST_PROXY: 'loopback' } });
  t.after(() => instance.close());
  const { key, blogUrl, client } = await instance.agent('Ada');
  const upload = async (width: number): Promise<string> =>
    (await client.uploadMedia(new Uint8Array(png([], [], width, 4)), { type: 'image/png' })).media.url;
  const [picture, avatar] = [await upload(20), await upload(21)];
  await instance.call('PATCH', '/api/me', { key, body: { avatarUrl: avatar } });
  const begun: Socket[] = [];
  const stopOne = (message: unknown) => {
    const { socket, request } = message as { socket: Socket; request: IncomingMessage };
    if (request.headers['content-length'] !== '4') return;
    begun.push(socket);
    stopReading(socket);
  };
  subscribe('http.server.request.start', stopOne);
  t.after(() => unsubscribe('http.server.request.start', stopOne));
  const ask = async (url: string, status: number, headers = ''): Promise<string> => {
    const { host, pathname } = new URL(url);
    const socket = connect(instance.port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
    let answer = '';
    socket.on('data', (data) => (answer += String(data)));
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: 4\r\n\r\nhalf`);
    while (begun.length === 0) await new Promise(setImmediate);
    for (let n = 0; n < 20; n++) assert.equal((await instance.call('GET', '/healthz')).status, 200);
    assert.equal(answer, '', url);
    for (const each of begun.splice(0)) readAgain(each);
    while (!answer.includes('\r\n\r\n')) await once(socket, 'data');
    assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), answer);
    return answer;
  };
  await ask(`${blogUrl}/`, 200);
  const [, etag = ''] = /^etag: (.*)\r$/im.exec(await ask(picture, 200)) ?? [];
  await ask(picture, 304, `If-None-Match: ${etag}\r\n`);
  // The drawn mark in its place.
  await rm(instance.ctx().config.media.dir, { recursive: true });
  await ask(avatar, 503, 'Accept: image/*\r\n');
});

test('what brings more to do is begun less at a time while it makes turns long', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const inSlices = createSlices({ most: 4 });
  let begun = 0;
  for (let n = 0; n < 16; n++) inSlices(() => begun++);
  const inTurn: number[] = [];
  // As if what the first two turns began took 10 ms each.
  for (const takes of [10, 10, 1, 1, 1]) {
    now += takes;
    const before = begun;
    await new Promise(setImmediate);
    inTurn.push(begun - before);
  }
  assert.deepEqual(inTurn, [2, 1, 2, 4, 3]);
});

test('a call whose body has come in waits for its turn again', async (t) => {
  const { work } = mockTime(t);
  const turns = createTurns(clientOf, { areComing: () => false });
  const handle = turns.inTurns(work);
  for (const url of ['a-0', 'a-1']) handle(requestOf(url), new ServerResponse(requestOf(url)));
  const order: string[] = [];
  const again = ['a-2', 'a-3', 'b-0'].map(async (url) => {
    await turns.again(requestOf(url));
    order.push(url);
    work();
  });
  await Promise.all(again);
  assert.deepEqual(order, ['b-0', 'a-2', 'a-3']);
  // Of one that left too, or what it has taken would never be given back.
  for (const url of ['a-0', 'a-1']) handle(requestOf(url), new ServerResponse(requestOf(url)));
  await turns.again(requestOf('a-4', new Socket().destroy()));
});

test('calls whose keys were looked up at once leave others their turn', async (t) => {
  const { work } = mockTime(t);
  const instance = await startInstance({ env: { TRUST_PROXY: 'loopback' } });
  try {
    const { engine, searches } = instance.ctx();
    const [busy, other] = await Promise.all([instance.agent('Busy'), instance.agent('Other')]);
    const write = engine.write.bind(engine);
    const find = searches.find.bind(searches);
    const found = Promise.withResolvers<void>();
    const waiting: unknown[] = [];
    // The first calls with a key note that it is in use, and all go on when the last of them is told so.
    Object.assign(engine, {
      write: (...call: Parameters<typeof write>) => {
        if (call[0].name !== 'keys.used') return write(...call);
        waiting.push(call);
        return found.promise;
      },
    });
    const begun: string[] = [];
    Object.assign(searches, {
      find: (...call: Parameters<typeof find>) => {
        work();
        begun.push(call[1].address);
        return find(...call);
      },
    });
    const search = async ({ key }: TestAgent, address: string, n: number) =>
      instance.call('GET', `/api/search?q=word${n}`, { key, headers: { 'x-forwarded-for': address } });
    const calls = Array.from({ length: 30 }, (_, n) => search(busy, '203.0.113.1', n));
    while (waiting.length < 30) await new Promise(setImmediate);
    calls.push(search(other, '203.0.113.2', 0));
    while (waiting.length < 31) await new Promise(setImmediate);
    Object.assign(engine, { write });
    found.resolve();
    await Promise.all(calls);
    const before = begun.findIndex((one) => one !== begun[0]);
    assert.ok(before > 0 && before < 15, `after ${before} of the 30`);
  } finally {
    await instance.close();
  }
});

test('writes of one agent that wait for a lock on PostgreSQL leave connections to others, who take turns', async () => {
  const begun: string[] = [];
  const held = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const runBatch = async (batch: Unit[]) => {
    for (const { request, done } of batch) {
      begun.push(agentOf({ request }));
      if (agentOf({ request }) === 'held') await held.promise;
      done.resolve({ rate: null, changed: [], mailQueued: false });
    }
    if (begun.length === 506) ended.resolve();
  };
  const lanes = createLanes(runBatch, 5, () => new Error('late'));
  const write = (agentId: string, about: string | null = null) => lanes.run(unit(agentId, about));
  // With the two that run, as many of one agent as may wait.
  for (let n = 0; n < 502; n++) write('held', `held, call ${n}`);
  assert.throws(() => write('held'), /Too many writes of this agent/);
  assert.deepEqual(begun, ['held', 'held']);
  for (const agent of ['a', 'b', 'c', 'a']) write(agent);
  await new Promise(setImmediate);
  assert.deepEqual(begun.slice(2).toSorted(), ['a', 'a', 'b', 'c']);
  held.resolve();
  await ended.promise;
});

test('of writes about one agent on PostgreSQL one batch runs at a time, whoever writes them', async () => {
  const begun: string[] = [];
  const first = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const runBatch = async (batch: Unit[]) => {
    begun.push(...batch.map(agentOf));
    if (begun.length === 1) await first.promise;
    for (const { done } of batch) done.resolve({ rate: null, changed: [], mailQueued: false });
    if (begun.length === 3) ended.resolve();
  };
  const lanes = createLanes(runBatch, 5, () => new Error('late'));
  lanes.run(unit('a', 'voted for'));
  lanes.run(unit('b', 'voted for'));
  lanes.run(unit('c', 'another'));
  await new Promise(setImmediate);
  assert.deepEqual(begun, ['a', 'c']);
  first.resolve();
  await ended.promise;
  assert.deepEqual(begun, ['a', 'c', 'b']);
});

test('agents whose writes wait for a connection to PostgreSQL take turns', async () => {
  const begun: string[] = [];
  const free = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const runBatch = async (batch: Unit[]) => {
    await free.promise;
    begun.push(...batch.map(agentOf));
    if (begun.length === 11) ended.resolve();
  };
  const lanes = createLanes(runBatch, 1, () => new Error('late'));
  for (let n = 0; n < 9; n++) lanes.run(unit('a', null));
  lanes.run(unit('b', null));
  lanes.run(unit('c', null));
  free.resolve();
  await ended.promise;
  assert.deepEqual(begun.slice(0, 4).toSorted(), ['a', 'a', 'b', 'c']);
});

test('writes that may share a transaction on PostgreSQL gather while one works for such and two commit', async () => {
  const batches: string[][] = [];
  const commits: (() => void)[] = [];
  const ends: (() => void)[] = [];
  const runBatch = async (batch: Unit[], { committing }: Joining) => {
    batches.push(batch.map(agentOf));
    commits.push(committing);
    await new Promise<void>((resolve) => ends.push(resolve));
  };
  const lanes = createLanes(runBatch, 5, () => new Error('late'));
  const write = (...agents: string[]) => {
    for (const agentId of agents) lanes.run({ ...unit(agentId, agentId), locks: [agentId] });
  };
  write('a', 'b', 'c');
  lanes.run(unit('g', null));
  assert.deepEqual(batches, [['a'], ['g']]);
  commits[0]?.();
  assert.deepEqual(batches.slice(2), [['b', 'c']]);
  // Until its commit is done nothing else of the same agent runs.
  write('a', 'd');
  commits[2]?.();
  assert.deepEqual(batches.slice(3), [['d']]);
  write('e');
  commits[3]?.();
  assert.equal(batches.length, 4);
  ends[0]?.();
  await new Promise(setImmediate);
  assert.deepEqual(batches.slice(4), [['a', 'e']]);
});

test('who writes on PostgreSQL with others is waited for by the next transaction, and who writes alone is not', async () => {
  const batches: string[][] = [];
  const commits: (() => void)[] = [];
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const runBatch = async (batch: Unit[], { committing }: Joining) => {
    batches.push(batch.map(agentOf));
    commits.push(committing);
    if (batches.length > 2) begun[batches.length - 3]?.resolve();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const lanes = createLanes(runBatch, 5, () => new Error('late'));
  const write = (...agents: string[]) => {
    for (const agentId of agents) lanes.run({ ...unit(agentId, agentId), locks: [agentId] });
  };
  write('a', 'b', 'c', 'd');
  assert.deepEqual(batches, [['a']]);
  commits[0]?.();
  assert.deepEqual(batches, [['a'], ['b', 'c', 'd']]);
  commits[1]?.();
  write('e', 'f');
  assert.equal(batches.length, 2, 'as long as three may come');
  await begun[0]?.promise;
  assert.deepEqual(batches[2], ['e', 'f'], 'though the third did not');
  commits[2]?.();
  write('g');
  assert.equal(batches.length, 3);
  write('h');
  await begun[1]?.promise;
  assert.deepEqual(batches[3], ['g', 'h']);
  await new Promise(setImmediate);
  // Nobody else came while the last one was committed.
  write('i');
  await delay(100);
  write('j');
  assert.deepEqual(batches.slice(4), [['i'], ['j']]);
});

test('a batch on PostgreSQL that works for long, as on a lock, does not hold others up', async () => {
  const batches: string[][] = [];
  const second = Promise.withResolvers<void>();
  const runBatch = async (batch: Unit[]) => {
    batches.push(batch.map(agentOf));
    if (batches.length === 2) second.resolve();
    await new Promise<void>(() => {});
  };
  const lanes = createLanes(runBatch, 5, () => new Error('late'));
  for (const agentId of ['a', 'b']) lanes.run({ ...unit(agentId, agentId), locks: [agentId] });
  assert.deepEqual(batches, [['a']]);
  await second.promise;
  assert.deepEqual(batches, [['a'], ['b']]);
});

const nothing = defineWrite('test.nothing', async () => undefined);

function unit(agentId: string, about: string | null): Unit {
  const request = { name: 'test.nothing', input: { agentId }, now: 0, ticket: undefined };
  return { write: nothing, request, about, locks: null, waitsFor: null, done: Promise.withResolvers() };
}

function agentOf({ request }: Pick<Unit, 'request'>): string {
  return (request.input as { agentId: string }).agentId;
}

test('a site of IPv6 has one share of the time, however many of its networks call', async (t) => {
  const { work } = mockTime(t);
  const ctx = {
    config: loadConfig({ TRUST_PROXY: 'loopback', BASE_URL: 'http://localhost:3000' }),
    secretKey: Buffer.alloc(32),
  };
  const ofSites = clientsOf(ctx, createAddressReader(ctx));
  const order: string[] = [];
  const turns = createTurns(ofSites, { areComing: () => false });
  const handle = turns.inTurns(({ url = '' }) => {
    work();
    order.push(url);
  });
  const call = (address: string, url: string) => {
    const request = requestOf(
      url,
      Object.defineProperty(new Socket(), 'remoteAddress', { value: '127.0.0.1' }),
    );
    request.headers['x-forwarded-for'] = address;
    handle(request, new ServerResponse(request));
  };
  // The first takes all of a slice.
  call('2001:db8:1::1', 'first');
  for (let n = 1; n <= 20; n++) call(`2001:db8:1:${n.toString(16)}::1`, `site-${n}`);
  for (const n of [1, 2]) call('2001:db8:2::1', `other-${n}`);
  for (const n of [1, 2]) call(`192.0.2.${n}`, `v4-${n}`);
  while (order.length < 25) await new Promise(setImmediate);
  const last = Math.max(...['other-2', 'v4-1', 'v4-2'].map((url) => order.indexOf(url)));
  assert.ok(last < 8, order.join(' '));
});

test('of what comes by thousands the oldest and the newest are done by turns, and what else is due goes between', async (t) => {
  const { work } = mockTime(t);
  const inSlices = createSlices();
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  setImmediate(() => order.push('other'));
  for (let n = 0; n < 4; n++) {
    inSlices(() => {
      work();
      order.push(String(n));
      if (order.length === 5) done.resolve();
    });
  }
  await done.promise;
  assert.deepEqual(order, ['0', 'other', '1', '3', '2']);
});

describe('long work', () => {
  /** Numbers of works, in the order in which their parts were done. */
  async function inParts(
    counts: readonly number[],
    part: () => void,
    order: number[] = [],
  ): Promise<number[]> {
    const works = counts.map(async (count, work) => {
      const nextTurn = longWork();
      for (let n = 0; n < count; n++) {
        await nextTurn();
        part();
        order.push(work);
      }
    });
    await Promise.all(works);
    return order;
  }

  test('goes on in a turn of the event loop as far as it has time, however many there are', async (t) => {
    const { work } = mockTime(t);
    for (const [part, most] of [
      [work, 1],
      [() => undefined, 32],
    ] as const) {
      const order: number[] = [];
      const all = inParts(Array<number>(100).fill(2), part, order);
      const inTurn: number[] = [];
      for (let before = 0; order.length < 200; before = order.length) {
        await new Promise(setImmediate);
        inTurn.push(order.length - before);
      }
      await all;
      assert.equal(Math.max(...inTurn), most);
    }
  });

  test('that is short does not wait for what is long, nor the other way round', async (t) => {
    const { work } = mockTime(t);
    const long = Array<number>(20).fill(10);
    const order: number[] = [];
    const all = inParts(long, work, order);
    while (order.length < 60) await new Promise(setImmediate);
    const before = order.length;
    await inParts([3], work);
    assert.ok(order.length - before <= 6, `waited for ${order.length - before} parts of others`);
    await all;
    // Short work goes on coming in: one that is long is done nevertheless.
    const one = inParts([10], work);
    const stop = new AbortController();
    const others = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!stop.signal.aborted) await inParts([1], work);
      }),
    );
    await one;
    stop.abort();
    await others;
  });
});

/** So many connections to a server, and the most bytes that it reads from them in one turn until it has read all. */
async function connectTo(server: Server, clients: number, t: TestContext) {
  const accepted: Socket[] = [];
  server.on('connection', (socket) => {
    accepted.push(socket);
    prepareParser(server, socket, () => 'address');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const open = Array.from({ length: clients }, () => connect((server.address() as AddressInfo).port));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });

  async function mostInTurn(all: number): Promise<number> {
    let [before, most] = [0, 0];
    while (before < all) {
      await new Promise(setImmediate);
      const now = accepted.reduce((sum, socket) => sum + socket.bytesRead, 0);
      most = Math.max(most, now - before);
      before = now;
    }
    return most;
  }
  return { open, mostInTurn };
}

test('of bodies that nobody wants, little is read in one turn of the event loop, and all in the end', async (t) => {
  const [clients, bytes] = [40, 2 * 1024 * 1024];
  const readOnAfterAnswer = createReadOn(() => 'address');
  const server = createServer((request, response) => {
    readOnAfterAnswer(request, response);
    response.writeHead(503).end();
  });
  const { open, mostInTurn } = await connectTo(server, clients, t);
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;
  const bodies = open.map(async (socket) => {
    socket.resume();
    await once(socket, 'connect');
    socket.write(head);
    // Answered: what follows is not wanted.
    await once(socket, 'data');
    return socket;
  });
  for (const socket of await Promise.all(bodies)) socket.write(Buffer.alloc(bytes));
  const most = await mostInTurn(clients * bytes);
  // A packet of each connection that had nothing to read before, and of those whose turn it is.
  assert.ok(most <= (clients + 16) * 64 * 1024, `${most} bytes`);
});

test('of what a client sends without asking for anything little is read in one turn of the event loop', async (t) => {
  const [clients, bytes] = [8, 4 * 1024 * 1024];
  const server = createServer();
  const { open, mostInTurn } = await connectTo(server, clients, t);
  await Promise.all(open.map((socket) => once(socket, 'connect')));
  // HTTP lets empty lines come before a request.
  for (const socket of open) socket.write('\r\n'.repeat(bytes / 2));
  const most = await mostInTurn(clients * bytes);
  assert.ok(most <= (clients + 16) * 64 * 1024, `${most} bytes`);
});

test('a connection that waits for its turn is not read when a part of its body is taken', async (t) => {
  const come = Promise.withResolvers<IncomingMessage>();
  const server = createServer({ highWaterMark: 1_024 }, (request, response) => {
    if (request.url === '/waits') come.resolve(request);
    else request.resume();
    request.once('end', () => response.end());
  });
  const { open } = await connectTo(server, 2, t);
  await Promise.all(open.map((socket) => once(socket, 'connect')));
  const chunks = `1f4\r\n${'x'.repeat(500)}\r\n`.repeat(4);
  const begin = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
  const [first, waiting] = open as [Socket, Socket];
  // Nobody has a turn meanwhile.
  const coming = t.mock.method(arrivals, 'areComing', () => true);
  first.write(`${begin('/first')}0\r\n\r\n`);
  await once(first, 'data');
  waiting.write(begin('/waits'));
  const request = await come.promise;
  const { bytesRead } = request.socket;
  waiting.write(`${chunks}0\r\n\r\n`);
  // Node has paused it, since more has come than it keeps, and wants to read on now.
  await once(request.resume(), 'resume');
  await someTurns();
  assert.equal(request.readableLength, 0);
  assert.equal(request.socket.bytesRead, bytesRead);
  coming.mock.restore();
  await once(waiting, 'data');
});

test('what reads bodies leaves the next one, and other users of a parser, alone', async (t) => {
  const answers: Promise<void>[] = [];
  const server = createServer((request, response) => {
    const [before] = answers.splice(0);
    if (request.method === 'GET') {
      response.write('a');
      void before?.then(() => response.end('b'));
      return;
    }
    let body = '';
    request.setEncoding('utf8').on('data', (data: string) => (body += data));
    request.once('end', () => {
      // It is over: nothing more of it comes.
      dropBody(request);
      response.end(body);
    });
  });
  server.on('connection', (socket) => prepareParser(server, socket, () => 'address'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  for (const text of ['first', 'second']) {
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
    socket.write(`${text.length}\r\n${text}\r\n0\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), new RegExp(`${text}$`));
  }
  socket.end();
  await once(socket, 'close');
  // Node gives its parser to the next that asks, here a client: it gets each chunk when it comes.
  const first = Promise.withResolvers<void>();
  answers.push(first.promise);
  const [response] = (await once(get({ port, agent: false }), 'response')) as [IncomingMessage];
  let text = '';
  for await (const data of response) {
    text += String(data);
    first.resolve();
  }
  assert.equal(text, 'ab');
});

test('an owner of many documents is slow only if they take long', () => {
  const turns = new Turns();
  const task = (owner: string) => ({
    job: { kind: 'post', markdown: '' } as const,
    owner,
    resolve() {},
    reject() {},
  });
  const render = (owner: string, milliseconds: number, times: number) => {
    for (let n = 0; n < times; n++) {
      const each = task(owner);
      turns.add(each);
      turns.began(each, 'quick');
      turns.ended(each, 'quick', milliseconds, false);
    }
  };
  render('many', 5, 1_000);
  render('long', 300, 3);
  for (const [owner, lane] of [
    ['many', 'quick'],
    ['long', 'patient'],
  ] as const) {
    const next = task(owner);
    assert.equal(turns.mayFollow(next), lane === 'quick');
    turns.add(next);
    assert.equal(turns.first(lane), next);
    turns.remove(next);
  }
});

test('documents that wait to be rendered are bounded, and those of one owner by half of that', async (t) => {
  const renderer = createRenderer({ threads: 1, maxWaiting: 4, longestMs: 600_000 });
  t.after(() => renderer.close());
  const full = (error: unknown) =>
    error instanceof AppError &&
    error.code === 'unavailable' &&
    error.extra.retryAfter === 1 &&
    error.extra.uncounted === true;
  const first = ['ada', 'ada', 'bob'].map((owner) => renderer.renderPost('a', owner));
  await assert.rejects(renderer.renderPost('a', 'ada'), full);
  first.push(renderer.renderPost('a', 'eve'));
  await assert.rejects(renderer.renderPost('a', 'noa'), full);
  assert.equal((await Promise.all(first)).length, 4);
});

test('stored texts are read when it is their turn: a thread has those of one document', async (t) => {
  const renderer = createRenderer({ threads: 1, longestMs: 600_000 });
  t.after(() => renderer.close());
  let inMemory = 0;
  let most = 0;
  const order: string[] = [];
  const texts = (name: string, bytes: number) => ({
    bytes,
    read: async () => {
      order.push(name);
      // Those before have been answered by then.
      await delay(1);
      most = Math.max(most, ++inMemory);
      if (name === 'lost') throw new AppError('not_found', 'It is not there any more.');
      return name;
    },
  });
  const render = (name: string, owner: string, bytes = 1_000, signal?: AbortSignal) =>
    renderer.renderPost(texts(name, bytes), owner, signal).finally(() => inMemory--);
  const names = Array.from({ length: 100 }, (_, at) => `${at}`);
  // Large ones have the patient thread, and what is sent has a place behind a document that is read.
  const sent = names.map((name, at) => render(name, `owner ${at % 5}`, at % 10 === 0 ? 500_000 : undefined));
  const leaving = new AbortController();
  const left = renderer.renderPost(texts('left', 1_000), 'owner 1', leaving.signal);
  const lost = assert.rejects(render('lost', 'owner 2'), { code: 'not_found' });
  const whole = names.map((name) => renderer.renderPost(name, 'other'));
  leaving.abort();
  await assert.rejects(left);
  const posts = await Promise.all([...sent, ...whole]);
  posts.forEach(({ html }, at) => assert.equal(html, `<p dir="auto">${names[at % 100]}</p>\n`));
  await lost;
  assert.deepEqual(order.toSorted(), [...names, 'lost'].toSorted());
  // One in each of the two lanes.
  assert.ok(most <= 2, `${most} at once`);
});

test('a stored text that is not read in time leaves its thread to others', async (t) => {
  const renderer = createRenderer({ threads: 1, deadlineMs: 100, longestMs: 300 });
  t.after(() => renderer.close());
  /** A thread may need longer than that to start. */
  const untilRendered = async (): Promise<string> => {
    const post = await renderer.renderPost('a', 'bob').catch(() => null);
    return post?.html ?? untilRendered();
  };
  await untilRendered();
  const never = { bytes: 1, read: () => new Promise<string>(() => {}) };
  await assert.rejects(renderer.renderPost(never, 'ada'), { code: 'unavailable' });
  assert.equal(await untilRendered(), '<p dir="auto">a</p>\n');
});
