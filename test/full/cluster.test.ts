import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from '../support/http.ts';
import { startLoad } from '../support/load.ts';
import { freePort, isAlive, quickLoad, spawnServer, type ServerProcess } from '../support/processes.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const script = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

let dir = '';
let last = 0;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'masthead-cluster-'));
});
after(async () => {
  for (const server of started) server.kill('SIGKILL');
  await rm(dir, { recursive: true });
});
const started: ServerProcess[] = [];
const freshDir = () => join(dir, String(++last));

describe('WORKERS: several processes on one port', () => {
  for (const engine of ['sqlite', 'postgres'] as const) {
    test(`${engine}: all are replaced on SIGHUP, and no request fails meanwhile`, async () => {
      const server = await start({ ...(await environment(engine)), WORKERS: '2' });
      const pages = () => ({ path: '/' });
      const load = startLoad(server.baseUrl, { clients: 4, next: pages, keepAlive: false });
      const keptLoad = startLoad(server.baseUrl, { clients: 4, next: pages, keepAlive: true });
      const first = workersOf(server);
      assert.equal(first.length, 2);
      await load.more(20);
      server.kill('SIGHUP');
      await until(() => server.output().includes('all workers are replaced'));
      await Promise.all([load.more(20), keptLoad.more(20)]);
      assert.deepEqual([await load.stop(), await keptLoad.stop()], [[], []]);
      const second = workersOf(server);
      assert.equal(second.length, 2);
      assert.ok(first.every((pid) => !second.includes(pid) && !isAlive(pid)));
      assert.equal(await server.stop(), 0);
      assert.ok(second.every((pid) => !isAlive(pid)));
    });
  }

  test('one that dies is replaced, and the others serve meanwhile', async () => {
    const internal = await freePort();
    const inside = async (path: string) => (await request(`http://127.0.0.1:${internal}`, { path })).status;
    const server = await start({
      ...(await environment('sqlite')),
      WORKERS: '2',
      INTERNAL_PORT: String(internal),
    });
    const workers = workersOf(server);
    const counted = async () => {
      const { text } = await request(`http://127.0.0.1:${internal}`, { path: '/metrics' });
      return Number(/^masthead_http_requests_total\{route="\/healthz",.*\} (\d+)$/m.exec(text)?.[1]);
    };
    for (let n = 0; n < 10; n++) await request(server.baseUrl, { path: '/healthz' });
    assert.equal(await counted(), 10, 'of both workers');
    process.kill(workers[0] ?? 0, 'SIGKILL');
    await until(() => server.output().includes('a worker ended by itself and is replaced'));
    assert.equal((await request(server.baseUrl, { path: '/readyz' })).status, 200);
    // Of the private listener, which the supervisor has, the other worker answers too.
    const privately = [
      '/healthz',
      '/readyz',
      '/-/tls-check?domain=localhost',
      '/-/tls-check?domain=x.example',
    ];
    assert.deepEqual(await Promise.all(privately.map(inside)), [200, 200, 200, 404]);
    await until(() => workersOf(server).length === 2);
    assert.ok(workersOf(server).includes(workers[1] ?? 0));
    assert.equal(await counted(), 10, 'also of the one that died');
    assert.equal(await server.stop(), 0);
  });

  test('the block comes once, before the log, whose lines name their worker', async () => {
    const server = await start({ ...(await environment('sqlite')), WORKERS: '2' });
    assert.equal(await server.stop(), 0);
    const [block = '', logged = ''] = server.output().split(/\n(?=\{)(.*)/s);
    assert.match(block, /^Masthead \d/);
    assert.ok(block.includes(`  listening  127.0.0.1:${server.port}\n`));
    assert.equal(server.output().split('Masthead ').length, block.split('Masthead ').length);
    const lines = logged.trimEnd().split('\n');
    const stopping = lines.map((line) => JSON.parse(line)).filter(({ message }) => message === 'stopping');
    assert.deepEqual(new Set(stopping.map(({ worker }) => worker)), new Set([undefined, 1, 2]));
  });

  const faults: [what: string, line: RegExp, env: () => Promise<Record<string, string>>][] = [
    [
      'the database is none',
      /^\S+ is not an SQLite database: [^\n]+\n$/,
      async () => {
        const file = join(dir, 'not-a-database');
        await writeFile(file, 'not a database, but long enough to be taken for one'.repeat(100));
        return { PORT: '0', DATABASE_URL: `sqlite:${file}` };
      },
    ],
    [
      'the port is taken',
      /^Port \d+ is already in use: [^\n]+\n$/,
      async () => ({ PORT: String((await start({ DATA_DIR: freshDir() })).port) }),
    ],
  ];
  for (const [what, line, prepare] of faults) {
    test(`a start that cannot work, since ${what}, ends with exit code 1 and one line`, async () => {
      const given = { DATA_DIR: freshDir(), WORKERS: '3', LOG_LEVEL: 'warn', ...(await prepare()) };
      const env = { ...quickLoad(), ...given };
      const ended = await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
        execFile(process.execPath, [script, 'serve'], { env }, (error, stdout, stderr) =>
          resolve({ code: error?.code, stdout, stderr }),
        );
      });
      assert.match(ended.stderr, line);
      assert.deepEqual([ended.code, ended.stdout], [1, '']);
    });
  }

  test('workers end when their supervisor is killed', async () => {
    const server = await start({ ...(await environment('sqlite')), WORKERS: '2' });
    const workers = workersOf(server);
    process.kill(server.pid, 'SIGKILL');
    await until(() => workers.every((pid) => !isAlive(pid)));
  });

  async function start(env: Readonly<Record<string, string>>): Promise<ServerProcess> {
    const server = await spawnServer({ env: { PORT: String(await freePort()), ...env }, script });
    started.push(server);
    await until(() => server.output().includes('Masthead '));
    return server;
  }

  async function environment(engine: 'sqlite' | 'postgres'): Promise<Record<string, string>> {
    return {
      DATA_DIR: freshDir(),
      ...(engine === 'postgres'
        ? { DATABASE_URL: await (await sharedPostgres()).createDatabase(), SECRET: 's'.repeat(32) }
        : {}),
    };
  }
});

/** Process ids of the workers that a supervisor has at this moment. */
function workersOf({ pid }: ServerProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(20);
}
