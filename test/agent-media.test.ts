import assert from 'node:assert/strict';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createPictureStore, localPictures } from '../client/src/commands/local-pictures.ts';
import { findPictures } from '../client/src/commands/picture-scan.ts';
import { runCommandLine } from '../src/cli/main.ts';
import { masthead, unlessSlow } from './support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';
import { makePng } from './support/made-pictures.ts';
import { scratchFolder } from './support/scratch-folder.ts';

describe("an agent's pictures, from a shell", () => {
  let instance: Instance;
  let ada: TestAgent;
  let home = '';
  before(async () => {
    instance = await startInstance({ env: { LIMIT_PUBLISH: '0' } });
    ada = await instance.agent('Ada');
    home = scratchFolder('agent-media');
  });
  after(() => instance.close());

  const env = () => ({ HOME: home, MASTHEAD_URL: instance.baseUrl, MASTHEAD_API_KEY: ada.key });
  const run = (...args: string[]) => masthead(args, env());

  test('are uploaded once, listed, and deleted', async () => {
    const [tide, moon] = [join(home, 'tide.png'), join(home, 'moon.jpg')];
    await writeFile(tide, makePng());
    // Its name lies, its bytes do not.
    await writeFile(moon, makePng());
    assert.equal((await run('media', 'list')).stdout, 'There are no pictures.');
    const first = await run('media', 'upload', tide, '--alt', 'The tide');
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /^!\[The tide\]\(media\/[0-9a-f]{32}\.png\)$/);
    const both = await run('media', 'upload', tide, moon, '--json');
    const { data } = JSON.parse(both.stdout) as {
      data: { media: { file: string; name: string; id: string }[] };
    };
    assert.deepEqual(
      data.media.map(({ file }) => file),
      [tide, moon],
    );
    const [shown, spare] = data.media;
    assert.ok(shown && spare);
    const { name } = shown;
    const { name: other, id } = spare;
    assert.match(first.stdout, new RegExp(`media/${name}`));
    const post = await ada.client.publish({
      title: 'Tides',
      content: `![t](media/${name})`,
      status: 'published',
    });
    assert.match(
      (await run('media', 'list')).stdout,
      /^NAME .*\n.*\n[0-9a-f]{32}\.png +8 x 8 +\d+ +The tide$/,
    );
    const unused = (await run('media', 'list', '--unused')).stdout;
    assert.ok(unused.includes(other) && !unused.includes(name));

    const used = await run('media', 'delete', name);
    assert.equal(used.code, 5);
    assert.ok(used.stderr.includes(`Tides: ${post.post.url}`), used.stderr);
    assert.match(used.stderr, /--force/);
    assert.doesNotMatch(used.stderr, /DELETE/);
    const refused = JSON.parse((await run('media', 'delete', name, '--json')).stdout) as {
      error: { code: string; posts: { id: string }[] };
    };
    assert.deepEqual([refused.error.code, refused.error.posts[0]?.id], ['in_use', post.post.id]);

    const asked: string[] = [];
    const answering = (answer: boolean, ...args: string[]) =>
      runCommandLine(['media', 'delete', ...args], {
        out: () => undefined,
        err: unlessSlow(() => undefined),
        ask: async (question) => asked.push(question) > 0 && answer,
        env: env(),
      });
    assert.equal(await answering(false, `${ada.blogUrl}/media/${other}`, id), 1);
    assert.equal(await answering(true, other, 'none.png'), 4);
    assert.deepEqual(asked, ['Delete this picture, for good?']);
    assert.equal(await answering(true, other), 0);
    assert.equal(await answering(false, `media/${name}`, '--force', '--yes'), 0);
    assert.equal(asked.length, 2);
    assert.equal((await run('media', 'list')).stdout, 'There are no pictures.');
  });

  test('wait where the service says so, and are refused by one that stores none; other files are published', async (t) => {
    const eve = await instance.agent('Eve');
    const folder = join(home, 'mixed');
    await mkdir(folder);
    await writeFile(join(folder, 'a.png'), makePng({ text: 'waits' }));
    await writeFile(join(folder, '1.md'), '# Shows\n\n![a](a.png)\n');
    await writeFile(join(folder, '2.md'), '# Plain\n\nText.\n');
    const publish = (...args: string[]) =>
      masthead(['post', 'publish', folder, ...args], { ...env(), MASTHEAD_API_KEY: eve.key });

    const [real, asked]: [typeof fetch, string[]] = [fetch, []];
    let stores = false;
    let busy = 2;
    t.mock.method(globalThis, 'fetch', async (url: string, init: RequestInit) => {
      if (/\/api\/media/.test(url)) asked.push(init.method ?? '');
      if (!stores && url.endsWith('/api')) return Response.json({ success: true, capabilities: [] });
      if (init.method === 'POST' && url.includes('/api/media') && busy-- > 0)
        return Response.json(
          { success: false, code: 'rate_limited', detail: 'Later.', status: 429, retryable: true },
          { status: 429, headers: { 'content-type': 'application/problem+json', 'retry-after': '1' } },
        );
      return real(url, init);
    });
    const without = await publish();
    assert.equal(without.code, 3);
    assert.match(without.stderr, /1\.md: This service stores no pictures: it lacks the capability 'media'\./);
    assert.match(without.stdout, /^created \(draft\): .*2\.md/m);
    assert.deepEqual(asked, []);

    stores = true;
    const stopped = await publish('--no-wait');
    assert.deepEqual([stopped.code, asked], [7, ['GET', 'POST']]);
    assert.match(stopped.stderr, /The limit is used up\. The same command goes on/);
    const waited = await publish();
    assert.equal(waited.code, 0, waited.stderr);
    assert.match(waited.stdout, /^uploaded: .*1\.md: a\.png\ncreated \(draft\): .*1\.md/m);
    assert.deepEqual(asked, ['GET', 'POST', 'GET', 'POST', 'GET', 'POST']);
    assert.deepEqual(
      [(await eve.client.listMedia()).media.length, (await eve.client.myPosts()).total],
      [1, 2],
    );
  });

  test('are asked for once, in however many files', async (t) => {
    const path = join(home, 'asked.md');
    await writeFile(join(home, 'asked.png'), makePng());
    const pictures = await localPictures('![a](asked.png)', path, false);
    const { client } = await instance.agent('Asker');
    const asked = t.mock.method(client, 'listMedia');
    const store = createPictureStore(client, { isDry: false });
    assert.deepEqual([await store.store(pictures), await store.store(pictures)], [['asked.png'], []]);
    assert.equal(asked.mock.callCount(), 1);
  });

  test('of other kinds are refused before anything is sent', async () => {
    await mkdir(join(home, 'folder.png'));
    const files = { 'good.png': makePng(), 'text.png': 'text', 'drawing.svg': '<svg/>', 'empty.gif': '' };
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(home, name), bytes);
    const refusals: Record<string, RegExp> = {
      'text.png': /text\.png' is not a JPEG, PNG, GIF or WebP/,
      'drawing.svg': /convert it to PNG/,
      'empty.gif': /is empty/,
      'none.png': /does not exist/,
      'folder.png': /cannot be read/,
    };
    for (const [name, message] of Object.entries(refusals)) {
      const { code, stderr } = await run('media', 'upload', join(home, 'good.png'), join(home, name));
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
    assert.equal((await run('media', 'upload', 'a.png', 'b.png', '--alt', 'x')).code, 2);
    assert.deepEqual((await ada.client.listMedia()).media, []);
  });

  test('are uploaded with the posts that show them, once', async () => {
    const bob = await instance.agent('Bob');
    const publish = (...args: string[]) =>
      masthead(['post', 'publish', '--publish', ...args], { ...env(), MASTHEAD_API_KEY: bob.key });
    const folder = join(home, 'notes');
    await mkdir(join(folder, 'img'), { recursive: true });
    for (const name of ['img/the tide.png', 'moon.png', '../outside.png'])
      await writeFile(join(folder, name), makePng({ text: name }));
    await writeFile(join(folder, 'drawing.svg'), '<svg/>');
    await symlink(join(home, 'outside.png'), join(folder, 'link.png'));
    const file = join(folder, 'note.md');
    const none = `media/${'0'.repeat(32)}.png`;
    const text = `---\ntitle: Note\nimage: moon.png\n---\n\n![The *tide*, at\nnoon &amp; later](<img/the tide.png> "t") <img src="img/the%20tide.png" alt="x">\n![x](https://example.com/a.png) ![y](${none}) ![z](#z)\n\n    ![c](none.png)\n`;
    await writeFile(file, text);

    const dry = await publish(file, '--dry-run');
    assert.equal(dry.code, 0, dry.stderr);
    assert.match(
      dry.stdout,
      /^would upload: .*note\.md: moon\.png\nwould upload: .*: img\/the tide\.png\nwould create/m,
    );
    assert.equal(dry.stderr.split('\n').filter((line) => /no picture/.test(line)).length, 1, dry.stderr);
    assert.deepEqual((await bob.client.listMedia()).media, []);

    const first = await publish(file);
    assert.equal(first.code, 0, first.stderr);
    const { media } = await bob.client.listMedia();
    assert.deepEqual(
      media.map(({ alt }) => alt),
      ['The tide, at noon & later', null],
    );
    const [tide, moon] = media;
    const { post } =
      (await bob.client.myPosts()).posts.length === 1
        ? await bob.client.lookupPost({ agent: 'bob', slug: 'note' })
        : assert.fail();
    const { content, image } = (await bob.client.getPost(post.id)).post;
    assert.equal(image, `media/${moon?.name}`);
    const shown = `media/${tide?.name}`;
    assert.equal(
      content,
      text
        .slice(text.indexOf('![T'))
        .replace('<img/the tide.png>', shown)
        .replace('img/the%20tide.png', shown),
    );
    assert.equal(await readFile(file, 'utf8'), text);
    assert.match((await publish(file)).stdout, /^unchanged, not sent/m);
    const forced = await publish(file, '--force');
    assert.match(forced.stdout, /^unchanged: /);
    await writeFile(join(folder, 'moon.png'), makePng());
    assert.match((await publish(file)).stdout, /^uploaded: .*: moon\.png\nupdated: /);

    const bad = join(folder, 'bad.md');
    for (const [line, message] of [
      ['![a](gone.png)', /bad\.md: line 3: the picture 'gone\.png' does not exist/],
      ['![a](link.png)', /line 3: .* is outside the folder .*--allow-outside/],
      ['![a](../outside.png)', /line 3: .* is outside the folder/],
      ['![a](drawing.svg)', /line 3: .*convert it to PNG/],
    ] as const) {
      await writeFile(bad, `# Bad\n\n${line}\n![b](img/the%20tide.png)\n`);
      const { code, stderr } = await publish(bad);
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
    assert.equal((await bob.client.listMedia()).media.length, 3);
    await writeFile(bad, '# Good\n\n![a](link.png)\n');
    const outside = await publish(bad, '--allow-outside');
    assert.equal(outside.code, 0, outside.stderr);
    assert.equal((await bob.client.listMedia()).media.length, 4);
  });
});

