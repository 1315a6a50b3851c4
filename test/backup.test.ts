import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, open, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { loadConfig } from '../src/config/config.ts';
import { backupInto, listBackups } from '../src/db/sqlite/sqlite-backups.ts';
import { backupSqlite } from '../src/db/sqlite/sqlite-copy.ts';
import { createLog } from '../src/platform/log.ts';
import { startServer } from '../src/server.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { masthead } from './support/command-line.ts';
import { request } from './support/http.ts';
import { startInstance, type Instance } from './support/instance.ts';
import { freePort } from './support/processes.ts';
import { openSqlite } from './support/sqlite-file.ts';

let dir = '';
let last = 0;
before(async () => {
  dir = scratchFolder('backup');
});
const fresh = () => join(dir, String(++last));

describe('a backup of a service at work', () => {
  let source: Instance;
  before(async () => {
    source = await startInstance({ variant: 'path', env: { LIMIT_PUBLISH: '0', LIMIT_API: '0' } });
  });
  after(() => source.close());

  test('restores to all that was acknowledged when it began, with equal pages', async () => {
    const agents = await Promise.all(['Ada', 'Grace', 'Alan', 'Kurt'].map((name) => source.agent(name)));
    const published: string[] = [];
    const writing = new AbortController();
    const writers = agents.map(async ({ client, slug }) => {
      for (let n = 0; !writing.signal.aborted; n++) {
        const title = `Post ${n}`;
        await client.publish({ title, content: `Text ${n}\n\n${'word '.repeat(400)}`, status: 'published' });
        published.push(`/${slug}/post-${n}`);
      }
    });
    while (published.length < 40) await new Promise((resolve) => setTimeout(resolve, 5));
    const acknowledged = published.slice();
    const file = fresh();
    const backup = await masthead(['backup', file], { DATA_DIR: source.dataDir });
    writing.abort();
    await Promise.all(writers);
    assert.equal(backup.code, 0, backup.stderr);
    assert.match(backup.stdout, /^Copied the database of instance \S+ to /);
    assert.equal((await stat(file)).mode & 0o777, 0o600);

    const dataDir = fresh();
    await mkdir(dataDir, { mode: 0o700 });
    await copyFile(join(source.dataDir, 'secret'), join(dataDir, 'secret'));
    const restored = await masthead(['restore', file], { DATA_DIR: dataDir });
    assert.deepEqual([restored.code, restored.stderr], [0, '']);
    assert.equal((await stat(join(dataDir, 'masthead.db'))).mode & 0o777, 0o600);
    const examined = await masthead(['doctor', '--json'], { DATA_DIR: dataDir, PORT: '0' });
    assert.equal(examined.code, 0, examined.stdout);

    const PORT = String(await freePort());
    const config = loadConfig({ DATA_DIR: dataDir, VARIANT: 'path', PORT, BASE_URL: source.baseUrl });
    const server = await startServer(config, { existing: true, log: createLog('silent') });
    const host = new URL(source.baseUrl).host;
    try {
      for (const path of acknowledged) {
        const [was, is] = await Promise.all(
          [source.port, server.port].map((port) =>
            request(`http://127.0.0.1:${port}`, { path: `${path}.md`, host }),
          ),
        );
        assert.equal(is?.status, 200, path);
        assert.equal(is?.text, was?.text);
      }
      // What was published meanwhile is there up to some moment, without a gap before it.
      for (const { slug } of agents) {
        const statuses: number[] = [];
        for (const path of published.filter((one) => one.startsWith(`/${slug}/`)))
          statuses.push((await request(`http://127.0.0.1:${server.port}`, { path, host })).status);
        assert.deepEqual(
          statuses,
          statuses.toSorted((one, other) => one - other),
        );
      }
    } finally {
      await server.close();
    }
  });
});

const writeUntilTold = `
  const { parentPort, workerData } = require('node:worker_threads');
  const database = new (require('node:sqlite').DatabaseSync)(workerData, { timeout: 20_000 });
  const retire = database.prepare('insert into retired_slugs values (?, ?)');
  let n = 0;
  setInterval(() => { retire.run('during-' + n++, ''); parentPort.postMessage(n); }, 1);
`;

