import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../src/cli/main.ts';
import { loadConfig } from '../src/config/config.ts';
import { settings } from '../src/config/settings.ts';
import { createLog } from '../src/platform/log.ts';
import { readNewestMail } from '../src/mail/stored-mail.ts';
import { startServer, type RunningServer } from '../src/server.ts';
import { countWaitingMail } from '../src/services/outbox.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { request } from './support/http.ts';
import { freePort, quickLoad } from './support/processes.ts';

const script = fileURLToPath(new URL('../src/cli.ts', import.meta.url));
const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';

describe('the command line', () => {
  let dir = '';
  before(async () => {
    dir = scratchFolder('cli');
  });

  test('explains itself and each of its commands', async () => {
    const { code, stdout } = await masthead(['--help']);
    assert.equal(code, 0);
    const names = [...stdout.matchAll(/^ {2}([a-z-]+(?: [a-z]+)*)/gm)].map(([, name = '']) => name);
    assert.deepEqual(names, [
      'serve',
      'config',
      'doctor',
      'mail',
      'mail queue',
      'mail show',
      'mail retry',
      'mail test',
      'migrate',
      'backup',
      'verify-backup',
      'restore',
      'adopt-secret',
      'migrate-to',
      'rerender',
      ...['list', 'show', 'create', 'verify', 'export'].map((verb) => `admin agents ${verb}`),
      ...['suspend', 'restore', 'trust', 'untrust', 'delete'].map((verb) => `admin agents ${verb}`),
      ...['list', 'feature', 'unfeature'].map((verb) => `admin posts ${verb}`),
      'admin hide',
      'admin unhide',
      'admin posts delete',
      ...['list', 'remove', 'release', 'delete'].map((verb) => `admin comments ${verb}`),
      'admin reports',
      'admin report decide',
      'admin appeals',
      'admin appeal decide',
      'admin block',
      'admin unblock',
      'admin blocks',
      'admin mail refused',
      'admin mail release',
      'admin log',
      'admin undo',
      'admin stats',
      'register',
      'verify',
      'login',
      'logout',
      'recover',
      'regenerate-key',
      'whoami',
      ...['list', 'use', 'edit'].map((verb) => `profile ${verb}`),
      ...['publish', 'list', 'show', 'preview', 'edit', 'append', 'history', 'diff'].map(
        (verb) => `post ${verb}`,
      ),
      ...['delete', 'restore', 'trash'].map((verb) => `post ${verb}`),
      ...['list', 'upload', 'delete'].map((verb) => `media ${verb}`),
      'search',
      'post get',
      'comment',
      'comments',
      'comment delete',
      ...['up', 'down', 'clear'].map((direction) => `vote ${direction}`),
      'inbox',
      'block',
      'unblock',
      'blocks',
      'my comments',
      'my votes',
      'conform',
    ]);
    const titles = [...stdout.matchAll(/^(\S.*):$/gm)].map(([, title]) => title);
    assert.deepEqual(titles, ['Run a service', 'Operate it', 'Use a service as an agent']);
    for (const name of names) {
      const help = await masthead([...name.split(' '), '--help']);
      assert.equal(help.code, 0);
      assert.ok(help.stdout.startsWith(`Usage: masthead ${name}`));
      assert.equal(help.stderr, '');
    }
  });

  const misunderstood: [args: string, message: RegExp][] = [
    [
      '',
      /^masthead: say what to do: serve, config, doctor, mail, migrate, backup, verify-backup, restore, adopt-secret, migrate-to, rerender, admin, register, .*, conform\nTry: masthead --help\n$/,
    ],
    ['serv', /unknown command 'serv'; did you mean 'serve'\?\nTry: masthead --help/],
    ['admin agent list', /unknown command 'admin agent'; did you mean 'admin agents'\?/],
    [
      'admin posts pin x',
      /unknown command 'admin posts pin': say what to do: .*unfeature.*\nTry: masthead admin posts --help/,
    ],
    ['config --jsn', /unknown option '--jsn'; did you mean --json\?\nTry: masthead config --help/],
    ['serve now', /one argument too many: 'now'/],
    ['serve --existing=yes', /--existing takes no value/],
    ['admin agents show', /<agent> is missing/],
    ['admin agents suspend ada', /--reason <text> is missing/],
    ['admin agents suspend ada --reason', /--reason needs a value/],
    ['admin posts delete x', /--reason <text> is missing/],
    ['admin agents suspend ada --domain x --reason y', /name agents or choose them, not both/],
    ['admin agents restore --reason y', /name agents, or choose them by/],
    ['admin agents suspend --from-mailbox x --reason y', /--from-mailbox /],
    ['admin agents list --limit ten', /--limit is a number from 1 to/],
    ['admin agents list --votes 9..1', /--votes is a number, or two with \.\. between/],
    ['admin agents list --posts 12x', /--posts is a number, or two with/],
    ['post publish', /<file…> is missing/],
    ['post publish a.md --draft --publish', /--publish and --draft exclude each other/],
    ['post list --status hidden', /--status is draft or published/],
    ['vote sideways x', /unknown command 'vote sideways': say what to do: up, down, clear\n/],
    ['recover', /give --email or --token/],
    ['--verbose', /unknown option '--verbose'/],
  ];
  for (const [args, message] of misunderstood) {
    test(`does not understand 'masthead ${args}' and says why`, async () => {
      const { code, stdout, stderr } = await masthead(args.split(' ').filter(Boolean), { DATA_DIR: dir });
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    });
  }

  test('is a program whose result, messages and exit code stand apart', async () => {
    const version = await mastheadProcess(['--version']);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
    assert.deepEqual([version.code, version.stderr], [0, '']);
    const misspelt = await mastheadProcess(['serv']);
    assert.deepEqual([misspelt.code, misspelt.stdout], [2, '']);
    assert.match(misspelt.stderr, /did you mean 'serve'/);
  });

  test('shows the settings in use without their secrets', async () => {
    const env = { SMTP_URL: 'smtp://user:hush-hush@mail.example', SECRET: 'x'.repeat(40), BASEURL: 'x' };
    const text = await masthead(['config'], env);
    assert.equal(text.code, 0);
    assert.match(text.stdout, /^PORT +3000$/m);
    assert.match(text.stderr, /BASEURL is not a setting; did you mean BASE_URL\?/);
    const json = await masthead(['config', '--json'], env);
    const shown = JSON.parse(json.stdout).data;
    assert.equal(shown.settings.PORT, '3000');
    assert.ok(shown.notes.length > 0);
    for (const output of [text.stdout, text.stderr, json.stdout])
      assert.doesNotMatch(output, /hush-hush|xxxx/);
  });

  test("has every setting in the operator's guide", () => {
    const guide = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8');
    for (const [name, setting] of Object.entries(settings)) {
      const mark = 'secret' in setting ? ' *' : '';
      assert.ok(guide.includes(`| \`${name}\`${mark} | ${setting.meaning} | ${setting.default} |`), name);
    }
  });

  test('names every fault of the settings at once', async () => {
    const { code, stderr } = await masthead(['config'], { PORT: 'http', VARIANT: 'both', SECRET: 'short' });
    assert.equal(code, 1);
    assert.deepEqual(
      stderr
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ')[0]),
      ['PORT', 'VARIANT', 'SECRET'],
    );
  });

  test('does not make a database for a command that looks for one', async () => {
    const { code, stderr } = await masthead(['admin', 'agents', 'list'], { DATA_DIR: join(dir, 'none') });
    assert.equal(code, 1);
    assert.match(stderr, /^There is no database at .*\n$/);
  });

  test('makes the database once, also when several processes try', async () => {
    const env = { DATA_DIR: join(dir, 'new') };
    const runs = await Promise.all([1, 2].map(() => mastheadProcess(['migrate', '--json'], env)));
    assert.deepEqual(
      runs.map(({ code, stderr }) => [code, stderr]),
      [
        [0, ''],
        [0, ''],
      ],
    );
    assert.match(readFileSync(join(env.DATA_DIR, 'secret'), 'utf8'), /^[0-9a-f]{64}\n$/);
    assert.equal(statSync(join(env.DATA_DIR, 'secret')).mode & 0o777, 0o600);
    assert.deepEqual(
      readdirSync(env.DATA_DIR).filter((name) => name.startsWith('secret')),
      ['secret'],
    );
    const taken = runs.flatMap(({ stdout }): string[] => JSON.parse(stdout).data.steps);
    assert.deepEqual(taken, [...new Set(taken)]);
    assert.equal((await masthead(['migrate'], env)).stdout, 'The schema is up to date.\n');
  });
});

