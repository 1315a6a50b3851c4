import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { masthead } from '../support/command-line.ts';
import { cannotMount, forbidWriting, makeMemoryDisk } from '../support/mounts.ts';
import { freePort, type ServerProcess, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { openSqlite } from '../support/sqlite-file.ts';
import { assertStored, newAgent, startWriters, unlimited } from '../support/writers.ts';

const unmountable = cannotMount();
const tracer = '/usr/bin/strace';
const straceMissing = existsSync(tracer) ? false : 'strace is not installed: apt-get install strace';
for (const reason of [unmountable, straceMissing]) if (reason) console.error(`SKIPPED: ${reason}`);

const clients = 8;
const mebibytes = 12;

describe('a disk', () => {
  test(
    'that is full refuses writes and serves readers, and takes writes again when there is room',
    {
      skip: unmountable,
    },
    async (t) => {
      const disk = makeMemoryDisk(mebibytes);
      const filler = join(disk.folder, 'filler');
      const env = { PORT: String(await freePort()), DATA_DIR: disk.folder, ...unlimited };
      let server: ServerProcess | null = null;
      t.after(async () => {
        server?.kill('SIGKILL');
        await server?.exited;
        disk.remove();
      });
      server = await spawnServer({ env });
      const baseUrl = `http://localhost:${server.port}`;
      const ada = await newAgent(baseUrl, disk.folder);
      const writers = startWriters(baseUrl, ada.apiKey ?? '', { clients, words: 500 });
      for (let round = 0; round < 3 * scale; round++) {
        await writers.more(20);
        fill(filler);
        const refused = refusedSoFar(writers.refusals) + 3 * clients;
        while (refusedSoFar(writers.refusals) < refused) await delay(5);
        const { posts } = await ada.listPosts({ limit: 5 });
        assert.equal(posts.length, 5);
        assert.equal((await fetch(`${baseUrl}/readyz`)).status, 200);
        rmSync(filler);
        const freed = performance.now();
        await writers.more(1);
        t.diagnostic(`writes again after ${Math.round(performance.now() - freed)} ms`);
      }
      await writers.stop();
      assert.deepEqual([...writers.refusals.keys()], ['storage_full']);
      await assertStored(ada, writers.acknowledged);
      server.kill('SIGKILL');
      await server.exited;
      server = await spawnServer({ env, args: ['serve', '--existing'] });
      const stored = await assertStored(ada, writers.acknowledged);
      t.diagnostic(`${stored} posts, refused ${refusedSoFar(writers.refusals)} times`);
    },
  );

  for (const lacks of ['bytes', 'inodes', 'leave to write'] as const)
    test(
      `without ${lacks} is what doctor names, and no database that is whole`,
      { skip: unmountable },
      async (t) => {
        const disk = makeMemoryDisk(4, lacks === 'inodes' ? 16 : 0);
        t.after(() => disk.remove());
        const env = { DATA_DIR: join(disk.folder, 'data') };
        await masthead(['migrate'], env);
        chmodSync(join(env.DATA_DIR, 'masthead.db'), 0o600);
        if (lacks === 'bytes') fill(join(disk.folder, 'filler'));
        const isClosed = lacks === 'leave to write';
        if (isClosed) forbidWriting(disk);
        for (let n = 0; n < 1_000; n++)
          try {
            appendFileSync(join(disk.folder, `filler-${n}`), '');
          } catch {
            break;
          }
        const { code, stdout } = await masthead(['doctor', '--json', '--offline'], env);
        assert.equal(code, 1);
        const found: { what: string; state: string; detail: string; mend: string }[] =
          JSON.parse(stdout).data;
        const wrong = found.filter(({ state }) => state === 'wrong');
        assert.ok(wrong.length > 1, stdout);
        for (const { what, detail, mend } of wrong) {
          assert.match(detail, isClosed ? /disk .*is mounted read-only/ : /disk .*is full/, what);
          assert.match(mend, isClosed ? /mount -o remount,rw / : /^du -x /);
        }
        const refused = await masthead(['admin', 'agents', 'list'], env);
        assert.match(refused.stderr, /^The disk that holds .* is (full|mounted read-only)/);
      },
    );

  test(
    'that is full takes no backup, and leaves those that are there as they are',
    { skip: unmountable },
    async (t) => {
      const disk = makeMemoryDisk(4);
      const dataDir = mkdtempSync(join(tmpdir(), 'masthead-backup-'));
      t.after(() => {
        disk.remove();
        rmSync(dataDir, { recursive: true });
      });
      const env = { DATA_DIR: dataDir };
      await masthead(['migrate'], env);
      const database = openSqlite(join(dataDir, 'masthead.db'));
      database.exec(`insert into retired_slugs values ('large', hex(randomblob(1000000)))`);
      database.close();
      assert.equal((await masthead(['backup', '--keep', '1', disk.folder], env)).code, 0);
      const before = readdirSync(disk.folder);
      const { code, stderr } = await masthead(['backup', '--keep', '1', disk.folder], env);
      assert.equal(code, 1);
      assert.match(stderr, /^The disk that holds .* is full: make room/);
      assert.deepEqual(readdirSync(disk.folder), before);
      const verified = await masthead(['verify-backup', disk.folder], env);
      assert.equal(verified.code, 0, verified.stderr);
    },
  );

  test(
    'that is full takes deletions, also after a crash, and a service starts on it by itself',
    {
      skip: unmountable,
    },
    async (t) => {
      const disk = makeMemoryDisk(2 * mebibytes);
      const [filler, reserve] = [join(disk.folder, 'filler'), join(disk.folder, 'reserve')];
      const env = { PORT: String(await freePort()), DATA_DIR: disk.folder, ...unlimited };
      let server = await spawnServer({ env });
      t.after(async () => {
        server.kill('SIGKILL');
        await server.exited;
        disk.remove();
      });
      const baseUrl = `http://localhost:${server.port}`;
      const ada = await newAgent(baseUrl, disk.folder);
      // Not by the client, which waits and repeats what is refused.
      const publish = async (n: number): Promise<number> => {
        const answer = await fetch(`${baseUrl}/api/publish`, {
          method: 'POST',
          headers: { authorization: `Bearer ${ada.apiKey}`, 'content-type': 'application/json' },
          body: JSON.stringify({ title: `Post ${n}`, content: 'x'.repeat(20_000) }),
        });
        const { post } = (await answer.json()) as { post?: { id: string } };
        if (post) posts.push(post.id);
        return answer.status;
      };
      const posts: string[] = [];
      for (let n = 0; n < 12; n++) assert.equal(await publish(n), 201);
      const remove = async () => ada.deletePost(posts.pop() ?? '');
      const isWritable = async () => {
        const answer = (await (await fetch(`${baseUrl}/readyz`)).json()) as { writable: boolean };
        return answer.writable;
      };
      await ada.updatePost(posts[0] ?? '', { status: 'published' });
      await ada.vote(posts[0] ?? '', 1);
      await until('the reserve', async () => existsSync(reserve));
      const whole = statSync(reserve).size;
      fill(filler);
      await refusesForRoom(publish);
      await remove();
      await refusesForRoom(publish);
      // What has filled the disk takes what the reserve gives up, too.
      fill(filler);
      await remove();
      // What takes something back is accepted as well.
      await ada.unvote(posts[0] ?? '');
      await ada.endPreviews(posts[0] ?? '');
      const vote = await fetch(`${baseUrl}/api/posts/${posts[0]}/vote`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ada.apiKey}`, 'content-type': 'application/json' },
        body: '{"vote":1}',
      });
      assert.equal(vote.status, 507);
      assert.ok(statSync(reserve).size < whole);
      const examined = await masthead(['doctor'], { DATA_DIR: disk.folder });
      assert.match(
        examined.stdout,
        /^wrong +disk .* until \d MiB are free the service only reads and deletes$/m,
      );

      server.kill('SIGKILL');
      await server.exited;
      fill(filler);
      server = await spawnServer({ env, args: ['serve', '--existing'] });
      fill(filler);
      await until('the warning', async () =>
        server.output().includes('the disk is full: only reading and deleting work'),
      );
      assert.equal(await isWritable(), false);
      assert.equal((await ada.listPosts({ limit: 100 })).posts.length, posts.length);
      await refusesForRoom(publish);
      await remove();
      assert.equal(await server.stop(), 0);
      server = await spawnServer({ env, args: ['serve', '--existing'] });
      await remove();

      rmSync(filler);
      assert.equal(await publish(100), 201);
      await until('the reserve again', async () => existsSync(reserve) && (await isWritable()));
      assert.equal((await ada.listPosts({ limit: 100 })).posts.length, posts.length);
    },
  );

  for (const [calls, each] of [
    ['fsync,fdatasync', 7],
    ['pwrite64', 23],
  ] as const) {
    test(
      `on which each ${each}th of ${calls} fails never stores less than was answered`,
      {
        skip: straceMissing,
      },
      async (t) => {
        const dataDir = mkdtempSync(join(tmpdir(), 'masthead-failing-'));
        const env = { PORT: String(await freePort()), DATA_DIR: dataDir, ...unlimited };
        let server = await spawnServer({ env });
        t.after(async () => {
          server.kill('SIGKILL');
          await server.exited;
          rmSync(dataDir, { recursive: true });
        });
        const baseUrl = `http://localhost:${server.port}`;
        const ada = await newAgent(baseUrl, dataDir);
        const inject = `inject=${calls}:error=EIO:when=${each}+${each}`;
        const strace = spawn(
          tracer,
          ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', inject, '-p', String(server.pid)],
          { stdio: 'ignore' },
        );
        const ended = once(strace, 'exit');
        const writers = startWriters(baseUrl, ada.apiKey ?? '', { clients });
        while (refusedSoFar(writers.refusals) < 50 * scale && strace.exitCode === null) await delay(20);
        assert.equal(strace.exitCode, null, 'strace could not attach');
        assert.equal((await ada.listPosts({ limit: 1 })).success, true);
        strace.kill('SIGINT');
        // Seldom it waits for ever for a thread that it has let go; those of a tracer that is killed are let go too.
        const stuck = setTimeout(() => strace.kill('SIGKILL'), 10_000);
        await ended;
        clearTimeout(stuck);
        // The last failures are answered, and then writes go on.
        await writers.more(3 * clients);
        await writers.stop();
        assert.deepEqual(
          [...writers.refusals.keys()].filter((code) => code !== 'unavailable'),
          [],
        );
        server.kill('SIGKILL');
        await server.exited;
        server = await spawnServer({ env, args: ['serve', '--existing'] });
        const stored = await assertStored(ada, writers.acknowledged);
        t.diagnostic(`${stored} posts, refused ${refusedSoFar(writers.refusals)} times`);
      },
    );
  }
});

/** Resolves once it is so. Fails after a minute. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_200; tries++) {
    if (await isSo()) return;
    await delay(50);
  }
  assert.fail(`${what} never came`);
}

/** Fails unless the service says within some calls that its disk is full: free pages may take a few. */
async function refusesForRoom(publish: (n: number) => Promise<number>): Promise<void> {
  for (let n = 1_000; n < 1_500; n++) {
    const status = await publish(n);
    if (status === 201) continue;
    assert.equal(status, 507);
    return;
  }
  assert.fail('nothing was refused');
}

/** Writes to a file until there is no room for one byte more. */
function fill(file: string): void {
  for (let size = 64 * 1024; size >= 1;) {
    try {
      appendFileSync(file, Buffer.alloc(size));
    } catch {
      size = Math.floor(size / 2);
    }
  }
}

function refusedSoFar(refusals: ReadonlyMap<string, number>): number {
  return [...refusals.values()].reduce((sum, count) => sum + count, 0);
}
