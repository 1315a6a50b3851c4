import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { connect, createServer, Socket } from 'node:net';
import type { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../src/cli/main.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createDrain } from '../../src/process/drain.ts';
import { createLog } from '../../src/platform/log.ts';
import { startServer } from '../../src/server.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { request } from '../support/http.ts';
import { freePort, portOf, quickLoad, spawnServer, type ServerProcess } from '../support/processes.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const script = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Whether nobody took the connection: also one that waited to be taken when the listener was closed. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ECONNREFUSED', 'ECONNRESET'].includes(String(error.code));

let dir = '';
let last = 0;
before(async () => {
  dir = scratchFolder('server');
});

describe('a start that cannot work ends with exit code 1 and one line', { concurrency: 2 }, () => {
  const cases: [what: string, message: RegExp, prepare: (dataDir: string) => Promise<Case>][] = [
    [
      'the port is taken',
      /^Port \d+ is already in use: set PORT, or stop the program that holds it\.$/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        const holder = createServer().listen(0, '127.0.0.1');
        await once(holder, 'listening');
        return { env: { PORT: String(portOf(holder)) }, release: () => void holder.close() };
      },
    ],
    [
      'HOST is not an address of this machine',
      /^HOST 192\.0\.2\.1 is not an address of this machine/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        return { env: { HOST: '192.0.2.1' } };
      },
    ],
    [
      'there is no database and none may be made',
      /^There is no database at .*\/masthead\.db: is the data volume mounted\?/,
      async () => ({ args: ['serve', '--existing'] }),
    ],
    [
      'the database is locked by another process',
      /^The database .* is locked by another process/,
      async (dataDir) => {
        const holder = await openDatabase(dataDir);
        holder.exec('begin immediate');
        return { release: () => holder.close() };
      },
    ],
    [
      'the database is newer than the program',
      /^The database is newer than this program \(it has the schema step '9999-later'\)/,
      async (dataDir) => {
        const later = await openDatabase(dataDir);
        later.exec("insert into migrations (name, applied_at) values ('9999-later', '')");
        later.close();
        return {};
      },
    ],
    [
      'the database is lost',
      /^The database .* is missing, but .*\/instance says that this instance has one/,
      async (dataDir) => {
        await rm(await madeDatabase(dataDir));
        return {};
      },
    ],
    [
      'the database is empty',
      /^The database .* is empty, but .*\/instance says that this instance has one/,
      async (dataDir) => {
        await truncate(await madeDatabase(dataDir), 0);
        return {};
      },
    ],
    [
      'the database is cut short',
      /^The database .* is damaged/,
      async (dataDir) => {
        await truncate(await madeDatabase(dataDir), 20_000);
        return {};
      },
    ],
    [
      'the header of the database is overwritten',
      /^.*masthead\.db is not an SQLite database/,
      async (dataDir) => {
        await overwrite(await madeDatabase(dataDir), 0);
        return {};
      },
    ],
    [
      'the database is another kind of file',
      /^.*masthead\.db is not an SQLite database/,
      async (dataDir) => {
        await mkdir(dataDir);
        await writeFile(join(dataDir, 'masthead.db'), 'Shopping list: milk, bread. '.repeat(100));
        return {};
      },
    ],
    [
      'the database belongs to another instance',
      /^The database .* belongs to instance [0-9a-f-]{36}, but .*\/instance names somebody-else/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        await writeFile(join(dataDir, 'instance'), 'somebody-else\n');
        return {};
      },
    ],
    [
      'the secret was cut short',
      /^The secret in .*\/secret is shorter than 32 characters/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        await truncate(join(dataDir, 'secret'), 10);
        return {};
      },
    ],
    [
      'the secret is lost',
      /^There is no secret at .*\/secret, and SECRET is not set: put it back from your backup/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        await rm(join(dataDir, 'secret'));
        return { args: ['serve', '--existing'] };
      },
    ],
    [
      'the secret is another, for the first of several workers',
      /^SECRET is not the one that this database was served with: put that one back from your backup/,
      async (dataDir) => {
        await madeDatabase(dataDir);
        return { env: { SECRET: 'w'.repeat(32), WORKERS: '2' } };
      },
    ],
  ];
  for (const [what, message, prepare] of cases) {
    test(`because ${what}`, async () => {
      const dataDir = freshDir();
      const { args = ['serve'], env = {}, release = () => {} } = await prepare(dataDir);
      const port = String(await freePort());
      const run = await mastheadProcess(args, { DATA_DIR: dataDir, PORT: port, ...env });
      release();
      assert.deepEqual([run.code, run.stdout], [1, '']);
      assert.match(run.stderr, /^[^\n]+\n$/);
      assert.match(run.stderr.trimEnd(), message);
    });
  }
});

