import assert from 'node:assert/strict';
import { spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from '../support/http.ts';
import { freePort, serverEnvironment } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const script = fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));
const dir = scratchFolder('output');

describe('where what it writes is not taken', () => {
  test('a command whose result a full disk does not take fails, and says so', async () => {
    for (const args of [['--help'], ['config', '--json']]) {
      const { code, said } = await run(args, (full) => ['ignore', full, 'pipe']);
      assert.equal(code, 1, args.join(' '));
      assert.match(said, /^The result cannot be written: ENOSPC/m);
    }
  });

  test('a command whose messages nobody takes ends as it would', async () => {
    assert.equal((await run(['nothing'], (full) => ['ignore', 'pipe', full])).code, 2);
    const closed = spawn(process.execPath, [script, 'nothing'], {
      env: serverEnvironment(1),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    closed.stderr.destroy();
    assert.deepEqual(await once(closed, 'exit'), [2, null]);
  });

  test('a reader that has seen enough makes no failure', async () => {
    const child = spawn(process.execPath, [script, '--help'], {
      env: serverEnvironment(1),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.destroy();
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  for (const workers of [1, 2])
    test(`the service goes on without its log, with WORKERS=${workers}`, async (t) => {
      const port = await freePort();
      const full = openSync('/dev/full', 'w');
      const child = spawn(process.execPath, [script, 'serve'], {
        env: serverEnvironment(port, { DATA_DIR: join(dir, String(workers)), WORKERS: String(workers) }),
        stdio: ['ignore', full, 'inherit'],
      });
      t.after(() => child.kill('SIGKILL'));
      closeSync(full);
      const isReady = () =>
        request(`http://127.0.0.1:${port}`, { path: '/readyz' }).then(
          ({ status }) => status === 200,
          () => false,
        );
      while (child.exitCode === null && !(await isReady())) await delay(50);
      assert.equal(child.exitCode, null);
      child.kill('SIGTERM');
      assert.deepEqual(await once(child, 'exit'), [0, null]);
    });
});

/** Runs a command with a file as one of its streams to which nothing can be written; what it said on the others. */
async function run(args: readonly string[], stdio: (full: number) => StdioOptions) {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [script, ...args], { env: serverEnvironment(1), stdio: stdio(full) });
  closeSync(full);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = await once(child, 'close');
  return { code, said };
}
