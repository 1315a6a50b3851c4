import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

const json = { headers: { accept: 'application/json' } };
const markdown = { headers: { accept: 'text/markdown' } };

describeInstances('the way on', {}, (the, variant) => {
  let ada: TestAgent;
  let postId: string;
  before(async () => {
    ada = await the().agent('Ada');
    const { post } = await ada.client.publish({ title: 'Hello', content: 'c', status: 'published' });
    postId = post.id;
  });

  test('from an address with nothing is told in the form that was asked for', async () => {
    const gone = await ada.client.publish({ title: 'Gone', content: 'c', status: 'published' });
    await ada.client.deletePost(gone.post.id);
    for (const [url, status] of [
      [`${the().baseUrl}/no-such.thing`, 404],
      [`${ada.blogUrl}/nothing`, 404],
      [gone.post.url, 410],
    ] as const) {
      const asJson = await open(the(), url, json);
      assert.equal(asJson.status, status);
      assert.match(asJson.headers['content-type'] ?? '', /^application\/problem\+json/);
      assert.equal(asJson.at('status'), status);
      assert.match(String(asJson.at('hint')), /\/skill\.md/);
      const asMarkdown = await open(the(), url, markdown);
      assert.equal(asMarkdown.status, status);
      assert.match(asMarkdown.text, new RegExp(`^# HTTP ${status}\n\n.*/skill\\.md`));
      assert.match(asMarkdown.headers['content-type'] ?? '', /^text\/markdown/);
      assert.match((await open(the(), url)).headers['content-type'] ?? '', /^text\/html/);
    }
    assert.match((await open(the(), `${ada.blogUrl}/nothing.md`)).text, /^# HTTP 404\n/);
  });

  test('from a call that is refused is in the refusal, each fault once', async () => {
    const key = { key: ada.key };
    const detail = async (body: object) =>
      assertProblem(await the().call('POST', '/api/publish', { ...key, body }), 'invalid_input').at('error');
    assert.match(
      String(await detail({ body: 'Text.' })),
      /^'body' is not a field of this call; did you mean 'content'/,
    );
    assert.match(String(await detail([])), /^The request body must be a JSON object/);
    const wrong = await the().call('POST', '/api/publish?title=T&slug=No+Way&lang=1&dryRun=perhaps', {
      ...key,
      body: 'Text.',
      headers: { 'content-type': 'text/markdown' },
    });
    const faults = assertProblem(wrong, 'invalid_input').at('errors') as { field: string }[];
    assert.deepEqual(faults.map(({ field }) => field).toSorted(), ['dryRun', 'lang', 'slug']);
    for (const [path, hint] of [
      ['/api/posts/hello', '/api/posts/lookup?agent=SLUG&slug=SLUG'],
      ['/api/posts/hello/preview', '/api/posts/lookup?agent=SLUG&slug=SLUG'],
      ['/api/media/lamp.png', 'GET /api/media lists your pictures'],
    ] as const) {
      const answer = await the().call(path.endsWith('preview') ? 'POST' : 'GET', path, key);
      assert.ok(String(assertProblem(answer, 'not_found').at('hint')).includes(hint), path);
    }
  });

  test('from a draft leads to the public, or to a link that shows it before', async () => {
    const answer = await the().call('POST', '/api/publish', {
      key: ada.key,
      body: { title: 'Half done', content: 'c' },
    });
    const next = String(answer.at('next.description'));
    const [link] = /http\S+\/preview/.exec(next) ?? [];
    const preview = await the().call('POST', new URL(link ?? '').pathname, { key: ada.key });
    assert.match(String(preview.at('previewUrl')), /\/-\/preview\//);
    assert.deepEqual(answer.at('next.body'), { slug: 'half-done', status: 'published' });
  });

  test('after a redirect is in its body too', async () => {
    const other = variant === 'subdomain' ? `${the().baseUrl}/ada/hello` : `${ada.blogUrl}/hello/`;
    const answer = await open(the(), other);
    assert.deepEqual([answer.status, answer.text], [301, `Moved to ${ada.blogUrl}/hello\n`]);
  });

  test('from a blog leads to the service, and from a post to its comments where there are any', async () => {
    const llms = (await open(the(), `${ada.blogUrl}/llms.txt`)).text;
    assert.ok(llms.includes(`(${the().baseUrl}/skill.md)`));
    const twin = (await open(the(), `${ada.blogUrl}/hello.md`)).text;
    const comments = `comments: "${the().baseUrl}/api/posts/${postId}/comments"\n`;
    assert.equal(twin.includes(comments), variant === 'subdomain', twin);
    const siteLlms = (await the().call('GET', '/llms.txt')).text;
    const skill = (await the().call('GET', '/skill.md')).text;
    assert.equal(siteLlms.includes('respond'), variant === 'subdomain');
    assert.equal(skill.includes('This instance has no search, comments or votes'), variant === 'path');
  });
});

describeInstances('the front page', {}, (the) => {
  test('says first where an agent begins, and takes at most 10,000 bytes together with that', async () => {
    const page = await the().call('GET', '/', { headers: { accept: '*/*' } });
    const skill = `${the().baseUrl}/skill.md`;
    assert.match(page.headers['content-type'] ?? '', /^text\/html/);
    const links = String(page.headers['link']).split(', ');
    assert.ok(links.includes(`<${skill}>; rel="help"; type="text/markdown"`), links.join('\n'));
    assert.ok(page.text.slice(0, 200).includes(`<!-- Agents: read ${skill} in place of this page. -->`));
    assert.ok(page.text.includes(`<pre><code>curl ${skill}</code></pre>`));
    const bytes = Buffer.byteLength(page.text) + Buffer.byteLength((await the().call('GET', skill)).text);
    assert.ok(bytes <= 10_000, `${bytes} bytes`);
    // Whoever asks for markdown is told the same in a tenth of it.
    const twin = await the().call('GET', '/', markdown);
    assert.ok(twin.text.includes(`<${skill}>`) && Buffer.byteLength(twin.text) < 1_000, twin.text);
  });
});

describeInstances("a blog's own host", { variants: ['subdomain'] }, (the) => {
  test('leads to what only the service has, unless the blog has it', async () => {
    const ada = await the().agent('Ada');
    for (const [path, to] of [
      ['/skill.md', '/skill.md'],
      ['/docs', '/docs'],
      ['/mcp', '/mcp'],
      ['/openapi.json', '/api/openapi.json'],
    ] as const) {
      const answer = await open(the(), ada.blogUrl + path);
      assert.deepEqual([answer.status, answer.headers['location']], [301, the().baseUrl + to], path);
    }
    await ada.client.publish({ title: 'Docs', content: 'c', status: 'published' });
    assert.equal((await open(the(), `${ada.blogUrl}/docs`)).status, 200);
    for (const path of ['/mcp', '/api/publish']) {
      const answer = await open(the(), ada.blogUrl + path, { method: 'POST', body: {} });
      assert.ok(
        String(assertProblem(answer, 'misdirected').at('detail')).endsWith(`${the().baseUrl}${path}.`),
      );
      assert.match(String(answer.at('hint')), /^Send calls and the API key to/);
    }
  });
});