describe('a running server', () => {
  test('finds damage in the middle of its database, says so once, and goes on reading', async () => {
    const dataDir = freshDir();
    const file = await madeDatabase(dataDir);
    const database = openSqlite(file);
    const page = Number(
      database.prepare("select rootpage from sqlite_master where name = 'comments'").get()?.['rootpage'],
    );
    const size = Number(database.prepare('pragma page_size').get()?.['page_size']);
    database.close();
    await overwrite(file, (page - 1) * size);

    const server = await spawnServer({ env: { DATA_DIR: dataDir }, script });
    await until(() => server.output().includes('the database is damaged'));
    const probe = await request(server.baseUrl, { path: '/readyz' });
    assert.deepEqual([probe.status, probe.at('writable')], [200, false]);
    const refused = await register(server.baseUrl, 'ada');
    assert.deepEqual([refused.status, refused.at('code')], [503, 'read_only']);
    assert.equal((await request(server.baseUrl, { path: '/api/posts' })).status, 200);
    assert.equal(await server.stop(), 0);
    assert.equal(server.output().split('the database is damaged').length, 2);
  });

  test('answers 503 for what a damaged page holds, refuses writes, and serves all else', async () => {
    const dataDir = freshDir();
    const env = { DATA_DIR: dataDir };
    const first = await spawnServer({ env, script });
    const key = await verifiedKey(first, env, 'ada');
    const lost = await publishLong(first.baseUrl, key, 'lost');
    const sound = await publishLong(first.baseUrl, key, 'sound');
    await first.stop();
    const file = join(dataDir, 'masthead.db');
    const database = openSqlite(file);
    database.exec('vacuum; pragma wal_checkpoint(truncate)');
    database.close();
    const bytes = await readFile(file);
    const [lostPage, soundPage] = ['lost', 'sound'].map((name) => pageOf(bytes, `zz${name}zz</p>`));
    assert.notEqual(lostPage, soundPage);
    await overwrite(file, lostPage ?? 0);

    const server = await spawnServer({ env: { ...env, PAGE_CACHE_MB: '0' }, script });
    const auth = { authorization: `Bearer ${key}` };
    const host = `ada.localhost:${server.port}`;
    const page = await request(server.baseUrl, { path: '/lost', host });
    assert.deepEqual([page.status, page.headers['retry-after']], [503, '60']);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    const call = await request(server.baseUrl, { path: `/api/posts/${lost}`, headers: auth });
    assert.deepEqual([call.status, call.at('code'), call.headers['retry-after']], [503, 'unavailable', '60']);
    const params = { name: 'get_post', arguments: { post: lost } };
    const tool = await sendJson(server.baseUrl, '/mcp', {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params,
    });
    assert.match(tool.text, /unavailable/);
    const write = await sendJson(server.baseUrl, '/api/publish', { title: 'New', content: 'c' }, auth);
    assert.deepEqual([write.status, write.at('code')], [503, 'read_only']);

    assert.equal((await request(server.baseUrl, { path: '/sound', host })).status, 200);
    assert.equal((await request(server.baseUrl, { path: `/api/posts/${sound}` })).status, 200);
    assert.equal(await server.stop(), 0);
    assert.equal(server.output().split('the database is damaged').length, 2, server.output());
    assert.doesNotMatch(server.output(), /not foreseen|"stack"/);
  });

  test('answers 503 where the search index is damaged', async () => {
    const dataDir = freshDir();
    const env = { DATA_DIR: dataDir };
    const first = await spawnServer({ env, script });
    const key = await verifiedKey(first, env, 'ada');
    await publishLong(first.baseUrl, key, 'lost');
    await first.stop();
    const file = join(dataDir, 'masthead.db');
    await damageTable(file, 'post_search_data');

    const server = await spawnServer({ env, script });
    for (let i = 0; i < 3; i++) {
      const found = await request(server.baseUrl, { path: '/api/search?q=words' });
      assert.deepEqual([found.status, found.at('code')], [503, 'unavailable']);
    }
    assert.equal((await request(server.baseUrl, { path: '/api/posts' })).status, 200);
    assert.equal(await server.stop(), 0);
    assert.equal(server.output().split('the database is damaged').length, 2, server.output());
    assert.doesNotMatch(server.output(), /search process|not foreseen/);
  });

  test('answers 503 where the counter of changes is damaged', async () => {
    const dataDir = freshDir();
    const env = { DATA_DIR: dataDir };
    const file = await madeDatabase(dataDir);
    await damageTable(file, 'sqlite_sequence');

    const server = await spawnServer({ env, script });
    const list = await request(server.baseUrl, { path: '/api/posts' });
    assert.deepEqual([list.status, list.at('code')], [503, 'unavailable']);
    assert.equal((await request(server.baseUrl, { path: '/robots.txt' })).status, 200);
    assert.equal(await server.stop(), 0);
    assert.equal(server.output().split('the database is damaged').length, 2, server.output());
    assert.doesNotMatch(server.output(), /not foreseen|"stack"/);
  });

  test('prints where it is before the first line of its log', async () => {
    const server = await spawnServer({ env: { DATA_DIR: freshDir(), BASEURL: 'x' }, script });
    assert.equal(await server.stop(), 0);
    const [block = '', logged = ''] = server.output().split(/\n(?=\{)(.*)/s);
    assert.match(block, /^Masthead \d/);
    assert.ok(block.includes(`  address    http://localhost:${server.port}\n`));
    const messages = logged
      .trimEnd()
      .split('\n')
      .map((line): string => JSON.parse(line).message);
    assert.deepEqual(
      messages.filter((message) => message !== 'the database schema was brought up to date'),
      ['BASEURL is not a setting; did you mean BASE_URL?', 'stopping', 'stopped'],
    );
  });

  test('takes a free port for PORT=0 and gives it back', async () => {
    const config = loadConfig({ DATA_DIR: freshDir(), PORT: '0' });
    const server = await startServer(config, { log: createLog('silent') });
    assert.equal(server.config.site.baseUrl, `http://localhost:${server.port}`);
    const registered = await register(server.config.site.baseUrl, 'ada');
    assert.equal(registered.status, 200);
    await Promise.all([server.close(), server.close()]);
    await assert.rejects(request(server.config.site.baseUrl), { code: 'ECONNREFUSED' });
  });

  test('serves without writing where READ_ONLY is on', async () => {
    const dataDir = freshDir();
    await madeDatabase(dataDir);
    const config = loadConfig({ DATA_DIR: dataDir, PORT: String(await freePort()), READ_ONLY: 'on' });
    const server = await startServer(config, { log: createLog('silent') });
    const url = server.config.site.baseUrl;
    const probe = await request(url, { path: '/readyz' });
    assert.deepEqual([probe.status, probe.at('writable')], [200, false]);
    assert.equal((await register(url, 'ada')).at('code'), 'read_only');
    await server.close();
  });
});

describe('SIGTERM', () => {
  test('to all processes of the service stops it without an error, as to its first', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const server = await spawnServer({ env: { DATA_DIR: freshDir() }, script });
      const found = await request(server.baseUrl, {
        path: '/api/search?q=word',
        host: `localhost:${server.port}`,
      });
      assert.equal(found.status, 200, found.text);
      process.kill(-server.pid, signal);
      assert.equal(await server.exited, 0);
      assert.doesNotMatch(server.output(), /"level":"error"/);
    }
  });

  test('under load leaves no answer cut and no stored post unanswered', async () => {
    const dataDir = freshDir();
    const env = { DATA_DIR: dataDir, LIMIT_PUBLISH: '0' };
    const server = await spawnServer({ env, script });
    const key = await verifiedKey(server, env, 'ada');
    const told: string[] = [];
    const failures: unknown[] = [];
    const client = async (name: number): Promise<void> => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      try {
        for (let n = 0; ; n++) {
          const title = `Post ${name} ${n}`;
          const answer = await publish(server.baseUrl, key, title, agent);
          assert.equal(answer.status, 201);
          told.push(title);
        }
      } catch (error) {
        failures.push(error);
      } finally {
        agent.destroy();
      }
    };
    const clients = Array.from({ length: 12 }, (_, name) => client(name));
    await until(() => told.length >= 60);
    assert.equal(await server.stop(), 0);
    await Promise.all(clients);

    const database = openSqlite(join(dataDir, 'masthead.db'), { readOnly: true });
    const stored = database
      .prepare('select title from posts')
      .all()
      .map((row) => String(row['title']));
    database.close();
    assert.deepEqual(stored.toSorted(), told.toSorted());
    for (const failure of failures) {
      assert.ok(isRefusal(failure), String(failure));
    }
  });

  test('is heard from the moment that the server is ready', async () => {
    const others = process.listenerCount('SIGTERM');
    const env = { DATA_DIR: freshDir(), PORT: String(await freePort()) };
    const said: string[] = [];
    const out = (text: string) => {
      said.push(text);
      assert.ok(process.listenerCount('SIGTERM') > others, 'it is not heard yet');
      process.emit('SIGTERM', 'SIGTERM');
    };
    assert.equal(await runCommandLine(['serve'], { out, err: assert.fail, env }), 0);
    assert.match(said.join(''), /^Masthead \d/);
  });

  test('turns readiness off first, and serves on until a proxy can have noticed', async () => {
    const server = await spawnServer({ env: { DATA_DIR: freshDir(), TRUST_PROXY: 'loopback' }, script });
    server.kill('SIGTERM');
    await until(() => server.output().includes('"stopping"'));
    const probing = () => request(server.baseUrl, { path: '/readyz' });
    // A proxy has to see first that a process that was restarted just before is back.
    let probe = await probing();
    assert.deepEqual([probe.status, probe.at('state')], [200, 'ready']);
    while (probe.status === 200) probe = await probing();
    assert.deepEqual([probe.status, probe.at('state')], [503, 'draining']);
    const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const list = () => request(server.baseUrl, { path: '/api/posts', agent: kept });
    const first = await list();
    assert.deepEqual([first.status, first.headers.connection], [200, 'keep-alive']);
    // Whoever has a connection is served on it after new ones are refused, once.
    await assert.rejects(async () => {
      for (;;) await request(server.baseUrl, { path: '/healthz' });
    }, isRefusal);
    const final = await list();
    assert.deepEqual([final.status, final.headers.connection], [200, 'close']);
    assert.equal(await server.exited, 0);
  });

  test('closes a connection also with the answer to a body that was asked for', async () => {
    const server = await spawnServer({ env: { DATA_DIR: freshDir(), TRUST_PROXY: 'loopback' }, script });
    const socket = connect(server.port, '127.0.0.1').setEncoding('latin1');
    const ask = async (text: string) => {
      socket.write(text);
      return String((await once(socket, 'data'))[0]);
    };
    const head = `Host: localhost:${server.port}\r\n`;
    assert.match(await ask(`GET /healthz HTTP/1.1\r\n${head}\r\n`), /\r\nconnection: keep-alive\r\n/i);
    server.kill('SIGTERM');
    await assert.rejects(async () => {
      for (;;) await request(server.baseUrl, { path: '/healthz' });
    }, isRefusal);
    const expecting = `${head}Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n`;
    assert.match(await ask(`POST /api/recover HTTP/1.1\r\n${expecting}`), /^HTTP\/1\.1 100 /);
    assert.match(await ask('{}'), /^HTTP\/1\.1 400 [^]*\r\nconnection: close\r\n/i);
    assert.equal(await server.exited, 0);
  });

  test('does not wait for a moment without requests for long', async () => {
    const server = http.createServer().removeAllListeners('request').listen(0, '127.0.0.1');
    await once(server, 'listening');
    const drain = createDrain(server, createLog('silent'));
    const response = new http.ServerResponse(new http.IncomingMessage(new Socket()));
    let requests = 0;
    let closed = false;
    const arrive = () => {
      if (closed) return;
      // A turn takes a while under load.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      requests++;
      server.emit('request', response.req, response);
      setImmediate(arrive);
    };
    arrive();
    await drain({ ms: 10, always: false }, async () => (closed = true));
    assert.ok(requests < 900, `${requests} requests`);
  });

  test('does not wait for connections that ask nothing', async () => {
    const server = await spawnServer({ env: { DATA_DIR: freshDir() }, script });
    const silent = connect(server.port, '127.0.0.1');
    await once(silent, 'connect');
    const kept = new http.Agent({ keepAlive: true });
    await request(server.baseUrl, { path: '/healthz', agent: kept });
    assert.equal(await server.stop(), 0);
    assert.doesNotMatch(server.output(), /cut off/);
    silent.destroy();
    kept.destroy();
  });

  test('a second time ends the process at once', async () => {
    const server = await spawnServer({ env: { DATA_DIR: freshDir() }, script });
    const slow = connect(server.port, '127.0.0.1');
    slow.on('error', () => {});
    slow.write(
      'POST /api/register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    );
    await request(server.baseUrl, { path: '/healthz' });
    server.kill('SIGTERM');
    await until(() => server.output().includes('"stopping"'));
    server.kill('SIGTERM');
    assert.equal(await server.exited, 1);
    slow.destroy();
  });
});

