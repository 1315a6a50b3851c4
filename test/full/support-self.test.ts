import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { scratchFolder } from '../support/scratch-folder.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { rawRequest, request } from '../support/http.ts';
import { query, startPostgres, startStandby } from '../support/postgres.ts';
import { isAlive, portOf, quickLoad, spawnServer } from '../support/processes.ts';

describe('a PostgreSQL cluster', () => {
  test('keeps what was committed through SIGKILL and restart, and leaves no file behind', async () => {
    const cluster = await startPostgres();
    const url = await cluster.createDatabase();
    await query(url, 'create table words (word text)');
    await query(url, 'insert into words values ($1)', ['kept']);

    await cluster.kill();
    await assert.rejects(query(url, 'select 1'), { code: 'ECONNREFUSED' });
    await cluster.restart();
    assert.deepEqual(await query(url, 'select word from words'), [{ word: 'kept' }]);
    await cluster.restart();
    assert.deepEqual(await query(url, 'select word from words'), [{ word: 'kept' }]);

    assert.match(cluster.logs(), /automatic recovery in progress/);
    await cluster.stop();
    await assert.rejects(query(url, 'select 1'), { code: 'ECONNREFUSED' });
    assert.equal(existsSync(cluster.socketDir), false);
  });

  test('has a synchronous standby that lost nothing when it is promoted', async () => {
    const primary = await startPostgres();
    const url = await primary.createDatabase();
    const standby = await startStandby(primary, { synchronous: true });
    const standbyUrl = standby.url(new URL(url).pathname.slice(1));

    // Made after the copy, so only the stream can have brought it; and each commit waited for the standby.
    await query(url, 'create table words (word text)');
    await query(url, 'insert into words values ($1)', ['acknowledged']);
    await primary.kill();
    await assert.rejects(query(standbyUrl, 'create table more ()'), { code: '25006' });

    await standby.promote();
    await query(standbyUrl, `insert into words values ('afterwards')`);
    assert.deepEqual(await query(standbyUrl, 'select word from words'), [
      { word: 'acknowledged' },
      { word: 'afterwards' },
    ]);
    await Promise.all([primary.stop(), standby.stop()]);
  });

  test('that cannot start says why in its log', async () => {
    await assert.rejects(startPostgres({ settings: { max_connections: 'many' } }), /max_connections/);
  });
});

describe('the shared cluster', () => {
  test('is one for all test files of a run, each test with a database of its own', async () => {
    const script = `
      import { sharedPostgres } from ${moduleAt('shared-postgres.ts')};
      import { query } from ${moduleAt('postgres.ts')};
      const shared = await sharedPostgres();
      const [row] = await query(await shared.createDatabase(), "select current_database(), 'a' < 'B' as sorted");
      console.log(JSON.stringify({ server: shared.url(), ...row }));`;
    const files = [runModule(script), runModule(script)];
    const answers = await Promise.all(files.map(async (file) => JSON.parse(await firstLine(file))));
    assert.equal(answers[0].server, answers[1].server);
    assert.notEqual(answers[0].current_database, answers[1].current_database);
    assert.deepEqual([answers[0].sorted, answers[1].sorted], [true, true]);
  });
});

describe('a server process', () => {
  const folder = scratchFolder('test');
  const script = join(folder, 'stand-in.mjs');
  before(() => writeFileSync(script, standIn));

  test('is ready when it is returned, sees only the environment given, and stops', async () => {
    const server = await spawnServer({ script, env: { GREETING: 'hello' } });
    const answer = await request(server.baseUrl, { path: '/environment' });
    // What loads programs of tests faster is passed on; see `quickLoad`.
    const seen = Object.keys(Object(answer.json())).filter((name) => !Object.hasOwn(quickLoad(), name));
    assert.deepEqual(seen.toSorted(), ['GREETING', 'HOME', 'MEDIA_DIR', 'PATH', 'PORT']);
    assert.equal(answer.at('GREETING'), 'hello');
    assert.equal(answer.at('PORT'), String(server.port));
    assert.equal(await server.stop(), 7);
    assert.equal(server.output(), `serve on ${server.port}\nasked to stop\n`);
  });

  test('keeps a port that it is given, and ends at SIGKILL', async () => {
    const first = await spawnServer({ script });
    first.kill('SIGKILL');
    assert.equal(await first.exited, 'SIGKILL');
    const second = await spawnServer({ script, env: { PORT: String(first.port) } });
    assert.equal(second.port, first.port);
    await second.stop();
  });

  test('that ends before it is ready is reported with its output', async () => {
    await assert.rejects(spawnServer({ script, args: ['fail'] }), /exit code 3[^]*no such command: fail/);
  });

  test('that is never ready is ended and reported', async () => {
    const never = spawnServer({ script, args: ['never'], readyWithin: 300 });
    await assert.rejects(never, /did not start \(exit code SIGKILL\)/);
  });

  test('and a cluster end with the process that started them, even when that is killed', async () => {
    const parent = runModule(`
      import { startPostgres } from ${moduleAt('postgres.ts')};
      import { spawnServer } from ${moduleAt('processes.ts')};
      const [{ socketDir }, { pid }] = await Promise.all([
        startPostgres(), spawnServer({ script: ${JSON.stringify(script)} })]);
      console.log(JSON.stringify({ socketDir, pid }));
      setInterval(() => {}, 1_000);`);
    const { socketDir, pid } = JSON.parse(await firstLine(parent));
    assert.ok(existsSync(socketDir) && isAlive(pid));
    parent.kill('SIGKILL');
    while (existsSync(socketDir) || isAlive(pid)) await delay(20);
  });
});

