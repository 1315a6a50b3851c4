import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { once as onceEmitted } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readInbox } from '../client/src/commands/inbox.ts';
import { createClient } from '../client/src/index.ts';
import { runCommandLine } from '../src/cli/main.ts';
import { unlessSlow } from './support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';
import { request } from './support/http.ts';
import { portOf, quickLoad } from './support/processes.ts';

const script = fileURLToPath(new URL('../bin/masthead.mjs', import.meta.url));

describe("the agent's commands", () => {
  let instance: Instance;
  let dir = '';
  before(async () => {
    instance = await startInstance({ env: { LIMIT_PUBLISH: '0', LIMIT_API: '0', LIMIT_ANONYMOUS: '0' } });
    dir = await mkdtemp(join(tmpdir(), 'masthead-agent-'));
  });
  after(async () => {
    await instance.close();
    await rm(dir, { recursive: true });
  });

  test('that got no answer take effect once when they are run again, and again after an answer', async (t) => {
    const { client, key } = await instance.agent('Twice');
    const home = join(dir, 'unfinished');
    const { post } = await client.publish({ title: 'Log', content: 'Begun.', status: 'published' });
    const file = join(dir, 'line.txt');
    await writeFile(file, 'A line.');
    const proxy = await startForgetfulProxy(instance);
    t.after(() => proxy.close());
    const run = (...args: string[]) =>
      mastheadHere(args, { home, url: proxy.baseUrl, env: { MASTHEAD_API_KEY: key } });
    const commands = [
      ['post', 'append', post.id, file],
      ['post', 'edit', post.id, '--old', 'Begun.', '--new', 'Begun. Begun.'],
      ['comment', post.id, 'Said once.'],
    ];
    const contents = ['Begun.\n\nA line.', 'Begun. Begun.\n\nA line.', 'Begun. Begun.\n\nA line.'];
    for (const [n, command] of commands.entries()) {
      proxy.forgets = true;
      for (let time = 0; time < 2; time++) {
        const { code, stderr } = await run(...command);
        assert.notEqual(code, 0);
        assert.match(stderr, /Try again in 60 min/);
      }
      proxy.forgets = false;
      await ok(run(...command));
      assert.equal((await client.getPost(post.id)).post.content, contents[n]);
    }
    assert.equal((await client.listComments(post.id)).total, 1);
    assert.deepEqual(await readdir(join(home, '.config', 'masthead')), []);
    await ok(run('post', 'append', post.id, file));
    assert.equal((await client.getPost(post.id)).post.content, `${contents[2]}\n\nA line.`);
    const refused = await run('post', 'edit', post.id, '--old', 'Nowhere.', '--new', 'x');
    assert.equal(refused.code, 5);
    assert.deepEqual(await readdir(join(home, '.config', 'masthead')), []);
  });

  test('lead from nothing to a post with a comment and a vote, and through the loss of a key', async () => {
    const home = join(dir, 'life');
    const run = (args: string[], input?: string) =>
      (input === undefined ? mastheadHere : masthead)(args, { home, url: instance.baseUrl, input });

    const registered = await ok(
      run(['register', '--email', 'ada@example.com', '--name', 'Ada', '--slug', 'ada']),
    );
    assert.match(registered, /The agent is 'ada' .*\n.*masthead verify -\n/s);
    const verified = await ok(run(['verify', '-'], `${await instance.token('ada@example.com')}\n`));
    const keys = join(home, '.config', 'masthead', `http-localhost+${instance.port}.key`);
    assert.ok(verified.includes(`The key is stored in ${keys}.`));
    assert.equal((await stat(keys)).mode & 0o777, 0o600);
    // As curl takes it: -H @file.
    assert.match(readFileSync(keys, 'utf8'), /^Authorization: Bearer [0-9a-f-]{36}\n$/);
    assert.equal((await stat(join(home, '.config', 'masthead'))).mode & 0o777, 0o700);
    assert.match(await ok(run(['whoami'])), /^slug +ada$/m);

    const file = join(home, 'note.md');
    await writeFile(file, '---\ntags: [engine, loom]\n---\n\n# Note G\n\nIt *weaves*.\n');
    const dry = await ok(run(['post', 'publish', file, '--publish', '--dry-run']));
    assert.match(dry, /^would create: .*note\.md -> http:\/\/ada\.localhost:\d+\/note-g$/m);
    const published = await ok(run(['post', 'publish', file, '--publish']));
    assert.match(published, /^created: .*note\.md -> http:\/\/ada\.localhost:\d+\/note-g$/m);
    assert.match(
      await ok(run(['post', 'list', '--status', 'published'])),
      /^published +20\S+Z +Note G +http\S+\/note-g$/m,
    );

    // What is printed can be changed and published again.
    const printed = await ok(run(['post', 'get', 'note-g']));
    assert.match(printed, /^---\ntitle: Note G\nslug: note-g\nstatus: published\n/);
    const revised = await ok(
      run(
        ['post', 'publish', '-'],
        printed.replace('weaves', 'weaves algebra').replace('Note G', 'Note Gamma'),
      ),
    );
    assert.match(revised, /^updated: standard input -> .*\/note-g$/m);

    const url = `http://ada.localhost:${instance.port}/note-g`;
    assert.match(await ok(run(['comment', url, 'It runs.'])), /^Comment added\.\n  http\S+#comment-\S+\n$/);
    const comments = await ok(run(['comments', 'note-g']));
    const [, commentId = ''] = /^Ada \(ada\), .*, ([0-9a-f-]{36})\n {2}It runs\.$/m.exec(comments) ?? [];
    assert.equal(await ok(run(['comment', 'delete', url, commentId])), 'Comment deleted.\n');
    assert.match(await ok(run(['vote', 'up', url])), /1 up, 0 down, score 1/);
    assert.match(await ok(run(['vote', 'clear', url])), /0 up, 0 down, score 0/);
    assert.match(await ok(run(['search', 'weaves', 'algebra'])), /^Note Gamma, by Ada\n {2}http/);

    await ok(run(['regenerate-key']));
    assert.match(await ok(run(['whoami'])), /^slug +ada$/m);
    await ok(run(['recover', '--email', 'ada@example.com']));
    const token = await instance.token('ada@example.com');
    const kept = await run(['recover', '--token', token]);
    assert.equal(kept.code, 1);
    assert.match(kept.stderr, /is already stored in .*--profile <name>.* --replace/);
    await ok(run(['recover', '--token', token, '--replace']));
    assert.match(
      await ok(run(['post', 'delete', 'note-g'])),
      /'masthead post restore note-g' takes it back, until 20/,
    );
    for (const named of ['note-g', url])
      assert.match(await ok(run(['post', 'delete', named])), /is in the trash\. Nothing was changed\.$/m);
    assert.match(
      await ok(run(['post', 'trash'])),
      /^RESTORABLE UNTIL .*\n20\S+ +published +note-g +Note Gamma$/m,
    );
    assert.match(await ok(run(['post', 'restore', url])), /^Restored 'Note Gamma', public at /);
    await ok(run(['post', 'delete', 'note-g', '--permanent']));
    assert.equal(await ok(run(['post', 'trash'])), 'The trash is empty.\n');
    await ok(run(['post', 'publish', file, '--publish']));
    await ok(run(['post', 'delete', 'note-g']));
    assert.equal(await ok(run(['post', 'trash', '--empty'])), 'Erased 1 post.\n');
    const gone = await run(['post', 'delete', url]);
    assert.equal(gone.code, 4);
    assert.match(gone.stderr, / is an address of this service, but there is no post/);
    await chmod(keys, 0o644);
    assert.match((await run(['whoami'])).stderr, /can be read by others.*chmod 600/);
  });

  test('show what happened, answer it, block who does not stop, and list what is one’s own', async () => {
    const [ada, bob] = [await instance.agent('Asked'), await instance.agent('Asker')];
    const run = (args: string[], key = ada.key) =>
      mastheadHere(args, { home: dir, url: instance.baseUrl, env: { MASTHEAD_API_KEY: key } });
    assert.equal(await ok(run(['inbox'])), 'There is nothing new.\n');
    const { post } = await ada.client.publish({ title: 'Asked', content: 'c', status: 'published' });
    const { comment } = await bob.client.addComment(post.id, 'Is it\u202E so?\nReally?');
    await bob.client.vote(post.id, 1);
    const seen = await ok(run(['inbox']));
    const address = `${post.url}#comment-${comment.id}`;
    assert.ok(
      seen.includes(`Asker (asker) commented on “Asked”\n  ${address}\n  Is it so?\n  Really?\n`),
      seen,
    );
    assert.match(seen, /^\S+ 1 up, 0 down on “Asked”$/m);
    const { data } = JSON.parse(await ok(run(['inbox', '--json'])));
    assert.deepEqual([data.length, data[0].kind], [2, 'comment']);
    const watched = await masthead(['inbox', '--watch', '--json'], {
      home: dir,
      url: instance.baseUrl,
      env: { MASTHEAD_API_KEY: ada.key },
      watch: once(
        (output) => output.split('\n').length > 2,
        (child) => child.kill(),
      ),
    });
    assert.deepEqual(
      watched.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
      data.map((event: unknown) => ({ ok: true, data: event })),
    );
    assert.match(
      await ok(run(['comment', post.url, 'It is.', '--reply-to', address])),
      /^Comment added\.\n  http\S+#comment-\S+\n$/,
    );
    const [answered] = (await bob.client.inbox()).events;
    assert.deepEqual([answered?.kind, answered?.comment?.parentId], ['reply', comment.id]);
    await ok(run(['inbox', '--seen']));
    assert.equal(await ok(run(['inbox'])), 'There is nothing new.\n');

    assert.match(await ok(run(['block', 'asker'])), /^You block 'asker': it can no longer comment/);
    assert.match(await ok(run(['blocks'])), /^Asker \(asker\), /);
    const refused = await run(['comment', post.url, 'Oh?'], bob.key);
    assert.deepEqual([refused.code, /blocked you/.test(refused.stderr)], [5, true]);
    const { key } = await instance.agent('Bystander');
    const { stderr } = await run(['comment', 'delete', post.url, comment.id], key);
    assert.match(stderr, /^'masthead my comments' lists the comments that are yours\.$/m);
    await ok(run(['unblock', 'asker']));
    assert.equal(await ok(run(['blocks'])), 'You block nobody.\n');
    assert.match(await ok(run(['my', 'comments'])), /, on “Asked” http\S+\n {2}It is\.$/m);
    assert.match(await ok(run(['my', 'votes'], bob.key)), /^up {3}\S+ “Asked” http/);
  });

  test('watch an inbox, and ask for no more than what is new', async () => {
    const [ada, bob] = [await instance.agent('Watcher'), await instance.agent('Watched')];
    const { post } = await ada.client.publish({ title: 'Watched', content: 'c', status: 'published' });
    const said = async (text: string) => bob.client.addComment(post.id, text);
    await said('one');
    const shown: string[][] = [];
    const calls: string[] = [];
    const client = createClient({
      baseUrl: instance.baseUrl,
      apiKey: ada.key,
      async fetch(url, init) {
        const response = await fetch(url, init);
        calls.push(String(response.status));
        return response;
      },
    });
    const steps = [async () => said('two'), async () => undefined, async () => said('three')];
    const ended = readInbox(client, {
      isWatched: true,
      show: ({ events }) => void shown.push(events.map(({ comment }) => comment?.content ?? '')),
      async wait() {
        const step = steps.shift();
        if (!step) throw new Error('enough');
        await step();
      },
    });
    await assert.rejects(ended, /enough/);
    assert.deepEqual(shown, [['one'], ['two'], ['three']]);
    // After what was new, the list after it is read once; from then on nothing new is 304.
    assert.deepEqual(calls, ['200', '200', '200', '200']);
    steps.push(
      async () => undefined,
      async () => undefined,
      async () => said('four'),
    );
    shown.length = 0;
    const idle = readInbox(client, {
      isWatched: true,
      show: ({ events }) => void shown.push(events.map(({ comment }) => comment?.content ?? '')),
      async wait() {
        const step = steps.shift();
        if (!step) throw new Error('enough');
        await step();
      },
    });
    await assert.rejects(idle, /enough/);
    assert.deepEqual(calls.slice(4), ['200', '200', '304', '200']);
    assert.deepEqual(shown, [['one', 'two', 'three'], ['four']]);
  });

  test('watch an inbox on through a restart of the service, but not of one that was never there', async () => {
    const ada = await instance.agent('Patient');
    let isDown = false;
    const client = createClient({
      baseUrl: instance.baseUrl,
      apiKey: ada.key,
      retry: { attempts: 1 },
      fetch: async (url, init) => (isDown ? Promise.reject(new TypeError('down')) : fetch(url, init)),
    });
    const states = [true, true, false];
    let lost = 0;
    const watching = async () =>
      readInbox(client, {
        isWatched: true,
        show: () => undefined,
        onLost: () => void lost++,
        async wait() {
          const state = states.shift();
          if (state === undefined) throw new Error('enough');
          isDown = state;
        },
      });
    await assert.rejects(watching(), /enough/);
    assert.equal(lost, 2);
    isDown = true;
    await assert.rejects(watching(), /no answer/);
  });

  test('say where there is no key, what a refusal means, and which address is none', async () => {
    const home = join(dir, 'refusals');
    const cases: [args: string[], more: Record<string, string>, message: RegExp][] = [
      [['whoami'], {}, /^There is no API key for http.*masthead register/],
      [['whoami'], { MASTHEAD_API_KEY: 'x y' }, /^What MASTHEAD_API_KEY holds for .* is not an API key/],
      [
        ['whoami'],
        { MASTHEAD_API_KEY: 'wrong' },
        /^This is not an API key.*\nFor a new key: masthead recover/,
      ],
      [['search', 'x', '--url', 'ftp://x'], {}, /^--url is "ftp:\/\/x", not the address of a service/],
      [
        ['search', 'x', '--url', 'http://127.0.0.1:1'],
        {},
        /^http:\/\/127\.0\.0\.1:1 gives no answer: .*\.\nThe address is from --url\./m,
      ],
      [['register', '--email', 'x', '--name', '', '--slug', 'xyz'], {}, /email .*\n.*name /s],
    ];
    for (const [args, env, message] of cases) {
      const { code, stdout, stderr } = await mastheadHere(args, { home, url: instance.baseUrl, env });
      assert.notEqual(code, 0);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    }
    const ada = await instance.agent('Refused');
    const failures: [args: string[], env: Record<string, string>, exit: number, code: string][] = [
      [['whoami'], { MASTHEAD_API_KEY: 'wrong' }, 6, 'unauthorized'],
      [['whoami'], {}, 6, 'no_key'],
      [['whoami', '--what'], {}, 2, 'usage'],
      [['search', 'x', '--url', 'http://127.0.0.1:1'], {}, 8, 'no_answer'],
      [['post', 'delete', 'none'], { MASTHEAD_API_KEY: ada.key }, 4, 'not_found'],
      [['register', '--email', 'x', '--name', '', '--slug', 'xyz'], {}, 5, 'invalid_input'],
      [['post', 'publish', 'nofile.md'], { MASTHEAD_API_KEY: 'x' }, 1, 'failed'],
    ];
    for (const [args, env, exit, code] of failures) {
      const failed = await mastheadHere([...args, '--json'], { home, url: instance.baseUrl, env });
      const { ok: isOk, error } = JSON.parse(failed.stdout);
      const { hint = '' } = error;
      assert.deepEqual([failed.code, isOk, error.code], [exit, false, code]);
      assert.ok(failed.stderr.includes(error.message.split('\n')[0]));
      assert.doesNotMatch(hint, /\/api/);
    }
    const env = { MASTHEAD_API_KEY: ada.key };
    const foreign = await mastheadHere(['vote', 'up', 'of-another'], { home, url: instance.baseUrl, env });
    assert.match(foreign.stderr, /^A post of another agent is named by its id or its address; /m);
  });

  test('keep a key that one has, and not in place of another', async () => {
    const home = join(dir, 'login');
    const [mia, noa] = [await instance.agent('Mia'), await instance.agent('Noa')];
    const login = (key: string, args: string[] = []) =>
      mastheadHere(['login', ...args], { home, url: instance.baseUrl, input: `${key}\n` });
    assert.match(
      await ok(login(mia.key)),
      /^The agent is 'mia'\.\nThe key is stored in .*\.key\. Later commands use http.*\.\n$/,
    );
    assert.match(await ok(mastheadHere(['whoami'], { home, url: instance.baseUrl })), /^slug +mia$/m);
    await ok(login(mia.key));
    assert.match((await login(noa.key)).stderr, /is already stored in .*--profile <name>.* --replace/);
    assert.match((await login('no key')).stderr, /^What standard input holds for .* is not an API key/);
    assert.match((await login('11111111-2222-4333-8444-555555555555')).stderr, /^This API key is unknown/m);
    assert.match(await ok(login(`Authorization: Bearer ${noa.key}`, ['--replace'])), /'noa'/);

    // skill.md has the key kept where the commands find it.
    const skill = (await instance.call('GET', '/skill.md')).text;
    assert.ok(skill.includes(`> ~/.config/masthead/http-localhost+${instance.port}.key`));
  });

  test('tell a draft from what is public, and a file from its post', async () => {
    const [uma, folder] = [await instance.agent('Uma'), join(dir, 'drafts')];
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'a.md'), '---\nslug: a\n---\n\n# A\n\nText');
    const drafted = await publishFolder(uma, folder);
    assert.match(drafted.stdout, /^created \(draft\): .*a\.md -> http/);
    assert.match(drafted.stderr, /^1 is a draft, which nobody else sees\. --publish makes public/m);
    assert.match((await publishFolder(uma, folder)).stdout, /^unchanged, not sent \(draft\): .*a\.md/);
    assert.match((await publishFolder(uma, folder, ['--publish'])).stdout, /^updated: .*a\.md/);

    // Another file becomes the same post: the first is no longer what the post is.
    await writeFile(join(dir, 'b.md'), '---\nslug: a\n---\n\n# A\n\nOther text');
    await publishFolder(uma, join(dir, 'b.md'), ['--publish']);
    assert.match((await publishFolder(uma, folder, ['--publish'])).stdout, /^updated: .*a\.md/);
  });

  test('publish all but what a file calls a draft, in the words of other programs too', async () => {
    const [ivy, folder] = [await instance.agent('Ivy'), join(dir, 'wishes')];
    await mkdir(folder, { recursive: true });
    const fronts: Record<string, string> = {
      plain: '',
      draft: 'status: draft',
      public: 'status: published',
      hugo: 'draft: true',
      ready: 'draft: false',
      jekyll: 'published: false',
      both: 'status: published\ndraft: true',
      dated: 'published: 2026-01-31',
    };
    for (const [name, front] of Object.entries(fronts))
      await writeFile(
        join(folder, `${name}.md`),
        `---\ntitle: ${name}\n${front}\n---\n\ndraft: true\n\nText of ${name}`,
      );
    const statuses = async (args: string[]) => {
      const { code, stderr } = await publishFolder(ivy, folder, args);
      assert.equal(code, 0, stderr);
      const { posts } = await ivy.client.listPosts();
      const drafts = posts.filter(({ status }) => status === 'draft').map(({ slug }) => slug);
      return { drafts: drafts.toSorted(), stderr };
    };
    const written = await statuses([]);
    assert.deepEqual(written.drafts, ['dated', 'draft', 'hugo', 'jekyll', 'plain']);
    assert.match(written.stderr, /^5 are drafts, which nobody else sees\. --publish makes public/m);
    assert.doesNotMatch(written.stderr, /'draft'/);
    const unlessDraft = await statuses(['--publish']);
    assert.deepEqual(unlessDraft.drafts, ['draft', 'hugo', 'jekyll']);
    assert.match(
      unlessDraft.stderr,
      /^3 are drafts, .* Their files say so; --publish=all makes them public\.$/m,
    );
    assert.deepEqual((await statuses(['--publish=all'])).drafts, []);
    assert.deepEqual((await statuses(['--draft'])).drafts.length, 8);
    const { content } = (await ivy.client.getPost((await ivy.client.listPosts()).posts[0]?.id ?? '')).post;
    assert.match(content, /^draft: true\n/);
    assert.equal((await publishFolder(ivy, folder, ['--publish=some'])).code, 2);
  });

  test('publish a folder of 120 files, and then only what changed', async () => {
    const [ada, folder] = [await instance.agent('Many'), join(dir, 'many')];
    await writePosts(folder, 120);
    const first = await publishFolder(ada, folder);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(first.stdout.match(/^created: /gm)?.length, 120);
    assert.match(first.stdout, /\n120 documents: 120 created\. The blog is http\S+\n$/);
    const order = [...first.stdout.matchAll(/^created: .*(post-\d+)\.md/gm)].map(([, name]) => name);
    assert.deepEqual(
      order,
      order.toSorted((a = '', b = '') => (a < b ? -1 : 1)),
    );
    const { posts: listed } = await ada.client.listPosts();
    const times = new Map(listed.map(({ slug, createdAt }) => [slug, createdAt]));
    const inOrder = order.map((slug = '') => times.get(slug) ?? '');
    assert.ok(inOrder.every((time, at) => time >= (inOrder[at - 1] ?? '')));
    assert.equal(await countPosts(ada), 120);

    await writeFile(join(folder, 'post-7.md'), document(7, 'anew'));
    const second = JSON.parse((await publishFolder(ada, folder, ['--json'])).stdout).data;
    assert.deepEqual([second.unchanged, second.updated, second.created], [119, 1, 0]);
    assert.equal(await countPosts(ada), 120);
  });

  test('stop at Ctrl-C and go on later without doubles, also when the memory of the run is lost', async () => {
    const [bob, folder] = [await instance.agent('Bob'), join(dir, 'stopped')];
    await writePosts(folder, 100);
    const stopAt20 = once(
      (output) => (output.match(/^created: /gm)?.length ?? 0) >= 20,
      (child) => child.kill('SIGINT'),
    );
    const stopped = await publishFolder(bob, folder, [], stopAt20);
    assert.equal(stopped.code, 130);
    assert.match(stopped.stderr, /^Stopped\. The same command goes on where this one stopped\.$/m);
    const done = await countPosts(bob);
    assert.equal(stopped.stdout.match(/^created: /gm)?.length, done);
    assert.ok(done >= 20 && done < 100);

    const config = join(homeOf(bob), '.config', 'masthead');
    for (const name of await readdir(config)) await rm(join(config, name));
    const resumed = JSON.parse((await publishFolder(bob, folder, ['--json'])).stdout).data;
    assert.deepEqual([resumed.unchanged, resumed.created, resumed.left], [done, 100 - done, 0]);
    assert.equal(await countPosts(bob), 100);
  });

  test('prune the posts whose files are gone, and no other', async () => {
    const [eve, folder] = [await instance.agent('Eve'), join(dir, 'pruned')];
    await mkdir(join(folder, 'sub'), { recursive: true });
    const write = async (name: string, title: string) =>
      writeFile(join(folder, name), `---\ntitle: ${title}\n---\nText of ${title}`);
    for (const name of ['stays', 'goes', 'moves', 'hides', 'sub/deep']) await write(`${name}.md`, name);
    await eve.client.publish({ title: 'By hand', content: 'c' });
    assert.equal((await publishFolder(eve, folder)).code, 0);
    const slugs = async () => (await eve.client.listPosts()).posts.map(({ slug }) => slug).toSorted();
    const all = await slugs();
    const prune = async (args: string[] = []) => {
      const { code, stdout, stderr } = await publishFolder(eve, folder, ['--prune', '--json', ...args]);
      const { data, error } = JSON.parse(stdout);
      const { deleted, results } = data ?? error;
      const files = results.filter(({ outcome }: { outcome: string }) => outcome === 'deleted');
      return { code, deleted, files: files.map(({ file }: { file: string }) => basename(file)), stderr };
    };

    for (const name of ['goes.md', 'sub/deep.md']) await rm(join(folder, name));
    await rename(join(folder, 'moves.md'), join(folder, 'moved.md'));
    await rename(join(folder, 'hides.md'), join(folder, '.hides.md'));
    await writeFile(join(folder, 'stays.md'), '');
    const failed = await prune();
    assert.deepEqual([failed.code, failed.deleted, failed.files], [3, 0, []]);
    await write('stays.md', 'stays');
    const tried = await prune(['--dry-run']);
    assert.deepEqual([tried.code, tried.files], [0, ['goes.md', 'hides.md', 'deep.md']]);
    assert.deepEqual(await slugs(), all);
    const done = await prune();
    assert.deepEqual([done.code, done.deleted], [0, 3]);
    assert.deepEqual(await slugs(), ['by-hand', 'moves', 'stays']);
    assert.equal((await prune()).deleted, 0);

    const single = await publishFolder(eve, join(folder, 'stays.md'), ['--prune']);
    assert.equal(single.code, 1);
    assert.match(single.stderr, /--prune needs a folder/);
  });

  test('send a file again whose post was deleted elsewhere', async () => {
    const [eve, folder] = [await instance.agent('Eva'), join(dir, 'deleted')];
    await writePosts(folder, 2);
    await publishFolder(eve, folder);
    const [post] = (await eve.client.listPosts()).posts;
    assert.ok(post);
    await eve.client.deletePost(post.id);
    const again = JSON.parse((await publishFolder(eve, folder, ['--json'])).stdout).data;
    assert.deepEqual([again.unchanged, again.created], [1, 1]);
  });

  test('refuse files that would share a post or have no title, and publish the others', async () => {
    const [kim, folder] = [await instance.agent('Kim'), join(dir, 'clashes')];
    await mkdir(join(folder, '.hidden'), { recursive: true });
    const files: Record<string, string | Uint8Array> = {
      'a.md': '# Same\n\nText',
      'b.md': '---\ntitle: Same\n---\nOther text',
      'c.md': '---\nslug: given\n---\n# One\n\nText',
      'd.md': '---\nslug: given\n---\n# Two\n\nText',
      'e.md': '---\nslug: same\n---\n# Three\n\nText',
      'f.md': 'No heading.',
      'g.md': '---\ntitle: never closed\n',
      'h.md': new Uint8Array([0x23, 0x20, 0xff]),
      'i.markdown': '# C++\n\nText',
      'j.md': '# C#\n\nText',
      'k.txt': '# Not markdown',
      'm.md': 'title: Cut\n---\nText',
      'n.md': '\n---\ntitle: Late\n---\nText',
      '.hidden/l.md': '# Hidden\n\nText',
      '.draft.md': '# Hidden too\n\nText',
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { code, stdout, stderr } = await publishFolder(kim, folder);
    assert.equal(code, 3);
    assert.deepEqual(
      new Set([...stdout.matchAll(/^created \(draft\): .*\/(\w+)\.\w+ -> /gm)].map(([, name = '']) => name)),
      new Set(['a', 'c', 'i', 'j']),
    );
    const reasons = [
      /b\.md: would overwrite the post of .*a\.md/,
      /d\.md: would overwrite the post of .*c\.md/,
      /e\.md: would overwrite the post of .*a\.md/,
      /f\.md: has no title/,
      /g\.md: has front matter that cannot be read: line 1/,
      /h\.md: is not UTF-8/,
      /m\.md: has front matter whose first line '---' is missing/,
      /n\.md: has front matter twice, or after an empty line/,
    ];
    for (const reason of reasons) assert.match(stderr, reason);
    assert.equal(stderr.match(/^failed: /gm)?.length, reasons.length);
  });

  test('draw one moving line on a terminal, and no line for each file', async () => {
    const [lea, folder] = [await instance.agent('Lea'), join(dir, 'drawn')];
    await writePosts(folder, 8);
    const [lines, drawn]: [string[], string[]] = [[], []];
    const code = await runCommandLine(['post', 'publish', folder], {
      out: (line) => lines.push(line),
      err: unlessSlow((line) => lines.push(line)),
      status: (text) => drawn.push(text),
      env: { HOME: homeOf(lea), MASTHEAD_URL: instance.baseUrl, MASTHEAD_API_KEY: lea.key },
    });
    assert.equal(code, 0);
    assert.equal(lines.length, 9);
    for (const [n, line] of lines.slice(0, 8).entries())
      assert.match(line, new RegExp(`^created: .*post-${n}\\.md -> http\\S+/post-${n}$`));
    assert.match(lines[8] ?? '', /^8 documents: 8 created\. The blog is http\S+$/);
    assert.ok(drawn.some((text) => text.startsWith('[############............] 4/8 ')));
    assert.equal(drawn.at(-1), '');

    const long = join(folder, 'a-name-that-is-longer-than-any-terminal-is-wide');
    await writePosts(long, 8);
    for (const columns of [30, 40, 44, 80, 140]) {
      const shown: string[] = [];
      const ended = await runCommandLine(['post', 'publish', long, '--force'], {
        out: () => undefined,
        err: unlessSlow(assert.fail),
        status: (text) => shown.push(text),
        columns: () => columns,
        env: { HOME: homeOf(lea), MASTHEAD_URL: instance.baseUrl, MASTHEAD_API_KEY: lea.key },
      });
      assert.equal(ended, 0);
      for (const text of shown) assert.ok(Array.from(text).length < columns, `${columns}: ${text}`);
      assert.ok(shown.some((text) => text.includes(' 8/8')));
      // The end of a name tells it from others; narrow ones have room for it only until there is a rate.
      if (columns >= 80) assert.ok(shown.some((text) => text.endsWith('7.md')));
    }
  });

  const homeOf = ({ slug }: TestAgent): string => join(dir, `home-${slug}`);

  const publishFolder = (agent: TestAgent, folder: string, args: string[] = [], watch?: Watch) =>
    (watch ? masthead : mastheadHere)(['post', 'publish', folder, ...args], {
      home: homeOf(agent),
      url: instance.baseUrl,
      env: { MASTHEAD_API_KEY: agent.key },
      watch,
    });
});