describe("the operator's commands", () => {
  let dir = '';
  let server: RunningServer;
  let url = '';
  const env = (): Record<string, string> => ({ DATA_DIR: dir, BASE_URL: url });
  before(async () => {
    dir = scratchFolder('admin');
    server = await startServer(loadConfig({ DATA_DIR: dir, PORT: String(await freePort()) }), {
      log: createLog('silent'),
    });
    url = server.config.site.baseUrl;
    await post('/api/register', { email: 'ada@agents.example', name: 'Ada', slug: 'ada' });
  });
  after(async () => {
    await server.close();
  });

  test('lead an agent from its registration to a featured post, beside a running server', async () => {
    assert.match((await admin('agents list')).stdout, /^ada +Ada +ada@agents\.example +unverified +0 /m);

    const verified = await admin('agents verify ada');
    assert.match(verified.stdout, new RegExp(`^${uuid}\n$`));
    const key = verified.stdout.trim();
    assert.equal((await admin('agents verify ada')).code, 1);

    const published = await post('/api/publish', { title: 'One', content: 'Text', status: 'published' }, key);
    assert.equal(published.status, 201);
    const [id, address] = [String(published.at('post.id')), String(published.at('post.url'))];
    const featured = () =>
      server.ctx.db.selectFrom('posts').select('featured_at').where('id', '=', id).executeTakeFirstOrThrow();
    for (const name of [id, address, `${url}/ada/one`]) {
      const { posts: pinned } = JSON.parse(
        (await admin(`posts feature ${name} --reason x --json`)).stdout,
      ).data;
      assert.deepEqual(pinned, [{ id, url: address }]);
      assert.notEqual((await featured()).featured_at, null);
      assert.match(
        (await admin(`posts unfeature ${name} --reason x`)).stdout,
        /^1 post is unfeatured\. To undo it: /,
      );
      assert.equal((await featured()).featured_at, null);
    }

    const comment = await post(`/api/posts/${id}/comments`, { content: 'Spam' }, key);
    const commentId = String(comment.at('comment.id'));
    assert.equal(
      (await admin(`comments delete ${address} ${commentId} --reason x`)).stdout,
      '1 comment is deleted.\n',
    );
    assert.equal((await admin(`comments delete ${id} ${commentId} --reason x`)).code, 1);
    const second = await post(`/api/posts/${id}/comments`, { content: 'More spam' }, key);
    await post('/api/publish', { slug: 'one', status: 'draft' }, key);
    const withdrawn = await admin(`comments delete ${id} ${String(second.at('comment.id'))} --reason x`);
    assert.equal(withdrawn.stdout, '1 comment is deleted.\n', 'of a post that was withdrawn, too');
    await post('/api/publish', { slug: 'one', status: 'published' }, key);
    const offence = await post('/api/publish', { title: 'Bad', content: 'Text', status: 'published' }, key);
    const offending = new URL(String(offence.at('post.url')));
    assert.equal((await admin(`posts delete ${offending.href} --reason x`)).stdout, '1 post is deleted.\n');
    const { host, pathname: path } = offending;
    while ((await request(url, { path, host })).status === 200) await delay(5);
    assert.equal((await request(url, { path, host })).status, 410);

    assert.match(
      (await admin('agents suspend ada --reason spam')).stdout,
      /^1 agent is suspended\. To undo it: masthead admin undo [0-9a-f-]{36}\n$/,
    );
    const refused = await post('/api/publish', { title: 'Two', content: 'Text' }, key);
    assert.equal(refused.status, 403);
    assert.match(String(refused.at('error')), /spam/);
    const { suspendedReason, posts } = JSON.parse((await admin('agents show ada --json')).stdout).data;
    assert.deepEqual({ suspendedReason, posts }, { suspendedReason: 'spam', posts: 1 });
    assert.match((await admin('agents list')).stdout, / suspended /);

    assert.equal((await admin(`posts delete ${id} --reason x`)).stdout, '1 post is deleted.\n');
    assert.equal((await admin(`posts delete ${id} --reason x`)).code, 1);

    assert.match((await admin('agents restore ada --reason x')).stdout, /^1 agent is restored\. /);
    assert.match((await admin('agents restore ada --reason x')).stdout, /^0 agents are restored\.\n$/);
    assert.equal((await post('/api/publish', { title: 'Two', content: 'Text' }, key)).status, 201);
    assert.match((await admin('agents show ada')).stdout, /^posts +0 published, 1 drafts/m);
  });

  const failing: [command: string, message: RegExp][] = [
    ['agents show nobody', /^There is no agent with the slug, id or address 'nobody'\.\n$/],
    ['agents suspend nobody --reason x', /^There is no agent with the slug, id or address 'nobody'\.\n$/],
    [
      'posts feature 0190a2f0-0000-7000-8000-000000000000 --reason x',
      /^There is no post with the id '[^']+'\.\n$/,
    ],
    ['posts feature https://elsewhere.example/ada/one --reason x', /^There is no post at '[^']+'\.\n$/],
  ];
  for (const [command, message] of failing) {
    test(`end 'masthead admin ${command}' with one line`, async () => {
      const { code, stdout, stderr } = await admin(command);
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
    });
  }

  test('print the newest message, and its token alone', async () => {
    await post('/api/register', { email: 'bob@agents.example', name: 'Bob', slug: 'bob' });
    while ((await countWaitingMail(server.ctx)) > 0) await delay(5);
    const token = (await readNewestMail(server.config.mail.dir))?.token;
    const read = await masthead(['mail', '--last', '--token'], env());
    assert.equal(read.stdout, `${token}\n`);
    await post('/api/register', { email: 'cy@agents.example', name: 'Cy', slug: 'cy-the-later' });
    while ((await countWaitingMail(server.ctx)) > 0) await delay(5);
    const latest = await masthead(['mail'], env());
    assert.match(latest.stdout, /^To: cy@agents\.example$/m);
    const own = await masthead(['mail', '--last', '--token', '--to', 'Bob@agents.example'], env());
    assert.equal(own.stdout, `${token}\n`);
    const none = await masthead(['mail', '--to', 'nobody@agents.example'], env());
    assert.match(none.stderr, /^There is no message to this address in /);
    const whole = await masthead(['mail', '--last', '--to', 'bob@agents.example'], env());
    assert.match(whole.stdout, /^Date: .*\nTo: bob@agents\.example\nSubject: Confirm the agent bob\n\n/);
    assert.ok(whole.stdout.includes(`\n${token}\n`));
    const verified = await request(url, { path: `/api/verify?token=${token}` });
    assert.equal(verified.status, 200);
  });

  test('wait for the message of a registration that was only just answered', async () => {
    const waiting = masthead(['mail', '--last', '--token', '--to', 'dee@agents.example'], env());
    await delay(1_000);
    await post('/api/register', { email: 'dee@agents.example', name: 'Dee', slug: 'dee' });
    assert.match((await waiting).stdout, /^[0-9a-f-]{36}\n$/);
  });

  test('say where mail is when there is none to print', async () => {
    const elsewhere = { MAIL_DIR: join(dir, 'empty'), SMTP_URL: 'smtp://mail.example' };
    const { code, stderr } = await masthead(['mail', '--last'], { ...env(), ...elsewhere });
    assert.equal(code, 1);
    assert.match(stderr, /^There is no message in .*: SMTP_URL is set, so mail goes to that server\.\n$/);
  });

  const admin = (command: string) => masthead(['admin', ...command.split(' ')], env());

  const post = (path: string, body: object, key?: string) =>
    request(url, {
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
      body: JSON.stringify(body),
    });
});

type Run = { readonly code: number; readonly stdout: string; readonly stderr: string };

type Env = Readonly<Record<string, string>>;

/** Runs a command line in this process, with nothing in its environment but what is given. */
async function masthead(args: readonly string[], env: Env = {}): Promise<Run> {
  let [stdout, stderr] = ['', ''];
  const code = await runCommandLine(args, {
    out: (line) => (stdout += `${line}\n`),
    err: (line) => (stderr += `${line}\n`),
    env,
  });
  return { code, stdout, stderr };
}

/** The same in a process of its own. */
function mastheadProcess(args: readonly string[], env: Env = {}): Promise<Run> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { env: { ...quickLoad(), ...env } },
      (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr });
      },
    );
  });
}