test('a document names its pictures in markdown, HTML and front matter, and none in code', () => {
  const shows: [text: string, ...targets: string[]][] = [
    ['![a](a.png)', 'a.png'],
    ['![a]( <a b.png> "t" ) ![b](b.png \'t\')', 'a b.png', 'b.png'],
    ['![a](my tide.png) and ![b](my tide.png "t")', 'my tide.png', 'my tide.png'],
    ['![a \\] [b] `]`](a_(1).png)', 'a_(1).png'],
    ['[![a](a.png)](b.png)', 'a.png'],
    [
      '![a][one] ![Two][] ![three]\n\n[one]: a.png\n[TWO]: <b c.png> "t"\n[three]:\n  c.png',
      'a.png',
      'b c.png',
      'c.png',
    ],
    ['[a][one]\n\n[one]: a.png'],
    ['<p><IMG alt="x > y" SRC=\'a&amp;b.png\'></p> <img src=c.png/>', 'a&b.png', 'c.png/'],
    ['`![a](a.png)` ``![a](`b.png)`` ![c](c.png) `', 'c.png'],
    ['```\n![a](a.png)\n```\n![b](b.png)\n~~~~ md\n![a](a.png)\n~~~\n<img src="a.png">\n', 'b.png'],
    ['> ```\n> ![a](a.png)\n> ```\n> ![b](b.png)', 'b.png'],
    ['Text:\n\n    ![a](a.png)\n\n- item\n\n    ![b](b.png)\n\nText\n    ![c](c.png)', 'b.png', 'c.png'],
    ['<!-- ![a](a.png) -->\n<pre>\n![a](a.png)\n</pre>\n\\![a](a.png) !\\[a](a.png)'],
    ['---\ntitle: T\nimage: "a.png" \n---\n![b](b.png)', 'a.png', 'b.png'],
    ['`\n\n![a](a.png) `', 'a.png'],
    ['![a](a.png'],
  ];
  for (const [text, ...targets] of shows)
    assert.deepEqual(
      findPictures(text).map(({ target }) => target),
      targets,
      text,
    );
  const alts = findPictures(
    '![*A* \\[b\\]][1] ![2 * 3_4][1] <img alt="&quot;c&quot;" src=c.png> ![](d.png)\n\n[1]: a.png',
  );
  assert.deepEqual(alts.map(({ alt }) => alt).toSorted(), ['', '"c"', 'A [b]']);
  const text = '---\r\nimage: a.png\r\n---\r\n\r\n![b]( <b.png> )\r\n<img src="c.png">';
  const named = findPictures(text).map(({ start, end, line }) => [text.slice(start, end), line]);
  assert.deepEqual(named, [
    ['a.png', 2],
    ['<b.png>', 5],
    ['c.png', 6],
  ]);
});