type Case = {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly release?: () => void;
};

function freshDir(): string {
  return join(dir, String(++last));
}

/** Makes a database as a first start does; returns its file. */
async function madeDatabase(dataDir: string): Promise<string> {
  const ignore = () => {};
  assert.equal(
    await runCommandLine(['migrate'], { out: ignore, err: ignore, env: { DATA_DIR: dataDir } }),
    0,
  );
  return join(dataDir, 'masthead.db');
}

/** Overwrites the first page of a table. */
async function damageTable(file: string, table: string): Promise<void> {
  const database = openSqlite(file);
  database.exec('pragma wal_checkpoint(truncate)');
  const root = database.prepare('select rootpage from sqlite_master where name = ?').get(table);
  database.close();
  await overwrite(file, (Number(root?.['rootpage']) - 1) * pageSize);
}

async function openDatabase(dataDir: string): Promise<DatabaseSync> {
  return openSqlite(await madeDatabase(dataDir));
}

const pageSize = 4096;

/** Where the page begins that holds a text, bytes. */
function pageOf(file: Buffer, text: string): number {
  // The first may be in the root, where the row was before there were two pages.
  const at = file.lastIndexOf(text);
  assert.ok(at > 0, text);
  return at - (at % pageSize);
}

/** Publishes a post that fills most of a page of the database, and no more than one; returns its id. */
async function publishLong(baseUrl: string, key: string, slug: string): Promise<string> {
  const content = `${'words '.repeat(160)} zz${slug}zz`;
  const body = { title: slug, slug, content, status: 'published' };
  const answer = await sendJson(baseUrl, '/api/publish', body, { authorization: `Bearer ${key}` });
  assert.equal(answer.status, 201, answer.text);
  return String(answer.at('post.id'));
}

