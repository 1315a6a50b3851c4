import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { masthead } from '../support/command-line.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { quickLoad } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const dir = scratchFolder('backups');
let last = 0;
const fresh = () => {
  const folder = join(dir, String(++last));
  mkdirSync(folder, { mode: 0o700 });
  return folder;
};
const backupsIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.db'));

/** A new instance without posts; its environment. */
async function empty(): Promise<{ DATA_DIR: string }> {
  const env = { DATA_DIR: fresh() };
  assert.equal((await masthead(['migrate'], env)).code, 0);
  return env;
}

async function made(folder: string, env: Readonly<Record<string, string>>, keep = 7) {
  const { code, stdout, stderr } = await masthead(['backup', '--keep', String(keep), folder, '--json'], env);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).data as { file: string; sha256: string; removed: string[] };
}

describe('a folder of backups', () => {
  test('holds the newest of this instance, each with its checksum, and what is not ours stays', async () => {
    const [env, other, folder] = [await empty(), await empty(), fresh()];
    const foreign = await made(folder, other);
    const stray = ['notes.db', 'masthead.db.partial', 'masthead-20260101T000000Z.db.txt'];
    for (const name of stray.slice(0, 2)) writeFileSync(join(folder, name), 'x');
    const files: string[] = [];
    for (let n = 0; n < 3; n++) files.push((await made(folder, env, 2)).file);
    assert.deepEqual(
      backupsIn(folder)
        .map((name) => join(folder, name))
        .toSorted(),
      [foreign.file, ...files.slice(1), join(folder, 'notes.db')].toSorted(),
    );
    for (const file of files.slice(1)) {
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.match(readFileSync(`${file}.sha256`, 'utf8'), /^[0-9a-f]{64} {2}masthead-\w+\.db\n$/);
    }
    assert.match((await masthead(['verify-backup', folder], env)).stdout, /is whole: 0 agents/);
    assert.equal(existsSync(`${files[0]}.sha256`), false);
    assert.ok(stray.slice(0, 2).every((name) => existsSync(join(folder, name))));
  });

  test('keeps what it has when a run fails, and says what to do', async () => {
    const [env, folder] = [await empty(), fresh()];
    const { file } = await made(folder, env, 1);
    const lock = openSqlite(join(folder, '.masthead-backup.lock'));
    lock.exec('begin exclusive');
    const second = await masthead(['backup', '--keep', '1', folder], env);
    lock.close();
    assert.deepEqual([second.code, second.stdout], [1, '']);
    assert.match(second.stderr, /^Another backup into .* is running: wait until it is done\.$/);
    const lost = await masthead(['backup', '--keep', '1', folder], { DATA_DIR: fresh() });
    assert.match(lost.stderr, /^There is no database at .*: is the data volume mounted\?$/);
    const unmounted = await masthead(['backup', '--keep', '1', join(folder, 'none')], env);
    assert.match(unmounted.stderr, /^There is no folder .*: make it, or mount its disk/);
    assert.equal((await masthead(['backup', '--keep', 'all', folder], env)).code, 2);
    assert.deepEqual(backupsIn(folder), [file.slice(folder.length + 1)]);
  });

  test('that was cut off in the middle of a run has whole backups only, and the next run clears it up', async () => {
    const [env, folder] = [await empty(), fresh()];
    const database = openSqlite(join(env.DATA_DIR, 'masthead.db'));
    database.exec('begin');
    const retire = database.prepare('insert into retired_slugs values (?, ?)');
    for (let n = 0; n < 20_000; n++) retire.run(`slug-${n}`, 'x'.repeat(1_000));
    database.exec('commit');
    database.close();
    await made(folder, env);
    const program = fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));
    const child = spawn(process.execPath, [program, 'backup', '--keep', '1', folder], {
      env: { PATH: process.env['PATH'], ...quickLoad(), ...env },
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    const isAtWork = () => readdirSync(folder).some((name) => name.includes('.partial'));
    while (!isAtWork() && child.exitCode === null) await delay(1);
    child.kill('SIGKILL');
    await ended;
    assert.ok(isAtWork(), 'it was killed too late');
    for (const name of backupsIn(folder))
      assert.equal((await masthead(['verify-backup', join(folder, name)], env)).code, 0);
    // What a run leaves that ended between the checksum and the backup.
    writeFileSync(join(folder, 'masthead-20200101T000000Z.db.sha256'), '0');
    const { file } = await made(folder, env, 1);
    const left = readdirSync(folder).filter((name) => name !== '.masthead-backup.lock');
    assert.deepEqual(
      left.map((name) => join(folder, name)),
      [file, `${file}.sha256`],
    );
  });
});

