import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, mock, test } from 'node:test';
import { runCommandLine } from '../src/cli/main.ts';
import { startInstance, type Instance } from './support/instance.ts';
import { masthead } from './support/command-line.ts';

describe('a command line that is used for more than one service and agent', () => {
  let here: Instance;
  let there: Instance;
  let home = '';
  before(async () => {
    [here, there] = await Promise.all([startInstance(), startInstance({ variant: 'path' })]);
    home = await mkdtemp(join(tmpdir(), 'masthead-profiles-'));
  });
  after(async () => {
    await Promise.all([here.close(), there.close()]);
    await rm(home, { recursive: true });
  });

  /** A command without any setting but the home folder. */
  async function run(args: string[], env: Record<string, string> = {}): Promise<string> {
    const { code, stdout, stderr } = await masthead(args, { HOME: home, ...env });
    assert.equal(code, 0, stderr);
    return stdout;
  }
  async function fail(args: string[], env: Record<string, string> = {}): Promise<string> {
    const { code, stderr } = await masthead(args, { HOME: home, ...env });
    assert.notEqual(code, 0);
    return stderr;
  }
  // Both variants: one takes a slug, which is made from the name, the other makes it itself.
  const register = (name: string, more: string[]) =>
    run(['register', '--email', `${name}@example.com`, '--name', name, ...more]);

  test('remembers the service, and keeps agents apart', async () => {
    assert.match(
      await fail(['register', '--email', 'al@example.com', '--name', '阿', '--url', here.baseUrl]),
      /^masthead: the name makes no slug of 3 characters: choose one with --slug$/m,
    );
    assert.match(await register('ada', ['--url', here.baseUrl]), /^.*Later commands use http.*$/m);
    await run(['verify', await here.token('ada@example.com')]);
    assert.match(await run(['whoami']), /^slug +ada$/m);

    const bob = ['--profile', 'bob'];
    assert.match(await fail(['whoami', ...bob]), /^There is no profile 'bob' \(default\)\. .*register/);
    // Without an address a new profile is for the service in use.
    await register('cara', ['--profile', 'cara']);
    await run(['verify', await here.token('cara@example.com'), '--profile', 'cara']);
    assert.match(await run(['whoami', '--profile', 'cara']), /^slug +cara$/m);
    await register('bob', ['--url', there.baseUrl, ...bob]);
    const verified = await run(['verify', await there.token('bob@example.com'), ...bob]);
    assert.match(
      verified,
      /@bob\.key\. Later commands use .* with --profile bob, or after: masthead profile use bob/,
    );
    assert.match(await run(['whoami', ...bob]), /^slug +bob$/m);
    assert.match(await run(['whoami']), /^slug +ada$/m);
    assert.match(await run(['whoami'], { MASTHEAD_PROFILE: 'bob' }), /^slug +bob$/m);
    // What is typed is meant more than the environment.
    const eve = await here.agent('Eve');
    const env = { MASTHEAD_API_KEY: eve.key, MASTHEAD_URL: here.baseUrl };
    assert.match(await run(['whoami'], env), /^slug +eve$/m);
    assert.match(await run(['whoami', ...bob], env), /^slug +bob$/m);

    assert.match(await run(['profile', 'use', 'bob']), /^Later commands use the profile 'bob'/);
    assert.match(await run(['whoami']), /^slug +bob$/m);
    const listed = await run(['profile', 'list']);
    assert.match(listed, /^ +default +http\S+ +yes$/m);
    assert.match(listed, /^\* +bob +http\S+ +yes$/m);

    assert.match(await run(['profile', 'edit', '--bio', 'Sails.']), /^bio +Sails\.$/m);
    assert.match(await run(['profile', 'edit', '--bio', '']), /^bio +-$/m);
    assert.match(await fail(['profile', 'edit']), /^masthead: give --name/);

    assert.match(await run(['logout', ...bob]), /was removed from .*; the service still takes it/);
    assert.doesNotMatch(await run(['profile', 'list']), /bob/);
    assert.match(await run(['whoami']), /^slug +ada$/m);
    assert.match(await run(['logout']), /was removed/);
    assert.match(await run(['logout']), /^There was no key/);
  });

  test('refuses a name of a profile that could be a path, and a file that it cannot read', async () => {
    for (const name of ['../x', 'A', '', 'a'.repeat(41), '__proto__'])
      assert.match(await fail(['search', 'x', '--profile', name]), /^A profile has a name of|needs a value/);
    const broken = await mkdtemp(join(home, 'broken-'));
    await mkdir(join(broken, 'masthead'));
    await writeFile(join(broken, 'masthead', 'profiles.json'), '{"current":');
    assert.match(
      await fail(['whoami'], { XDG_CONFIG_HOME: broken }),
      /^\S+profiles\.json cannot be read: .* Mend it/,
    );
  });

  test('works where nothing can be written, and says what later commands need', async () => {
    const file = join(home, 'a-file');
    await writeFile(file, '');
    const env = { XDG_CONFIG_HOME: file, MASTHEAD_URL: '' };
    const place = ['--url', here.baseUrl];
    const email = 'nowhere@example.com';
    const registered = await run(['register', '--email', email, '--name', 'Nowhere', ...place], env);
    assert.match(
      registered,
      new RegExp(`Later commands need --url ${here.baseUrl}: .*a-file\\S+ cannot be written`),
    );
    const { code, stdout, stderr } = await masthead(['verify', await here.token(email), ...place], env);
    assert.deepEqual([code, /^[0-9a-f-]{36}$/.test(stdout)], [1, true]);
    assert.match(
      stderr,
      /^The key is shown because it could not be stored: \S+\.key cannot be written \(E\w+\)\.$/,
    );
    const withKey = { ...env, MASTHEAD_API_KEY: stdout };
    assert.match(await run(['whoami', ...place], withKey), /^slug +nowhere$/m);
    assert.match(await fail(['logout'], env), /^\S+profiles\.json cannot be written \(E\w+\)\.$/);

    // Nor is there a home where the system does not know the user.
    const { syncBuiltinESMExports } = process.getBuiltinModule('node:module');
    const known = mock.method(os, 'homedir', () => assert.fail('no such user'));
    syncBuiltinESMExports();
    try {
      assert.match(await run(['whoami', ...place], { MASTHEAD_API_KEY: stdout }), /^slug +nowhere$/m);
    } finally {
      known.mock.restore();
      syncBuiltinESMExports();
    }
  });

  test('says what it waits for before long, and what to do where nobody answers', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const first = Promise.withResolvers<string>();
    const terminal = { out: first.resolve, err: first.resolve, env: { HOME: home } };
    const running = runCommandLine(['search', 'x', '--url', url], terminal);
    assert.equal(await first.promise, `Still waiting for an answer of ${url}.`);
    silent.close();
    for (const socket of sockets) socket.destroy();
    assert.equal(await running, 8);

    const lost = await fail(['search', 'x', '--url', url]);
    assert.ok(lost.includes(`${url} gives no answer: connect ECONNREFUSED`), lost);
    assert.match(lost, /^The address is from --url\. Is it right/m);
    const secure = here.baseUrl.replace('http:', 'https:');
    assert.match(await fail(['search', 'x', '--url', secure]), /gives no answer: [\w ]+\.\n/);
    const env = { HOME: await mkdtemp(join(home, 'empty-')) };
    const unnamed = await masthead(['search', 'x'], env);
    // Where something does listen at the default address, it is no service without this.
    if (/gives no answer/.test(unnamed.stderr))
      assert.match(
        unnamed.stderr,
        /No service was named, so this one was tried\. Name it once: masthead register/,
      );
  });
});