test('a backup holds nothing that was committed after it began, and ends while others write', async () => {
  const env = { DATA_DIR: fresh() };
  await masthead(['migrate'], env);
  const file = join(env.DATA_DIR, 'masthead.db');
  const rows = 20_000;
  const other = openSqlite(file);
  const retire = other.prepare('insert into retired_slugs values (?, ?)');
  const counted = (database: ReturnType<typeof openSqlite>) =>
    database.prepare('select count(*) as n from retired_slugs').get()?.['n'];
  other.exec('begin');
  for (let n = 0; n < rows; n++) retire.run(`before-${n}`, 'x'.repeat(1_000));
  other.exec('commit');
  other.close();
  // A thread, since the copy is made in one go.
  const writer = new Worker(writeUntilTold, { eval: true, workerData: file });
  const written = (n: number) =>
    new Promise((resolve) => writer.on('message', (count) => count >= n && resolve(count)));
  await written(5);
  const to = fresh();
  await backupSqlite(file, to);
  await written(Number(await written(0)) + 5);
  await writer.terminate();
  const copied = openSqlite(to);
  const slugs = copied.prepare(`select slug from retired_slugs where slug like 'during-%'`).all();
  assert.equal(counted(copied), rows + slugs.length);
  copied.close();
  // Up to some moment, without a gap before it.
  assert.ok(slugs.length >= 5);
  assert.deepEqual(
    slugs.map(({ slug }) => Number(String(slug).slice('during-'.length))).toSorted((a, b) => a - b),
    slugs.map((_, i) => i),
  );
});