test('doctor knows what the check of a folder of backups found, until one finds it whole', async () => {
  const folder = fresh();
  const env = { DATA_DIR: join(fresh(), 'data') };
  await masthead(['migrate'], env);
  const found = async () => {
    const { stdout } = await masthead(['doctor', '--json', '--offline'], env);
    const findings: { what: string; state: string; detail: string; mend?: string }[] =
      JSON.parse(stdout).data;
    return findings.find(({ what }) => what === 'backup');
  };
  const { file } = await made(folder, env);
  writeFileSync(file, readFileSync(file).subarray(0, 60_000));
  assert.equal((await masthead(['verify-backup', folder], env)).code, 1);
  const faulty = await found();
  assert.equal(faulty?.state, 'wrong');
  assert.match(faulty?.detail ?? '', /is of no use.*is not what/);
  assert.equal(faulty?.mend, `masthead backup --keep 7 '${folder}' && masthead verify-backup '${folder}'`);
  // Neither a folder that was mistyped nor the newer backup of another instance says anything of this one's.
  const mistyped = await masthead(['verify-backup', env.DATA_DIR], env);
  assert.match(mistyped.stderr, /^There is no backup of this service in /);
  assert.deepEqual(await found(), faulty);
  const another = { DATA_DIR: join(fresh(), 'data') };
  await masthead(['migrate'], another);
  const newer = await made(folder, another);
  assert.equal((await masthead(['verify-backup', folder], another)).code, 0);
  assert.match((await masthead(['verify-backup', folder], env)).stderr, new RegExp(basename(file)));
  assert.match((await found())?.detail ?? '', /is of no use.*is not what/);
  rmSync(newer.file);
  // One that is named by itself may be anybody's.
  assert.equal((await masthead(['verify-backup', file], env)).code, 1);
  await made(folder, env);
  assert.equal((await masthead(['verify-backup', folder], env)).code, 0);
  assert.equal((await found())?.state, 'ok');
});