async function overwrite(file: string, offset: number): Promise<void> {
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(100, 0xa5), 0, 100, offset);
  await handle.close();
}

function mastheadProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { env: { ...quickLoad(), ...env }, timeout: 100_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr });
      },
    );
  });
}

function register(baseUrl: string, name: string) {
  return sendJson(baseUrl, '/api/register', { email: `${name}@agents.example`, name, slug: name });
}

async function verifiedKey(
  server: ServerProcess,
  env: Readonly<Record<string, string>>,
  name: string,
): Promise<string> {
  await register(server.baseUrl, name);
  let key = '';
  const code = await runCommandLine(['admin', 'agents', 'verify', name], {
    out: (line) => (key = line),
    err: assert.fail,
    env,
  });
  assert.equal(code, 0);
  return key;
}

function publish(baseUrl: string, key: string, title: string, agent: http.Agent) {
  return sendJson(
    baseUrl,
    '/api/publish',
    { title, content: 'Text' },
    { authorization: `Bearer ${key}` },
    agent,
  );
}

function sendJson(baseUrl: string, path: string, body: object, headers = {}, agent?: http.Agent) {
  return request(baseUrl, {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(agent ? { agent } : {}),
  });
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('what the test waits for did not happen within a minute');
    await delay(10);
  }
}

/** Most connections that Linux lets wait for any server. */
const somaxconn = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
const skip = somaxconn < 4096 && `net.core.somaxconn is ${somaxconn}`;
for (const workers of ['1', '2'])
  test(`a burst of 2,000 connections finds room (WORKERS=${workers})`, { skip }, async (t) => {
    const folder = join(dir, `burst-${workers}`);
    const server = await spawnServer({ env: { DATA_DIR: folder, WORKERS: workers, LOG_LEVEL: 'error' } });
    t.after(() => server.kill('SIGKILL'));
    // It takes none meanwhile, so who finds no room is not connected, however long it waits.
    process.kill(server.pid, 'SIGSTOP');
    const sockets = Array.from({ length: 2_000 }, () =>
      connect(server.port, '127.0.0.1').on('error', () => {}),
    );
    await Promise.all(
      sockets.map((socket) => once(socket, 'connect', { signal: AbortSignal.timeout(20_000) })),
    );
    process.kill(server.pid, 'SIGCONT');
    assert.equal((await request(server.baseUrl, { path: '/readyz' })).status, 200);
    for (const socket of sockets) socket.destroy();
  });