describe('backup and restore refuse', () => {
  let env: { DATA_DIR: string };
  let file = '';
  before(async () => {
    env = { DATA_DIR: fresh() };
    assert.equal((await masthead(['migrate'], env)).code, 0);
    file = fresh();
    assert.equal((await masthead(['backup', file], env)).code, 0);
  });

  /** A copy of the backup that something was done to. */
  async function spoilt(change: (path: string) => Promise<void> | void): Promise<string> {
    const path = fresh();
    await copyFile(file, path);
    await change(path);
    return path;
  }

  const emptyDir = () => ({ DATA_DIR: fresh() });
  const postgres = { DATABASE_URL: 'postgres://localhost/masthead', SECRET: 's'.repeat(32) };
  const cases: [
    what: string,
    message: RegExp,
    run: () => Promise<{ code: number; stdout: string; stderr: string }>,
  ][] = [
    ['to replace a file', /exists already: name a file that does not/, () => masthead(['backup', file], env)],
    [
      'to make a copy of no database',
      /There is no database at .*: is the data volume mounted/,
      () => masthead(['backup', fresh()], emptyDir()),
    ],
    [
      'to write where there is no folder',
      /cannot be written \(ENOENT/,
      () => masthead(['backup', join(fresh(), 'x')], env),
    ],
    ['to copy PostgreSQL', /its own tools, e\.g\. pg_dump/, () => masthead(['backup', fresh()], postgres)],
    [
      'to restore over a database',
      /masthead\.db exists: restore into a DATA_DIR without a database/,
      () => masthead(['restore', file], env),
    ],
    [
      'to restore beside the log of a lost database',
      /masthead\.db-wal exists/,
      async () => {
        const empty = emptyDir();
        await mkdir(empty.DATA_DIR);
        await writeFile(join(empty.DATA_DIR, 'masthead.db-wal'), 'x');
        return masthead(['restore', file], empty);
      },
    ],
    [
      'to restore what is no database',
      /is not an SQLite database/,
      async () =>
        masthead(['restore', await spoilt((path) => writeFile(path, 'x'.repeat(8192)))], emptyDir()),
    ],
    [
      'to restore a damaged backup',
      /is damaged/,
      async () =>
        masthead(
          [
            'restore',
            await spoilt(async (path) => {
              const opened = await open(path, 'r+');
              const { size } = await opened.stat();
              await opened.write(Buffer.alloc(size / 2, 0xa5), 0, size / 2, size / 2);
              await opened.close();
            }),
          ],
          emptyDir(),
        ),
    ],
    [
      'to restore the backup of a later release',
      /newer than this program \(it has the schema step '9999-later'\)/,
      async () =>
        masthead(
          [
            'restore',
            await spoilt((path) => {
              const database = openSqlite(path);
              database.exec(`insert into migrations values ('9999-later', '')`);
              database.close();
            }),
          ],
          emptyDir(),
        ),
    ],
    [
      'to restore another SQLite file',
      /no such table|not Masthead's/,
      async () => {
        const other = fresh();
        const database = openSqlite(other);
        database.exec('create table x (y)');
        database.close();
        return masthead(['restore', other], emptyDir());
      },
    ],
  ];
  for (const [what, message, run] of cases) {
    test(what, async () => {
      const { code, stdout, stderr } = await run();
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
      assert.equal(stderr.split('\n').length, 1);
    });
  }

  test('and a failed restore leaves nothing that would keep the next from working', async () => {
    const target = emptyDir();
    const bad = await spoilt((path) => writeFile(path, 'x'.repeat(8192)));
    assert.equal((await masthead(['restore', bad], target)).code, 1);
    assert.equal(existsSync(join(target.DATA_DIR, 'instance')), false);
    const { code, stderr } = await masthead(['restore', file], target);
    assert.equal(code, 0);
    assert.match(stderr, /^There is no secret: put it back before a start/);
  });
});

test('of a folder of backups the newest are kept, as many as asked for', async () => {
  const [env, folder] = [{ DATA_DIR: fresh() }, fresh()];
  await masthead(['migrate'], env);
  await mkdir(folder);
  const made: string[] = [];
  for (let day = 1; day <= 4; day++) {
    const [file, now] = [join(env.DATA_DIR, 'masthead.db'), Date.UTC(2026, 0, day)];
    const backup = await backupInto(file, folder, { keep: 2, now });
    made.unshift(backup.file);
    assert.deepEqual(backup.removed, made.slice(2, 3));
    assert.deepEqual(listBackups(folder, now), made.slice(0, 2));
  }
});

test('a backup that was made while the clock was ahead is not the newest, and makes no other go', async () => {
  const [env, folder] = [{ DATA_DIR: fresh() }, fresh()];
  await masthead(['migrate'], env);
  await mkdir(folder);
  const hour = 3_600_000;
  const now = Date.now();
  const make = async (at: number) =>
    backupInto(join(env.DATA_DIR, 'masthead.db'), folder, { keep: 2, now: at });
  const [ahead, first] = [await make(now + 1_000 * hour), await make(now - 2 * hour)];
  assert.deepEqual([...ahead.removed, ...first.removed], []);
  assert.deepEqual(listBackups(folder, now), [first.file, ahead.file]);
  assert.match(
    (await masthead(['verify-backup', folder], env)).stdout,
    new RegExp(`^${first.file} is whole`),
  );
  const second = await make(now);
  assert.deepEqual(second.removed, [ahead.file]);
  // Clocks are never quite equal.
  assert.deepEqual(listBackups(folder, now - 60_000), [second.file, first.file]);
});

describe('doctor', () => {
  /** What doctor finds wrong where it must not fail: nothing on standard error, and exit code 1. */
  async function wrongWith(env: Readonly<Record<string, string>>): Promise<string> {
    const { code, stdout, stderr } = await masthead(['doctor'], env);
    assert.deepEqual([code, stderr], [1, ''], stdout);
    assert.doesNotMatch(stdout, /^ +at /m);
    return stdout
      .split('\n')
      .filter((line) => line.startsWith('wrong'))
      .join('\n');
  }

  test('names damage anywhere in the file, and goes on', async () => {
    for (const part of [0, 1 / 3, 2 / 3]) {
      const env = { DATA_DIR: fresh() };
      await masthead(['migrate'], env);
      const damaged = await open(join(env.DATA_DIR, 'masthead.db'), 'r+');
      const { size } = await damaged.stat();
      const length = Math.floor(size / 3);
      await damaged.write(Buffer.alloc(length, 0xa5), 0, length, Math.floor(size * part));
      await damaged.close();
      assert.match(await wrongWith(env), /^wrong +file +.*masthead\.db is damaged \(.*\): restore it/m);
    }
  });

  test('reports a folder that it cannot read, and a file in its place', async () => {
    const env = { DATA_DIR: fresh() };
    await masthead(['migrate'], env);
    await chmod(env.DATA_DIR, 0);
    // Who may read everything does so as somebody who may not.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.('nobody');
    try {
      const found = await wrongWith(env);
      assert.match(
        found,
        /^wrong +files +cannot be examined: EACCES.*: run this as the user of the service/m,
      );
      assert.match(found, /^wrong +database +.* cannot be read \(EACCES/m);
    } finally {
      if (isRoot) process.seteuid?.(0);
      await chmod(env.DATA_DIR, 0o700);
    }
    const file = fresh();
    await writeFile(file, '');
    assert.match(
      await wrongWith({ DATA_DIR: file }),
      /^wrong +files +DATA_DIR .* is no folder: name one\.$/m,
    );
    assert.match(await wrongWith({ DATA_DIR: fresh() }), /^wrong +database +There is no database at/m);
  });

  test('names counts that differ from what there is, and files that others may read', async () => {
    const env = { DATA_DIR: fresh() };
    await masthead(['migrate'], env);
    // The program itself lets nobody else read what it makes.
    await chmod(env.DATA_DIR, 0o700);
    await chmod(join(env.DATA_DIR, 'masthead.db'), 0o600);
    const { code: healthy, stdout: found } = await masthead(['doctor'], { ...env, PORT: '0' });
    assert.equal(healthy, 0, found);
    await chmod(env.DATA_DIR, 0o755);
    const database = openSqlite(join(env.DATA_DIR, 'masthead.db'));
    database.exec(`insert into counters values ('posts', 3, 5)`);
    database.close();
    const { code, stdout } = await masthead(['doctor'], env);
    assert.equal(code, 1);
    assert.match(stdout, /^wrong +counts +differ from what there is: public posts \(1, e\.g\. all\)$/m);
    assert.match(
      stdout,
      new RegExp(`^wrong +permissions +others may read .*: chmod go= '${env.DATA_DIR}'$`, 'm'),
    );
  });
});

test('a search process ends with its parent, and by no signal that is for all', async () => {
  const file = join(scratchFolder('search'), 'empty.db');
  openSqlite(file).close();
  const child = fork(fileURLToPath(new URL('../src/db/sqlite/search-process.ts', import.meta.url)), [file]);
  await once(child, 'message');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) child.kill(signal);
  child.send([]);
  const [found] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  assert.deepEqual(found, { matches: [], by: 0 });
  child.disconnect();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('the background check tells damage from what kept it from reading', async () => {
  const folder = scratchFolder('check');
  const checked = async (file: string) => {
    const child = fork(fileURLToPath(new URL('../src/db/sqlite/check-process.ts', import.meta.url)), [file]);
    const [message] = (await once(child, 'message')) as [{ fault: string | null; failure: string | null }];
    return message;
  };
  const file = join(folder, 'held.db');
  const holder = openSqlite(file);
  holder.exec('create table t (a); begin exclusive');
  const held = await checked(file);
  holder.exec('rollback');
  assert.deepEqual([held.fault, /locked/.test(held.failure ?? '')], [null, true]);
  assert.deepEqual(await checked(file), { fault: null, failure: null });
  holder.close();
  const missing = await checked(join(folder, 'missing.db'));
  assert.deepEqual([missing.fault, /open/.test(missing.failure ?? '')], [null, true]);
  const other = join(folder, 'other.db');
  writeFileSync(other, 'no database, '.repeat(100));
  const { fault, failure } = await checked(other);
  assert.deepEqual([/not a database/.test(fault ?? ''), failure], [true, null]);
});