test('the documented script of a PostgreSQL dump fails with any part of it, and leaves whole dumps only', () => {
  const guide = readFileSync(new URL('../../docs/backups.md', import.meta.url), 'utf8');
  const section = guide.split(/^## /m).find((each) => each.startsWith('PostgreSQL: a dump each night')) ?? '';
  const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) => block);
  const [folder, programs] = [fresh(), fresh()];
  const calls = join(programs, 'calls');
  /** The exit code where one of the programs fails. */
  const run = (fails: string) => {
    writeFileSync(calls, '');
    for (const name of ['pg_dump', 'createdb', 'dropdb', 'pg_restore', 'masthead']) {
      const dump = 'for each; do case $each in --file=*) echo dump > "${each#--file=}";; esac; done';
      const body = `echo ${name} >> '${calls}'; ${dump}; exit ${name === fails ? 3 : 0}`;
      writeFileSync(join(programs, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    }
    const script = blocks.join('').replaceAll('/var/backups/masthead', folder);
    const env = { PATH: `${programs}:${process.env['PATH']}` };
    const { status } = spawnSync('sh', ['-c', script], { env });
    return { status, last: readFileSync(calls, 'utf8').trim().split('\n').at(-1) };
  };
  for (let day = 1; day <= 7; day++)
    writeFileSync(join(folder, `masthead-2020010${day}T031500Z.dump`), 'dump');
  writeFileSync(join(folder, 'masthead-20200108T031500Z.dump.partial'), 'cut off');
  assert.deepEqual(run('pg_dump'), { status: 3, last: 'pg_dump' });
  const dumps = () => readdirSync(folder).filter((name) => name.endsWith('.dump'));
  assert.equal(dumps().length, 7);
  for (const part of ['pg_restore', 'masthead'])
    assert.deepEqual(run(part), { status: 3, last: 'dropdb' }, part);
  assert.deepEqual(run(''), { status: 0, last: 'dropdb' });
  assert.deepEqual(readdirSync(folder), dumps());
  assert.equal(dumps().length, 7);
  assert.ok(!dumps().includes('masthead-20200101T031500Z.dump'));
});

test('the documented copies of pictures build on the newest, and are as many as the backups', () => {
  const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const [line = ''] = guide.split('\n').filter((each) => each.includes('rsync '));
  const [folder, programs] = [fresh(), fresh()];
  const rsync = '#!/bin/sh\necho "$*"; for to; do :; done; mkdir -p "$to"\n';
  writeFileSync(join(programs, 'rsync'), rsync, { mode: 0o755 });
  const env = { PATH: `${programs}:${process.env['PATH']}` };
  const run = () => spawnSync('sh', ['-c', line.replace('/backup/media', folder)], { env, encoding: 'utf8' });
  assert.match(run().stdout, / --delete --exclude=\/tmp\/ /);
  const first = readdirSync(folder);
  // A copy of the time when there was one for all days, and what a file system has of its own.
  const others = ['00', 'ff', 'lost+found', 'tmp'];
  for (const name of others) mkdirSync(join(folder, name));
  for (let day = 1; day <= 9; day++) mkdirSync(join(folder, `2020-01-0${day}`));
  for (const name of first) rmSync(join(folder, name), { recursive: true });
  assert.ok(run().stdout.includes(` --link-dest=${folder}/2020-01-09 `));
  const kept = [4, 5, 6, 7, 8, 9].map((day) => `2020-01-0${day}`);
  const days = () => readdirSync(folder).filter((name) => !others.includes(name));
  assert.deepEqual(days().toSorted().slice(0, -1), kept);
  writeFileSync(join(programs, 'rsync'), '#!/bin/sh\nexit 23\n');
  mkdirSync(join(folder, '2020-01-01'));
  assert.equal(run().status, 23);
  assert.deepEqual([days().length, readdirSync(folder).length], [8, 8 + others.length]);
});

describe('a backup is verified', () => {
  let source: Instance;
  let folder = '';
  let file = '';
  before(async () => {
    source = await startInstance({ variant: 'subdomain' });
    const { client } = await source.agent('Ada');
    for (let n = 0; n < 3; n++)
      await client.publish({ title: `Post ${n}`, content: 'Some words.', status: 'published' });
    folder = fresh();
    file = (await made(folder, { DATA_DIR: source.dataDir })).file;
  });
  after(() => source.close());

  const verify = (path: string) => masthead(['verify-backup', path], { DATA_DIR: join(dir, 'nowhere') });
  /** A copy of the backup, without its checksum, that something was done to. */
  function changed(sql: string): string {
    const copy = join(fresh(), 'copy.db');
    writeFileSync(copy, readFileSync(file));
    const database = openSqlite(copy);
    database.exec(sql);
    database.close();
    return copy;
  }

  test('the newest of a folder, with its counts and pages', async () => {
    const { code, stdout, stderr } = await verify(folder);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(
      stdout,
      `${file} is whole: 1 agents, 3 posts and 0 comments, every count is right, 5 pages open.`,
    );
    assert.equal(existsSync(join(dir, 'nowhere')), false);
  });

  test('and its copy is gone, whatever ends it', async () => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
      const scratch = fresh();
      const program = fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));
      const child = spawn(process.execPath, [program, 'verify-backup', file], {
        env: { PATH: process.env['PATH'], ...quickLoad(), DATA_DIR: fresh(), TMPDIR: scratch },
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      const copies = () => readdirSync(scratch).filter((name) => name.startsWith('masthead-verify'));
      const isAtWork = () => copies().some((name) => readdirSync(join(scratch, name)).length > 0);
      while (!isAtWork() && child.exitCode === null) await delay(1);
      child.kill(signal);
      assert.deepEqual(await ended, [null, signal]);
      for (let tries = 0; copies().length > 0 && tries < 1_000; tries++) await delay(10);
      assert.deepEqual(copies(), [], signal);
    }
  });

  test('and a changed letter, a wrong count, a lost text and a cut off file are named', async () => {
    const letter = join(fresh(), 'letter.db');
    const bytes = readFileSync(file);
    const at = bytes.indexOf('Some words.');
    assert.ok(at > 0);
    bytes[at] = 'T'.charCodeAt(0);
    writeFileSync(letter, bytes);
    assert.equal((await verify(letter)).code, 0);
    writeFileSync(`${letter}.sha256`, readFileSync(`${file}.sha256`));
    assert.match((await verify(letter)).stderr, /is not what .*letter\.db\.sha256 says: .*; take an earlier/);

    const counts = await verify(changed(`update agents set published_count = 7`));
    assert.equal(counts.code, 1);
    assert.match(counts.stdout, /^posts of an agent: 1 wrong, e\.g\. /m);
    const texts = await verify(changed('delete from post_bodies'));
    assert.match(texts.stdout, /^texts: 3 wrong[^]*^http\S+\/post-2: answered 404 instead of 200$/m);

    const cut = join(fresh(), 'cut.db');
    writeFileSync(cut, readFileSync(file).subarray(0, 100_000));
    assert.match((await verify(cut)).stderr, /damaged .*take an earlier backup\.$/);
    assert.match((await verify(fresh())).stderr, /^There is no backup in .*: make one with 'masthead backup/);
    assert.match((await verify(join(dir, 'none'))).stderr, /none cannot be read .*: name a backup, or/);
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith('masthead-verify')),
      [],
    );
  });

  test('of PostgreSQL in the database that it was restored into', async () => {
    const restored = await startInstance({ variant: 'path', engine: 'postgres' });
    try {
      const { client } = await restored.agent('Eve');
      await client.publish({ title: 'One', content: 'c', status: 'published' });
      const { database, site } = restored.ctx().config;
      const address = database.engine === 'postgres' ? (database.urls[0] ?? '') : '';
      const env = { DATA_DIR: fresh(), VARIANT: 'path', BASE_URL: site.baseUrl };
      const { code, stdout, stderr } = await masthead(['verify-backup', address], env);
      assert.deepEqual([code, stderr], [0, ''], stdout);
      assert.match(
        stdout,
        /is whole: 1 agents, 1 posts and 0 comments, every count is right, 3 pages open\.$/,
      );
      const own = await masthead(['verify-backup', address], {
        ...env,
        DATABASE_URL: address,
        SECRET: 's'.repeat(32),
      });
      assert.match(own.stderr, /^That is the database of the service/);
    } finally {
      await restored.close();
    }
  });
});
