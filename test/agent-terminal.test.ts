import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { program, runCommandLine } from '../src/cli/main.ts';
import { agentCommands } from '../client/src/commands/agent-commands.ts';
import { listHelp } from '../client/src/terminal/help.ts';
import { createPublishReport } from '../client/src/commands/publish-report.ts';
import type { Call } from '../client/src/terminal/command.ts';
import { agentGroups } from '../client/src/commands/agent-commands.ts';
import { candidates } from '../client/src/terminal/completion.ts';
import { facts, fitted, listing, plainText, table } from '../client/src/terminal/format.ts';
import { columnsOf, cutInMiddle } from '../client/src/terminal/width.ts';
import { masthead, unlessSlow } from './support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';

describe('on a terminal', () => {
  let instance: Instance;
  let ada: TestAgent;
  let home = '';
  before(async () => {
    instance = await startInstance();
    ada = await instance.agent('Ada');
    home = await mkdtemp(join(tmpdir(), 'masthead-terminal-'));
  });
  after(async () => {
    await instance.close();
    await rm(home, { recursive: true });
  });

  const env = () => ({ HOME: home, MASTHEAD_URL: instance.baseUrl, MASTHEAD_API_KEY: ada.key });

  test('many posts are deleted after one question, or none', async () => {
    const posts = await Promise.all(
      ['one', 'two', 'three'].map((slug) => ada.client.publish({ title: slug, slug, content: 'c' })),
    );
    const [first] = posts;
    const asked: string[] = [];
    const remove = async (names: string[], answer: boolean) => {
      const lines: string[] = [];
      const code = await runCommandLine(['post', 'delete', ...names], {
        out: (line) => lines.push(line),
        err: unlessSlow((line) => lines.push(line)),
        ask: async (question) => asked.push(question) > 0 && answer,
        env: env(),
      });
      return { code, lines };
    };
    const count = async () => (await ada.client.myPosts()).total;
    const names = ['one', String(first?.post.id), `${ada.blogUrl}/two`];
    assert.deepEqual(await remove(names, false), { code: 1, lines: ['Nothing was deleted.'] });
    assert.deepEqual(asked, ['Delete these 2 posts, with comments and votes?']);
    // One that is not there keeps the others from being deleted.
    assert.equal((await remove(['one', 'none'], true)).code, 4);
    assert.equal(await count(), 3);
    assert.equal((await remove(names, true)).code, 0);
    assert.equal(await count(), 1);
    asked.length = 0;
    assert.equal((await remove(['three', '--yes'], false)).code, 0);
    assert.deepEqual([await count(), asked], [0, []]);
  });

  test('a person who is asked may take any time, and is not told that the service does', async () => {
    const { post } = await ada.client.publish({ title: 'Slowly', content: 'c' });
    const lines: string[] = [];
    const code = await runCommandLine(['post', 'delete', post.id], {
      out: (line) => lines.push(line),
      err: (line) => lines.push(line),
      ask: async () => delay(1_200, false),
      env: env(),
    });
    assert.deepEqual([code, lines], [1, ['Nothing was deleted.']]);
    await ada.client.deletePost(post.id, { permanent: true });
  });

  test('a terminal that obeys nothing has no moving line', async () => {
    const folder = await mkdtemp(join(home, 'dumb-'));
    for (const name of ['a', 'b'])
      await writeFile(join(folder, `${name}.md`), `# ${name}\n\nText of ${name}.`);
    const publish = async (TERM: string) => {
      const isTerminal = 'data:text/javascript,process.stderr.isTTY=true';
      const args = ['--import', isTerminal, 'client/src/cli.ts', 'post', 'publish', folder, '--dry-run'];
      const { stderr } = await promisify(execFile)(process.execPath, args, { env: { ...env(), TERM } });
      return stderr.includes('\u001B');
    };
    assert.deepEqual([await publish('xterm'), await publish('dumb')], [true, false]);
  });

  test('a terminal that does not know its width has lines as long as they are', async () => {
    const help = async (more: string) => {
      const args = ['--import', `data:text/javascript,${more}`, 'client/src/cli.ts', 'help', 'post', 'edit'];
      return (await promisify(execFile)(process.execPath, args)).stdout;
    };
    assert.equal(await help('process.stdout.columns=0'), await help(''));
    assert.notEqual(await help('process.stdout.columns=44'), await help(''));
  });

  test('posts whose files are gone are deleted after one question, or none', async () => {
    const folder = join(home, 'pruned');
    await mkdir(folder);
    for (const name of ['stays', 'goes'])
      await writeFile(join(folder, `${name}.md`), `# ${name}\n\nText of ${name}.`);
    const asked: string[] = [];
    const prune = async (answer: boolean, ...more: string[]) => {
      const code = await runCommandLine(['post', 'publish', folder, '--prune', ...more], {
        out: () => undefined,
        err: () => undefined,
        ask: async (question) => asked.push(question) > 0 && answer,
        env: env(),
      });
      return [code, (await ada.client.myPosts()).posts.map(({ slug }) => slug).toSorted()];
    };
    assert.deepEqual([await prune(true), asked], [[0, ['goes', 'stays']], []]);
    await rm(join(folder, 'goes.md'));
    assert.deepEqual(await prune(true, '--dry-run'), [0, ['goes', 'stays']]);
    assert.deepEqual([await prune(false), asked.length], [[0, ['goes', 'stays']], 1]);
    assert.deepEqual(await prune(true), [0, ['stays']]);
    const question = 'Delete the post of 1 file that is gone, with comments and votes?';
    assert.deepEqual(asked, [question, question]);
  });

  test('a file under another name keeps its post, also where its slug is not that of its title', async () => {
    const folder = join(home, 'renamed');
    await mkdir(folder);
    const write = async (name: string, title: string) =>
      writeFile(join(folder, name), `# ${title}\n\nText of it.`);
    const una = await instance.agent('Una');
    const publish = async (...more: string[]) => {
      const settings = { ...env(), MASTHEAD_API_KEY: una.key };
      const { code } = await masthead(['post', 'publish', ...more, '--publish'], settings);
      const { posts } = await una.client.myPosts();
      return [`exit code ${code}`, ...posts.map(({ id, slug }) => `${id} ${slug}`)];
    };
    await write('one.md', 'Ebb');
    const first = await publish(folder);
    assert.match(first.join(), /^exit code 0,\S+ ebb$/);
    await write('one.md', 'Ebb and flow');
    assert.deepEqual(await publish(folder, '--move'), first);
    await rename(join(folder, 'one.md'), join(folder, 'two.md'));
    assert.deepEqual(await publish(folder, '--prune'), first);
    await rename(join(folder, 'two.md'), join(folder, 'three.md'));
    assert.deepEqual(await publish(join(folder, 'three.md')), first);
    // Of two that could be meant neither is taken.
    await write('four.md', 'Neap');
    await publish(folder);
    await write('four.md', 'Ebb and flow');
    await publish(join(folder, 'four.md'), '--move');
    for (const name of ['three.md', 'four.md']) await rm(join(folder, name));
    await write('five.md', 'Ebb and flow');
    assert.equal((await publish(folder)).length, 1 + 3);
  });

  test('a key is asked for without being shown, and a link is as good as its token', async () => {
    const prompts: string[] = [];
    const lines: string[] = [];
    const code = await runCommandLine(['login'], {
      out: (line) => lines.push(line),
      err: unlessSlow((line) => lines.push(line)),
      secret: async (prompt) => (prompts.push(prompt), `${ada.key}\n`),
      env: { HOME: home, MASTHEAD_URL: instance.baseUrl },
    });
    assert.equal(code, 0, lines.join('\n'));
    assert.deepEqual(prompts, ['API key (not shown): ']);
    assert.doesNotMatch(lines.join('\n'), new RegExp(ada.key));

    await instance.client().register({ email: 'bob@example.com', name: 'Bob', slug: 'bob' });
    const link = `${instance.baseUrl}/verify?token=${await instance.token('bob@example.com')}`;
    const verified = await masthead(['verify', link, '--profile', 'bob'], env());
    assert.equal(verified.code, 0, verified.stderr);
  });

  test('-v shows each call, and nothing that is secret', async () => {
    await instance.client().register({ email: 'eve@example.com', name: 'Eve', slug: 'eve' });
    const token = await instance.token('eve@example.com');
    const { stderr } = await masthead(['verify', token, '-v', '--profile', 'eve'], env());
    assert.match(stderr, /^> GET http\S+\/api\/verify\?token=…\n< 200, request [0-9a-f-]{36} after \d+ ms$/);
    const seen = await masthead(['whoami', '--verbose'], env());
    assert.match(seen.stderr, /^> GET http\S+\/api\/me\n< 200/);
    assert.doesNotMatch(stderr + seen.stderr, new RegExp(`${token}|${ada.key}`));
  });

  test('help and completion know every command', async () => {
    const one = await masthead(['help', 'post', 'publish'], env());
    assert.equal(one.stdout, (await masthead(['post', 'publish', '--help'], env())).stdout);
    assert.match((await masthead(['help'], env())).stdout, /^ {2}register /m);
    assert.equal((await masthead(['help', 'nothing'], env())).code, 2);
    for (const asked of [
      ['completion', '--help'],
      ['help', 'completion'],
    ]) {
      const { code, stdout } = await masthead(asked, env());
      assert.deepEqual([code, stdout.split('\n')[0]], [0, 'Usage: masthead completion bash|zsh|fish']);
    }
    const toRead = agentGroups['Read and answer others'] ?? [];
    assert.ok(toRead.some(({ name }) => name === 'post get'));

    assert.ok(candidates(program, []).includes('post'));
    assert.deepEqual(candidates(program, ['vote']), ['up', 'down', 'clear']);
    assert.ok(candidates(program, ['post', 'list']).includes('--status'));
    assert.deepEqual(candidates(program, ['post', 'list', '--status']), ['draft', 'published']);
    assert.deepEqual(candidates(program, ['post', 'list', '--tag']), []);
    // Options may stand before the command.
    assert.deepEqual(candidates(program, ['--profile', 'bob', 'vote']), ['up', 'down', 'clear']);
    assert.deepEqual(candidates(program, ['--profile']), []);
    for (const shell of ['bash', 'zsh', 'fish'])
      assert.match((await masthead(['completion', shell], env())).stdout, /masthead complete /);
    // Files are offered where there is no word, or one may give an option.
    assert.match(
      (await masthead(['completion', 'fish'], env())).stdout,
      /^complete -c masthead -f -n .* "\^\[\^-\]"'$/m,
    );
    assert.equal((await masthead(['completion', 'cmd'], env())).code, 2);

    const script = (await masthead(['completion', 'bash'], env())).stdout;
    const file = join(home, 'completion.bash');
    await writeFile(
      file,
      `masthead() { echo "$@" > ${home}/asked; printf 'up\ndown\nclear\n'; }
${script}
COMP_WORDS=(masthead vote d)
COMP_CWORD=2
_masthead
echo "$(cat ${home}/asked): \${COMPREPLY[*]}"`,
    );
    const { stdout } = await promisify(execFile)('bash', [file]);
    assert.equal(stdout, 'complete vote: down\n');
  });

  test('tables and lists fit the width, and no address is cut', async () => {
    const title = `A title that is ${'very '.repeat(12)}long`;
    const { post } = await ada.client.publish({ title, content: 'c' });
    const list = async (columns: number | undefined) => {
      let text = '';
      const terminal = {
        out: (line: string) => (text += `${line}\n`),
        err: unlessSlow(assert.fail),
        env: env(),
      };
      const code = await runCommandLine(['post', 'list'], { ...terminal, columns: () => columns });
      assert.equal(code, 0);
      return text;
    };
    assert.match(await list(undefined), /^STATUS +CREATED +TITLE +ADDRESS$/m);
    for (const columns of [44, 80]) {
      const lines = (await list(columns)).trimEnd().split('\n');
      assert.equal(lines[1], `  ${post.url}`);
      assert.match(lines[0] ?? '', /^A title.*….*long \(draft\)$/);
      assert.ok(Array.from(lines[0] ?? '').length <= columns);
    }
    let history = '';
    await runCommandLine(['post', 'history', post.id], {
      out: (line) => (history = line),
      err: unlessSlow(assert.fail),
      columns: () => 44,
      env: env(),
    });
    assert.match(history, /^1 \(now\): created, \+1 -0\n  \d{4}-\S+Z\n  A title.*….*long$/);
    await ada.client.deletePost(post.id);
    const rows = [
      ['name', 'x'.repeat(100)],
      ['e-mail', 'y'.repeat(20)],
    ];
    for (const width of [20, 44, 80, 140])
      for (const line of table(rows, { width }).split('\n')) assert.ok(line.length <= width, line);
    assert.equal(table(rows, { width: 44 }).split('\n')[1], `e-mail  ${'y'.repeat(20)}`);
  });

  test('what others wrote goes on at a word, below its indent', () => {
    const text = [
      'Iris (iris) commented on “A long title”',
      '  http://a.example/a-very-long-address',
      '  One  two three',
    ];
    const narrow = fitted(text.join('\n'), 20).split('\n');
    assert.deepEqual(narrow, [
      'Iris (iris)',
      'commented on “A long',
      'title”',
      '  http://a.example/a-very-long-address',
      '  One  two three',
    ]);
    assert.deepEqual(fitted('  灯台 日誌 two', 9).split('\n'), ['  灯台', '  日誌', '  two']);
    assert.equal(fitted(text.join('\n')), text.join('\n'));
    // A text without spaces goes on at a wide character, and no line begins with what ends a sentence.
    assert.deepEqual(fitted('  潮汐と月。長い記録(https://a.example/x)港', 10).split('\n'), [
      '  潮汐と',
      '  月。長い',
      '  記録',
      '  (https://a.example/x)港',
    ]);
  });

  test('the inbox, comments and search fit the width', async () => {
    const long = `It is ${'rather '.repeat(20)}long`;
    const { post } = await ada.client.publish({ title: long, content: long, status: 'published' });
    const noa = await instance.agent('Noa');
    await noa.client.addComment(post.id, long);
    for (const args of [['inbox'], ['comments', post.id], ['search', 'rather'], ['my', 'comments']]) {
      let text = '';
      const terminal = { out: (line: string) => (text += line), err: unlessSlow(assert.fail), env: env() };
      assert.equal(await runCommandLine(args, { ...terminal, columns: () => 44 }), 0);
      for (const line of text.split('\n'))
        assert.ok(line.length <= 44 || /^ *http\S+$/.test(line), `${args.join(' ')}: ${line}`);
    }
  });

  test('lists for operators cut texts alone, and become lines where an id would not fit', () => {
    const id = '01a21241-e13c-70fa-a518-ac1cab4329e1';
    const rows = [[id, 'x'.repeat(40), 'word '.repeat(20).trim()]];
    const heads = ['ID', 'SLUG', 'TEXT'];
    const table120 = listing(heads, rows, 120);
    assert.deepEqual(
      table120.split('\n').map((line) => line.length <= 120),
      [true, true],
    );
    assert.match(table120, new RegExp(`^${id}  x{40}  word word .*…`, 'm'));
    const lines = listing(heads, [...rows, [id, '', 'two']], 80);
    assert.equal(lines.split('\n\n').length, 2);
    assert.match(lines, new RegExp(`^id    ${id}\\nslug  x{40}\\ntext  word`));
    assert.match(lines, new RegExp(`\\n\\nid    ${id}\\ntext  two$`));
  });

  test('help fits the width, and says the same in any', async () => {
    const words = (text: string) => text.split(/\s+/).toSorted();
    const help = async (args: string[], columns?: number) => {
      let text = '';
      const terminal = { out: (line: string) => (text += `${line}\n`), err: assert.fail, env: env() };
      assert.equal(await runCommandLine([...args, '--help'], { ...terminal, columns: () => columns }), 0);
      return text;
    };
    for (const name of ['', 'post', ...agentCommands.map((each) => each.name)]) {
      const args = name.split(' ').filter((word) => word !== '');
      const whole = await help(args);
      for (const columns of [44, 80, 140]) {
        const text = await help(args, columns);
        assert.deepEqual(words(text), words(whole), name);
        for (const line of text.split('\n'))
          assert.ok(line.length <= columns, `${name}, ${columns}: ${line}`);
      }
    }
    const minimal = { name: 'p', title: 'P.', version: () => '1', groups: { Commands: agentCommands } };
    const closing = 'A first line, and more.\nA second one.';
    assert.match(listHelp({ ...minimal, closing }, '', 44), /\nA first line, and more\.\nA second one\.$/);
  });

  test('options may stand before the command, and a word that ends others leads to them', async () => {
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await masthead(args, env());
      return [code, `${stdout}${stderr}`] as const;
    };
    const url = instance.baseUrl;
    assert.match((await run('--json', '--url', url, 'post', 'list'))[1], /"ok": true/);
    assert.match((await run('post', '--url', url, 'list'))[1], /STATUS/);
    assert.match((await run('--help', 'post', 'edit'))[1], /^Usage: masthead post edit/);
    assert.deepEqual(await run('publish', 'x.md'), [
      2,
      "masthead: unknown command 'publish'; did you mean 'post publish'?\nTry: masthead --help",
    ]);
    assert.match((await run('help', 'Confirm'))[1], /'Confirm'; did you mean 'verify'\?/);
    assert.match((await run('whoamy'))[1], /did you mean 'whoami'\?/);
    assert.match(
      (await run('--bogus', 'whoami'))[1],
      /unknown option '--bogus'\nTry: masthead whoami --help/,
    );
    const dashed = /unknown option '- '; a text that begins with a hyphen comes after --\n/;
    assert.match((await run('comment', 'x', '- one'))[1], dashed);
    assert.match((await run('comment', 'no-such-post', '--', '- one'))[1], /no post with the slug/);
  });

  test('wide characters take two columns, and what is one to readers is not cut apart', () => {
    for (const [text, columns] of [
      ['plain', 5],
      ['日本語', 6],
      ['한국 ｱ', 6],
      ['👨‍👩‍👧❤️🇩🇪👍🏽1️⃣', 10],
      ['e\u0301é', 2],
      ['שלום', 4],
      ['กำไร', 4],
      ['हिन्दी', 5],
    ] as const)
      assert.equal(columnsOf(text), columns, text);
    const rows = [
      ['日本語の長い題名'.repeat(4), 'x'],
      ['👨‍👩‍👧 family', 'y'],
    ];
    for (const width of [20, 44, 80]) {
      const lines = table(rows, { width }).split('\n');
      for (const line of lines) assert.ok(columnsOf(line) <= width, line);
      // The second column begins below itself.
      assert.equal(columnsOf(lines[0]?.slice(0, -1) ?? ''), columnsOf(lines[1]?.slice(0, -1) ?? ''));
    }
    assert.equal(cutInMiddle('👨‍👩‍👧'.repeat(9), 7), '👨‍👩‍👧👨‍👩‍👧…👨‍👩‍👧');
    const long = facts(
      [
        ['address', `http://${'x'.repeat(60)}`],
        ['name', 'one two three four'],
      ],
      24,
    );
    assert.equal(long, `address\n  http://${'x'.repeat(60)}\nname     one two three\n         four`);
  });

  test('short waits after the first have no line, and no time is said to be left beyond a limit; the same is not said of each file', (t) => {
    const [lines, drawn]: [string[], string[]] = [[], []];
    const call = {
      has: () => false,
      err: (line: string) => lines.push(line),
      status: (text: string) => drawn.push(text),
      columns: () => 40,
      out: () => undefined,
      result: () => undefined,
    } as unknown as Call;
    let [now, room] = [0, 5];
    t.mock.method(performance, 'now', () => now);
    const report = createPublishReport(call, 9, { wish: 'draft', blogUrl: '', room: () => room });
    now = 2_000;
    const document = { name: 'a.md', path: null, fault: null, read: async () => '' };
    for (room of [5, 8]) report.done(document, { kind: 'created', post: null, warnings: [] });
    assert.deepEqual(drawn, [
      '[##......................] 1/9 0.5/s',
      '[###..............] 2/9 1.0/s, 7 s left',
    ]);
    for (const seconds of [3, 2, 59, 60, 1])
      for (const wait of [{ seconds, reason: 'Full.' }, null]) report.waiting(wait);
    assert.deepEqual(lines, ['Full. Waiting 3 s; Ctrl-C stops.', 'Full. Waiting 1 min 0 s; Ctrl-C stops.']);
    assert.match(drawn.join('|'), /\|\[[#.]+\] 2\/9 waiting until \d\d:\d\d:\d\d\|/);
    for (const text of drawn) assert.ok(text.length < 40, text);

    lines.length = 0;
    for (const warnings of [['w'], ['w', 'x'], ['w'], ['w'], ['w']])
      report.done(document, { kind: 'created', post: null, warnings });
    assert.deepEqual(lines, [...Array(2).fill('warning: a.md: w'), 'warning: a.md: x', 'warning: a.md: w']);
    report.end(null);
    assert.equal(lines[4], 'warning: 2 more: w');
  });

  test('names are cut in their middle', () => {
    assert.equal(cutInMiddle('short', 5), 'short');
    assert.equal(cutInMiddle('a-long-name-7.md', 9), 'a-lo…7.md');
    for (const columns of [0, 1, 2, 3, 10, 15])
      assert.ok(Array.from(cutInMiddle('𝄞'.repeat(16), columns)).length <= columns);
  });
});

test('what others wrote says nothing to a terminal', () => {
  const sent = 'a\u001b[31mred\u001b]0;title\u0007\u009b2J\r\u0000\u007f\n\tb';
  assert.equal(plainText(sent), 'a[31mred]0;title2J\n\tb');
});