describe('the HTTP client', () => {
  const server = http.createServer((received, answer) => {
    answer.setHeader('X-Twice', ['one', 'two']);
    if (received.url === '/cut') {
      answer.writeHead(200, { 'content-length': 10 }).write('half', () => answer.destroy());
      return;
    }
    const chunks: Buffer[] = [];
    received.on('data', (chunk: Buffer) => chunks.push(chunk));
    received.on('end', () => {
      const { method, url, rawHeaders } = received;
      answer.end(JSON.stringify({ method, url, rawHeaders, body: Buffer.concat(chunks).toString() }));
    });
  });
  let baseUrl = '';
  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    baseUrl = `http://127.0.0.1:${portOf(server)}`;
  });
  after(() => server.close());

  test('sends path, host, headers and body as they are', async () => {
    const path = '//api/../x/%2e%2E/?q=%zz';
    const answer = await request(baseUrl, {
      method: 'PUT',
      path,
      host: 'ada.masthead.example:81',
      headers: { 'X-Many': ['1', '2'] },
      body: '"é"',
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.at('method'), 'PUT');
    assert.equal(answer.at('url'), path);
    assert.equal(answer.at('body'), '"é"');
    assert.equal(answer.at('body.nothing.there'), undefined);
    const sent = String(answer.at('rawHeaders'));
    assert.match(sent, /X-Many,1,X-Many,2/);
    assert.match(sent, /host,ada\.masthead\.example:81/);
    assert.match(sent, /content-length,4/);
    assert.equal(answer.headers['x-twice'], 'one, two');
    assert.equal(answer.rawHeaders.filter((name) => name === 'X-Twice').length, 2);
  });

  test('keeps connections with an agent', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let connections = 0;
    server.on('connection', () => connections++);
    for (let call = 0; call < 3; call++) await request(baseUrl, { agent });
    assert.equal(connections, 1);
    agent.destroy();
  });

  test('rejects an answer that is cut short', async () => {
    await assert.rejects(request(baseUrl, { path: '/cut' }), { code: 'ECONNRESET' });
  });

  test('sends raw bytes, and returns all that comes back', async () => {
    const port = Number(new URL(baseUrl).port);
    const closed = await rawRequest(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    assert.match(closed, /^HTTP\/1\.1 200 OK\r\n[^]*"url":"\/"/);
    assert.match(await rawRequest(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.equal(await rawRequest(port, 'GET / HTTP/1.1\r\n', 50), '', 'and nothing when it is silent');
  });

  test('rejects when nothing listens', async () => {
    const closed = createServer();
    await once(closed.listen(0, '127.0.0.1'), 'listening');
    const port = portOf(closed);
    closed.close();
    await assert.rejects(rawRequest(port, ''), { code: 'ECONNREFUSED' });
    await assert.rejects(request(`http://127.0.0.1:${port}`), { code: 'ECONNREFUSED' });
  });
});

describe('the cutting proxy', () => {
  let served = 0;
  const server = http.createServer((_, answer) => {
    served++;
    answer.end('x'.repeat(1_000));
  });
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  /** Whether each of `calls` answers, over connections that are kept, arrived whole. */
  async function fates(share: number, seed: number, calls: number): Promise<boolean[]> {
    const proxy = await startCuttingProxy({ target: portOf(server), share, seed });
    const agent = new http.Agent({ keepAlive: true });
    const arrived: boolean[] = [];
    const earlier = served;
    for (let call = 0; call < calls; call++) {
      const answer = await request(proxy.baseUrl, { agent }).catch(() => undefined);
      arrived.push(answer?.text.length === 1_000);
    }
    agent.destroy();
    await proxy.close();
    const passed = arrived.filter(Boolean).length;
    assert.deepEqual(proxy.counts, { passed, cut: calls - passed });
    assert.equal(served - earlier, calls, 'every request reached the server, once');
    return arrived;
  }

  test('passes every request on, and loses the same share of answers for the same seed', async () => {
    const arrived = await fates(0.3, 42, 200);
    const cut = arrived.filter((whole) => !whole).length;
    assert.ok(cut > 40 && cut < 80, `${cut} of 200`);
    assert.deepEqual(await fates(0.3, 42, 200), arrived);
    assert.notDeepEqual(await fates(0.3, 43, 200), arrived);
  });

  test('loses nothing at a share of 0 and everything at 1', async () => {
    assert.equal((await fates(0, 1, 20)).every(Boolean), true);
    assert.equal((await fates(1, 1, 20)).some(Boolean), false);
  });
});

/** Says what it was called with, serves its environment, and ends with an exit code of its own. */
const standIn = `
import http from 'node:http';
const [, , command] = process.argv;
if (command === 'fail') {
  console.error('no such command: fail');
  process.exit(3);
}
console.log(command + ' on ' + process.env.PORT);
http.createServer((request, answer) => {
  answer.statusCode = command === 'never' ? 503 : 200;
  answer.end(JSON.stringify(process.env));
}).listen(Number(process.env.PORT), '127.0.0.1');
process.on('SIGTERM', () => {
  console.error('asked to stop');
  process.exit(7);
});
`;

function moduleAt(file: string): string {
  return JSON.stringify(new URL(`../support/${file}`, import.meta.url).href);
}

function runModule(source: string): ChildProcess {
  return spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function firstLine(child: ChildProcess): Promise<string> {
  let output = '';
  for await (const chunk of child.stdout ?? []) {
    output += String(chunk);
    if (output.includes('\n')) break;
  }
  return output;
}
