import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { program, runCommandLine } from '../src/cli/main.ts';
import type { Command } from '../client/src/terminal/command.ts';
import { unlessSlow } from './support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';
import { makeLargePng } from './support/made-pictures.ts';
import { quickLoad } from './support/processes.ts';
import { scratchFolder } from './support/scratch-folder.ts';

const script = fileURLToPath(new URL('../bin/masthead.mjs', import.meta.url));
const commands = Object.values(program.groups)
  .flat()
  .filter(({ hasResult }) => hasResult !== false);
/** Comes last: it erases the agent that the others work on. */
const erasing = 'admin agents delete';

type Env = Readonly<Record<string, string>>;

/** One call whose prompts are answered by a key. */
async function run(args: readonly string[], env: Env, key = 'no key') {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommandLine(args, {
    out: (line) => void out.push(line),
    err: unlessSlow((line) => void err.push(line)),
    secret: async () => key,
    env,
  });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

/** A whole call: what the command must be given is taken from `values`, by its name, or is `x`. */
function callOf(
  { name, operands = [], options = {} }: Command,
  values: Readonly<Record<string, string>>,
): string[] {
  const valueOf = (word: string) => values[`${name} ${word}`] ?? values[word] ?? 'x';
  const required = Object.entries(options).filter(([, option]) => option.required === true);
  return [
    ...name.split(' '),
    ...operands.map((operand) => valueOf(operand.replace(/[…?]*$/, ''))),
    ...required.flatMap(([option]) => [`--${option}`, valueOf(option)]),
    ...(values[`${name} more`] ?? '').split(' ').filter((word) => word !== ''),
    '--json',
  ];
}

/** Checks the one form of all answers, and returns the code of the error, or null. */
function checkForm(name: string, { code, out, err }: Awaited<ReturnType<typeof run>>): string | null {
  const answer: Record<string, unknown> = JSON.parse(out);
  assert.doesNotMatch(out + err, /\n +at |node_modules/, `${name}: ${err}`);
  if (answer['ok'] === true) {
    assert.deepEqual(Object.keys(answer), ['ok', 'data'], name);
    assert.equal(typeof answer['data'], 'object', name);
    assert.notEqual(answer['data'], null, name);
    return null;
  }
  assert.deepEqual([answer['ok'], Object.keys(answer)], [false, ['ok', 'error']], name);
  const { code: word, message } = Object(answer['error']);
  assert.match(word, /^[a-z_]+$/, name);
  assert.ok(typeof message === 'string' && message !== '', name);
  assert.notEqual(code, 0, name);
  return word;
}

describe('every command with --json', () => {
  const dir = scratchFolder('command-answers');
  let instance: Instance;
  let ada: TestAgent;
  before(async () => {
    instance = await startInstance();
    ada = await instance.agent('Ada');
  });
  after(() => instance.close());

  test('says in one form that it was not understood', async () => {
    for (const command of commands) {
      const answer = await run([...command.name.split(' '), '--jsn', '--json'], { HOME: dir });
      assert.equal(answer.code, 2, command.name);
      assert.equal(checkForm(command.name, answer), 'usage');
    }
  });

  test('says in one form why it failed where nothing is there', async () => {
    const env = {
      HOME: join(dir, 'nobody'),
      DATA_DIR: join(dir, 'none'),
      MASTHEAD_URL: 'http://127.0.0.1:1',
      BASE_URL: 'http://localhost:1',
      PORT: '1',
    };
    const values = { more: '', url: 'http://127.0.0.1:1', file: join(dir, 'none.md') };
    const succeeded: string[] = [];
    // What makes a database would make it for all that follow.
    const withoutMaking = commands.filter(({ name }) => !['migrate', 'admin agents create'].includes(name));
    for (const command of withoutMaking) {
      const answer = await run(callOf(command, values), env);
      if (checkForm(command.name, answer) === null) succeeded.push(command.name);
    }
    assert.deepEqual(succeeded, ['config', 'doctor', 'logout', 'profile list']);
  });

  test('says in one form what it did, or why not, each beside a running service', async () => {
    const post = async (slug: string) =>
      (await ada.client.publish({ title: slug, slug, content: `Of ${slug}.`, status: 'published' })).post;
    const [one, two, gone, back] = [
      await post('one'),
      await post('two'),
      await post('gone'),
      await post('back'),
    ];
    await ada.client.updatePost(one.id, { content: 'Of one, again.' });
    await ada.client.deletePost(back.id);
    const noa = await instance.agent('Noa');
    const comment = async (client = noa.client) => (await client.addComment(one.id, 'Text')).comment.id;
    const file = join(dir, 'new.md');
    await writeFile(file, '# New\n\nText.');
    const picture = join(dir, 'picture.png');
    await writeFile(picture, makeLargePng(1_000));
    await instance.client().register({ email: 'eve@example.com', name: 'Eve', slug: 'eve' });
    const backup = join(dir, 'backup.db');
    const { dataDir, baseUrl, port } = instance;
    const env = {
      HOME: join(dir, 'home'),
      MASTHEAD_URL: baseUrl,
      DATA_DIR: dataDir,
      MEDIA_DIR: join(dataDir, 'media'),
      BASE_URL: baseUrl,
      PORT: String(port),
    };
    const uploaded = await ada.client.uploadMedia(new Blob([makeLargePng(2_000)]), { type: 'image/png' });
    const values: Record<string, string> = {
      post: one.id,
      agent: 'noa',
      reason: 'x',
      'mail test address': 'op@example.com',
      'mail more': '--last',
      'backup path': backup,
      'verify-backup backup': backup,
      'restore file': backup,
      'restore more': '',
      'admin agents create email': 'ivy@example.com',
      'admin agents create name': 'Ivy',
      'admin agents create slug': 'ivy',
      'admin agents verify slug': 'eve',
      'admin agents export file': join(dir, 'noa.zip'),
      kind: 'email-domain',
      value: 'spam.example',
      'admin posts delete post': two.id,
      'admin comments remove comment': await comment(),
      'admin comments release comment': await comment(),
      'admin comments delete comment': await comment(),
      email: 'zoe@example.com',
      name: 'Zoe',
      'register more': '--slug zoe',
      'recover more': '--email ada@example.com',
      'profile edit more': '--bio Writes.',
      file,
      word: 'text',
      'comment text': 'Well.',
      'comment delete comment': await comment(ada.client),
      'post edit more': '--title Other',
      'post append file': file,
      'post delete post': gone.id,
      'post restore post': back.id,
      'media upload file': picture,
      'media delete picture': uploaded.media.name,
      'post diff revision': '1',
      url: baseUrl,
    };
    const failed: Record<string, string> = {};
    const left = commands.filter(({ name }) => !['conform', 'regenerate-key', erasing].includes(name));
    for (const command of [...left, ...commands.filter(({ name }) => name === erasing)]) {
      // A key is kept by the command that is given it, and by no other.
      const own = /^(?:register|verify|recover|login|logout|profile (?:list|use))$/.test(command.name);
      const answer = await run(
        callOf(command, values),
        own ? env : { ...env, MASTHEAD_API_KEY: ada.key },
        ada.key,
      );
      const code = checkForm(command.name, answer);
      if (code !== null) failed[command.name] = code;
    }
    // These have nothing to work on here.
    assert.deepEqual(failed, {
      mail: 'failed',
      'mail show': 'not_found',
      'mail retry': 'not_found',
      restore: 'failed',
      'migrate-to': 'failed',
      'admin undo': 'not_found',
      'admin report decide': 'usage',
      'admin appeal decide': 'usage',
      verify: 'invalid_token',
      'profile use': 'no_profile',
    });
  });
});

test('every exit code of docs/agents.md is given', async (t) => {
  const dir = scratchFolder('exit-codes');
  const limited = await startInstance({ env: { LIMIT_REGISTER: '2' } });
  t.after(() => limited.close());
  const ada = await limited.agent('Ada');
  const env = { HOME: dir, MASTHEAD_URL: limited.baseUrl };
  const keyed = { ...env, MASTHEAD_API_KEY: ada.key };
  const files = [join(dir, 'good.md'), join(dir, 'bad.md')];
  await writeFile(files[0] ?? '', '# Good\n\nText.');
  await writeFile(files[1] ?? '', '---\nslug: A bad slug\n---\n\n# Bad\n\nText.');
  const register = ['register', '--email', 'bob@example.com', '--name'];
  const calls: [code: number, args: string[], env: Env][] = [
    [0, ['whoami'], keyed],
    [1, ['post', 'publish', join(dir, 'none.md')], keyed],
    [2, ['whoami', 'ada'], keyed],
    [3, ['post', 'publish', ...files], keyed],
    [4, ['post', 'show', 'none'], keyed],
    [5, [...register, ''], env],
    [6, ['whoami'], env],
    [7, [...register, 'Bob', '--slug', 'bob'], env],
    [8, ['whoami', '--url', 'http://127.0.0.1:1'], keyed],
  ];
  const given: number[] = [];
  for (const [code, args, own] of calls) {
    const answer = await run(args, own);
    assert.equal(answer.code, code, `${args.join(' ')}: ${answer.out}${answer.err}`);
    given.push(code);
  }
  const child = spawn(process.execPath, [script, 'inbox', '--watch', '-v'], {
    env: { ...quickLoad(), ...keyed },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(child.stderr, 'data');
  child.kill('SIGINT');
  const [, signal] = await once(child, 'exit');
  // What a shell says of a program that SIGINT ended.
  const interrupted = 128 + (constants.signals[signal as 'SIGINT'] ?? 0);
  const guide = readFileSync(new URL('../docs/agents.md', import.meta.url), 'utf8');
  const section = guide.slice(guide.indexOf('## Exit codes'));
  const documented = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  assert.deepEqual([...given, interrupted], documented);
});