test('every command of an agent is in its guide, and no other', async () => {
  const guide = readFileSync(new URL('../docs/agents.md', import.meta.url), 'utf8');
  const named = [
    ...guide.matchAll(
      /^masthead (\w+(?:-\w+)?(?: (?:upload|publish|list|get|delete|up|down|clear|use|edit|comments|votes|show|append|history|diff|restore|trash|preview))?)/gm,
    ),
  ];
  let help = '';
  await runCommandLine(['--help'], { out: (text) => (help += text), err: assert.fail });
  const commands = [...help.matchAll(/^ {2}([a-z-]+(?: [a-z]+)*)/gm)].map(([, name = '']) => name);
  assert.deepEqual(
    new Set(named.map(([, name]) => name)),
    new Set(commands.slice(commands.indexOf('register'), commands.indexOf('conform'))),
  );
});

describe("the agent's commands at a limit", () => {
  let instance: Instance;
  let dir = '';
  before(async () => {
    instance = await startInstance({ env: { LIMIT_PUBLISH: '3' } });
    instance.clock.freeze();
    dir = await mkdtemp(join(tmpdir(), 'masthead-limit-'));
    await writePosts(dir, 5);
  });
  after(async () => {
    await instance.close();
    await rm(dir, { recursive: true });
  });

  test('stop with --no-wait, else wait as long as they are told, and say so', async () => {
    const ada = await instance.agent('Ada');
    const options = { home: join(dir, 'home'), url: instance.baseUrl, env: { MASTHEAD_API_KEY: ada.key } };
    const stopped = await mastheadHere(['post', 'publish', dir, '--no-wait'], options);
    assert.equal(stopped.code, 3);
    const used = await mastheadHere(['post', 'publish', dir, '--no-wait', '--json', '--force'], options);
    const { ok: isOk, error } = JSON.parse(used.stdout);
    assert.deepEqual(
      [used.code, isOk, error.code, error.reason.code],
      [7, false, 'incomplete', 'rate_limited'],
    );
    assert.match(stopped.stdout, /5 documents: 3 created, 2 left\. .*\n$/);
    assert.match(stopped.stderr, /^The limit is used up\. .*in 60 min 0 s there is room for more\.$/m);

    // Ctrl-C ends a wait.
    const interrupted = await masthead(['post', 'publish', dir], {
      ...options,
      watch: once(
        (output) => output.includes('Waiting 60 min 0 s; Ctrl-C stops.'),
        (child) => child.kill('SIGINT'),
      ),
    });
    assert.equal(interrupted.code, 130);
    assert.match(interrupted.stdout, /5 documents: 3 unchanged, 2 left\. .*\n$/);

    // The service lets the next one pass when the hour is over: a second after the command was told to wait.
    instance.clock.advance(3_599_000);
    const watch = once(
      (output) => output.includes('Waiting 1 s'),
      () => instance.clock.advance(1_000),
    );
    const waited = await masthead(['post', 'publish', dir], { ...options, watch });
    assert.match(waited.stderr, /^The limit of 3 'publish' calls is used up\. Waiting 1 s; Ctrl-C stops\.$/m);
    assert.equal(waited.code, 0, waited.stderr);
    assert.match(waited.stdout, /5 documents: 2 created, 3 unchanged\. .*\n$/);
    assert.equal(await countPosts(ada), 5);
  });
});

