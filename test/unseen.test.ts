import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type Instance,
  type TestAgent,
} from './support/instance.ts';
import { open } from './support/pages.ts';

/** What readers do not see, each in its own way. */
const content = [
  'Seen [text][label SECRET].',
  '[//]: # (SECRET)',
  '[label SECRET]: https://example.com "Seen title"\n[unused]: /SECRET',
  '```js SECRET\nseen()\n```',
  '| seen |\n|-|\n| seen | SECRET |',
  '[^unused]: SECRET',
].join('\n\n');

const comment = 'Seen\n\n[//]: # (SECRET)';

/** A tool's answer, as text. */
async function callTool(the: Instance, name: string, args: object, key?: string): Promise<string> {
  const answer = await the.call('POST', '/mcp', {
    ...(key === undefined ? {} : { key }),
    headers: { accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
  });
  assert.equal(answer.status, 200);
  return answer.text;
}

describeInstances('what readers do not see', {}, (the, variant) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
  });
  const publish = async (title: string) => ada.client.publish({ title, content, status: 'published' });
  const read = async (id: string, key?: string) =>
    the().call('GET', `/api/posts/${id}`, key === undefined ? {} : { key });

  test('is given back to the author alone, with a warning that counts it', async () => {
    const { post, warnings } = await publish('Own');
    assert.match(
      warnings?.join() ?? '',
      /\d+ characters of the markdown show nothing to readers, so other agents/,
    );
    assert.equal((await ada.client.getPost(post.id)).post.content, content);
    for (const key of [undefined, bob.key]) {
      const { content: left } = assertOk(await read(post.id, key)).at('post') as { content: string };
      assert.doesNotMatch(left, /SECRET/);
      assert.match(left, /^Seen \[text\]\[l\]\.[^]*\[l\]: https:\/\/example\.com "Seen title"[^]*seen\(\)/);
    }
    const resource = {
      jsonrpc: '2.0',
      id: 1,
      method: 'resources/read',
      params: { uri: `masthead://post/${post.id}` },
    };
    const headers = { accept: 'application/json, text/event-stream' };
    const { text } = await the().call('POST', '/mcp', { headers, body: resource });
    assert.match(text, /Seen title/);
    assert.doesNotMatch(text, /SECRET/);
    assert.doesNotMatch(await callTool(the(), 'get_post', { post: post.id }, bob.key), /SECRET/);
    const own = toolAnswerOf(await callTool(the(), 'get_post', { post: post.id }, ada.key));
    assert.equal((own['post'] as { content: string }).content, content);
  });

  test('is on no page and in no twin or feed', async () => {
    const { post } = await publish('Pages');
    const { host, pathname } = new URL(post.url);
    const blog = new URL(ada.blogUrl);
    const root = blog.pathname === '/' ? '' : blog.pathname;
    const paths = [
      pathname,
      `${pathname}.md`,
      ...['/feed.xml', '/rss.xml', '/feed.json', '/index.md', '/llms.txt'].map((path) => root + path),
    ];
    for (const path of paths) {
      const answer = await the().call('GET', path, { host });
      assert.equal(answer.status, 200, path);
      assert.match(answer.text, /Seen|Pages/, path);
      assert.doesNotMatch(answer.text, /SECRET/, path);
    }
    const twin = await the().call('GET', pathname, { host, headers: { accept: 'text/markdown' } });
    assert.doesNotMatch(twin.text, /SECRET/);
  });

  test('is not the end of an excerpt: pages show one that was given whole', async () => {
    const excerpt = `${'Seen words. '.repeat(21)}MARKER and more.`;
    const fields = { title: 'Excerpt', content: 'Text.', tags: ['whole'], excerpt };
    const { post } = await ada.client.publish({ ...fields, status: 'published' });
    const site = the().baseUrl;
    const has = async (url: string) => (await open(the(), url)).text.includes('MARKER');
    const shows = async (url: string) =>
      /<p class="p-summary"[^>]*>[^<]*MARKER/.test((await open(the(), url)).text);
    const blog = ada.blogUrl;
    const forms = [
      ...['feed.xml', 'rss.xml', 'feed.json', 'index.md', 'tags/whole.md'].map((path) => `${blog}/${path}`),
      `${site}/api/posts/${post.id}`,
      ...(variant === 'subdomain' ? [`${site}/api/posts`, `${site}/index.md`] : []),
    ];
    for (const form of forms) assert.equal(await has(form), true, form);
    const pages = [blog, `${blog}/tags/whole`, ...(variant === 'subdomain' ? [`${site}/`] : [])];
    for (const page of pages) assert.equal(await shows(page), true, page);
  });

  test('gives others an ETag of their own, which is no match for the author', async () => {
    const { post } = await publish('Tags');
    const [own, others] = [await read(post.id, ada.key), await read(post.id, bob.key)];
    assert.notEqual(own.headers['etag'], others.headers['etag']);
    assert.equal((await read(post.id)).headers['etag'], others.headers['etag']);
    const again = async (key: string, tag: unknown) =>
      (await the().call('GET', `/api/posts/${post.id}`, { key, headers: { 'if-none-match': String(tag) } }))
        .status;
    assert.deepEqual(
      [
        await again(bob.key, others.headers['etag']),
        await again(ada.key, others.headers['etag']),
        await again(bob.key, own.headers['etag']),
      ],
      [304, 200, 200],
    );
    const plain = await ada.client.publish({ title: 'Plain', content: 'Seen.', status: 'published' });
    assert.equal(
      (await read(plain.post.id, ada.key)).headers['etag'],
      (await read(plain.post.id, bob.key)).headers['etag'],
    );
  });

  test('cannot be all of a post', async () => {
    const hidden = '[//]: # (SECRET)';
    const { post } = await publish('Whole');
    const sent = { title: 'Nothing', content: hidden };
    const refused = [
      await the().call('POST', '/api/publish', { key: ada.key, body: sent }),
      await the().call('POST', '/api/publish?dryRun=true', { key: ada.key, body: sent }),
      await the().call('PATCH', `/api/posts/${post.id}`, {
        key: ada.key,
        body: { content: '&nbsp;\n\n[^a]: b' },
      }),
    ];
    for (const answer of refused) {
      assertProblem(answer, 'invalid_input');
      assert.match(answer.text, /"field":"content","message":"shows nothing to readers/);
    }
    assert.match(await callTool(the(), 'publish', sent, ada.key), /shows nothing to readers/);
    assert.equal((await ada.client.getPost(post.id)).post.content, content);
    assert.equal((await ada.client.listPosts({ status: 'draft' })).total, 0);
  });

  if (variant === 'subdomain') {
    test('of a comment is given back to its author alone, and cannot be all of it', async () => {
      const { post } = await publish('Comments');
      const added = await bob.client.addComment(post.id, comment);
      assert.equal(added.comment.content, comment);
      assert.match(added.warnings?.join() ?? '', /show nothing to readers/);
      const contentFor = async (key?: string) =>
        (await the().client(key).listComments(post.id)).comments.map((each) => each.content);
      assert.deepEqual(await contentFor(bob.key), [comment]);
      assert.deepEqual([await contentFor(), await contentFor(ada.key)], [['Seen\n\n'], ['Seen\n\n']]);
      assert.doesNotMatch(await callTool(the(), 'list_comments', { post: post.id }, ada.key), /SECRET/);
      const nothing = await the().call('POST', `/api/posts/${post.id}/comments`, {
        key: bob.key,
        body: { content: '[//]: # (SECRET)' },
      });
      assertProblem(nothing, 'invalid_input');
      assert.match(
        await callTool(the(), 'add_comment', { post: post.id, content: '[a]: /SECRET' }, bob.key),
        /shows nothing to readers/,
      );
      assert.equal((await the().client().listComments(post.id)).total, 1);
    });
  }
});

function toolAnswerOf(body: string): Record<string, unknown> {
  const [, json = ''] = /^(?:data: )?(\{.*)$/m.exec(body) ?? [];
  const { result } = JSON.parse(json) as { result: { content: { text: string }[] } };
  return JSON.parse(result.content[0]?.text ?? '');
}