type Run = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

type Watch = (child: ChildProcess, output: string) => void;

type RunOptions = {
  readonly home: string;
  readonly url: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly input?: string | undefined;
  /** Sees all output so far whenever there is more. */
  readonly watch?: Watch | undefined;
};

/** Runs the program in a process of its own. */
function masthead(args: readonly string[], { home, url, env, input, watch }: RunOptions): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args], {
      env: { HOME: home, MASTHEAD_URL: url, ...quickLoad(), ...env },
      stdio: 'pipe',
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      watch?.(child, stdout + stderr);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      watch?.(child, stdout + stderr);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input ?? '');
  });
}

/** The same in this process, which is quicker. */
async function mastheadHere(
  args: readonly string[],
  { home, url, env, input = '' }: RunOptions,
): Promise<Run> {
  let [stdout, stderr] = ['', ''];
  const given = Readable.from([Buffer.from(input)]);
  Object.defineProperty(process, 'stdin', { value: given, configurable: true });
  const code = await runCommandLine(args, {
    out: (line) => (stdout += `${line}\n`),
    err: unlessSlow((line) => (stderr += `${line}\n`)),
    env: { HOME: home, MASTHEAD_URL: url, ...env },
  });
  return { code, stdout, stderr };
}

/** A proxy that passes every call on and, while it `forgets`, does not say what was answered. */
async function startForgetfulProxy(instance: Instance) {
  const proxy = { forgets: false, baseUrl: '', close: () => void server.close() };
  const pass = async (asked: IncomingMessage, reply: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of asked) chunks.push(chunk as Buffer);
    const { authorization, 'content-type': type, 'idempotency-key': key } = asked.headers;
    const sent = { authorization, 'content-type': type, 'idempotency-key': key };
    const headers = Object.entries(sent).flatMap(([name, value]) => (value ? [[name, String(value)]] : []));
    const answer = await request(`http://127.0.0.1:${instance.port}`, {
      host: `localhost:${instance.port}`,
      method: asked.method ?? '',
      path: asked.url ?? '',
      headers: Object.fromEntries(headers) as Record<string, string>,
      body: Buffer.concat(chunks),
    });
    if (proxy.forgets) reply.writeHead(502, { 'retry-after': '3600' }).end();
    else reply.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.bytes);
  };
  const server = createServer((asked, reply) => void pass(asked, reply));
  await onceEmitted(server.listen(0, '127.0.0.1'), 'listening');
  proxy.baseUrl = `http://127.0.0.1:${portOf(server)}`;
  return proxy;
}

/** Acts the first time that the output is so. */
function once(isSo: (output: string) => boolean, act: (child: ChildProcess) => void): Watch {
  let acted = false;
  return (child, output) => {
    if (acted || !isSo(output)) return;
    acted = true;
    act(child);
  };
}

/** The output of a command that went well. */
async function ok(run: Promise<Run>): Promise<string> {
  const { code, stdout, stderr } = await run;
  assert.equal(code, 0, stderr);
  return stdout;
}

async function writePosts(folder: string, count: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  await Promise.all(
    Array.from({ length: count }, (_, n) => writeFile(join(folder, `post-${n}.md`), document(n))),
  );
}

function document(n: number, text = 'Text'): string {
  return `---\ntitle: Post ${n}\nstatus: published\n---\n\n${text} of post ${n}.\n`;
}

async function countPosts({ client }: TestAgent): Promise<number> {
  return (await client.listPosts({ limit: 1000 })).posts.length;
}
