import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { onDatabase } from './support/on-database.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

const day = 24 * 3_600_000;

describeInstances('a preview', {}, (the) => {
  let named = 0;
  const newAgent = (): Promise<TestAgent> => the().agent(`Drafter${++named}`);
  const see = (url: string) => open(the(), url);
  const statusOf = async (url: string) => (await see(url)).status;
  const draft = async ({ client }: TestAgent, title: string, more: object = {}) =>
    (await client.publish({ title, content: 'Some *text*.', ...more })).post;

  test('is made one at a time for an address, since a long one takes long', async (t) => {
    const ada = await newAgent();
    const urls: string[] = [];
    for (const name of ['one', 'two', 'six']) {
      const content = Array.from({ length: 1_500 }, (_, n) => `[link](link-${n}-${name})`).join(' ');
      const post = await draft(ada, `Links ${name}`, { content });
      urls.push((await ada.client.previewPost(post.id)).previewUrl);
    }
    // Each link is read once, with the name of its draft.
    const parse = URL.parse.bind(URL);
    const order: string[] = [];
    t.mock.method(URL, 'parse', (url: string, base?: string) => {
      const [, name] = /^link-\d+-(\w+)$/.exec(url) ?? [];
      if (name !== undefined && name !== order.at(-1)) order.push(name);
      return parse(url, base);
    });
    const answers = await Promise.all(urls.map(see));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal(order.length, 3, `in turns: ${order.join(' ')}`);
  });

  test('shows a draft as its page would be, and leads to that page once it is public', async () => {
    const ada = await newAgent();
    const post = await draft(ada, 'Shown', {
      tags: ['inks'],
      content:
        'Some *text*, [linked](https://example.com/), ![pictured](https://example.com/a.png).\n\n## Part\n\n[next](other?a=1&b=2) [here](#part)',
    });
    const made = await ada.client.previewPost(post.id);
    const ahead = Date.parse(made.expiresAt ?? '') - the().clock.now();
    assert.ok(ahead > 7 * day - 60_000 && ahead <= 7 * day);
    assert.match(made.previewUrl, new RegExp(`^${the().baseUrl}/-/preview/[A-Za-z0-9_-]{48}$`));
    const page = await see(made.previewUrl);
    assert.equal(page.status, 200);
    assert.match(page.text, /Preview of a draft, not published\. Ends 20\d\d-\d\d-\d\d \d\d:\d\d UTC\./);
    assert.match(page.text, /<h1 class="p-name"[^>]*>Shown<\/h1>/);
    assert.match(page.text, /Some <em>text<\/em>/);
    assert.doesNotMatch(
      page.text,
      /canonical|og:|twitter:|article:|ld\+json|rss\.xml|feed\.|Subscribe|comments/,
    );
    assert.ok(!page.text.includes(post.url), 'an address where nothing is yet');
    // As on its page, which is below the blog.
    assert.ok(
      page.text.includes(`<a href="${ada.blogUrl}/other?a=1&amp;b=2">next</a> <a href="#h-part">here</a>`),
    );
    const headers = (answer: typeof page) =>
      ['x-robots-tag', 'cache-control', 'referrer-policy'].map((name) => answer.headers[name]);
    const said = ['noindex, nofollow, noarchive', 'private, no-store', 'no-referrer'];
    assert.deepEqual(headers(page), said);
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; img-src/);
    assert.equal(page.headers['link'], undefined);
    const twin = await see(`${made.previewUrl}.md`);
    assert.deepEqual([twin.status, ...headers(twin)], [200, ...said]);
    assert.match(String(twin.headers['content-type']), /^text\/markdown/);
    assert.match(twin.text, /Preview of a draft, not published\.[^]*Some \*text\*/);
    const preferred = await open(the(), made.previewUrl, { headers: { accept: 'text/markdown, */*' } });
    assert.deepEqual([preferred.text, preferred.headers['vary']], [twin.text, 'Accept']);
    assert.equal(preferred.headers['content-location'], `${made.previewUrl}.md`);

    await ada.client.updatePost(post.id, { content: 'Other text.' });
    assert.match((await see(made.previewUrl)).text, /Other text\./, 'always the present text');
    await ada.client.updatePost(post.id, { status: 'published' });
    const moved = await see(made.previewUrl);
    assert.deepEqual([moved.status, moved.headers['location']], [302, post.url]);
    assert.deepEqual(headers(moved), said);
    const { previewUrl, expiresAt } = await ada.client.previewPost(post.id);
    assert.deepEqual([previewUrl, expiresAt], [post.url, null]);
    const withdrawn = await ada.client.updatePost(post.id, { status: 'draft' });
    assert.equal(await statusOf(made.previewUrl), 200, withdrawn.message);
    assert.ok(!the().log().includes(new URL(made.previewUrl).pathname.slice(11)), 'the log has no token');
  });

  test('ends: by its time, by hand, with its post, and while nobody may see that', async () => {
    const ada = await newAgent();
    const post = await draft(ada, 'Ending');
    const link = async (expiresIn?: number) =>
      (await ada.client.previewPost(post.id, { expiresIn })).previewUrl;
    const [first, second] = [await link(), await link(300)];
    assert.notEqual(first, second);
    assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200]);
    the().clock.advance(301_000);
    assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 404]);
    const { etag } = await ada.client.getPost(post.id);
    await ada.client.endPreviews(post.id);
    assert.equal((await ada.client.getPost(post.id)).etag, etag, 'the post did not change');
    assert.equal(await statusOf(first), 404);
    const next = await link();
    assert.equal(await statusOf(next), 200);
    await the().ctx().engine.write(suspendAgent, { slug: ada.slug, reason: 'spam' });
    assert.equal(await statusOf(next), 404);
    await the().ctx().engine.write(restoreAgent, { slug: ada.slug });
    await the()
      .ctx()
      .engine.write(moderatePost, { postId: post.id, to: { state: 'hidden', reason: 'spam' } });
    assert.equal(await statusOf(next), 404);
    const hidden = assertOk(await the().call('POST', `/api/posts/${post.id}/preview`, { key: ada.key }));
    assert.deepEqual(hidden.at('warningCodes'), ['held']);
    await the().ctx().engine.write(moderatePost, { postId: post.id, to: null });
    assert.equal(await statusOf(next), 200);
    await ada.client.deletePost(post.id);
    assert.equal(await statusOf(next), 404);
    await assert.rejects(ada.client.previewPost(post.id), { code: 'not_found' });
  });

  test('is there until the very moment at which it ends, and ends by hand as often as it is asked to', async () => {
    const ada = await newAgent();
    const post = await draft(ada, 'To the moment');
    the().clock.freeze();
    const made = await ada.client.previewPost(post.id, { expiresIn: 300 });
    the().clock.advance(Date.parse(made.expiresAt ?? '') - the().clock.now() - 1);
    assert.equal(await statusOf(made.previewUrl), 200);
    the().clock.advance(1);
    assert.equal(await statusOf(made.previewUrl), 404);
    for (let n = 0; n < 3; n++) {
      const { previewUrl } = await ada.client.previewPost(post.id);
      assert.equal(await statusOf(previewUrl), 200);
      await ada.client.endPreviews(post.id);
      assert.equal(await statusOf(previewUrl), 404);
    }
  });

  test('cannot be made up, nor moved to another post', async () => {
    const [ada, eve] = [await newAgent(), await newAgent()];
    const [own, other] = [await draft(ada, 'Own'), await draft(ada, 'Other')];
    const { previewUrl } = await ada.client.previewPost(own.id);
    const [base, token] = [previewUrl.slice(0, -48), previewUrl.slice(-48)];
    const bytes = Buffer.from(token, 'base64url');
    const changed = (change: (copy: Buffer) => void): string => {
      const copy = Buffer.from(bytes);
      change(copy);
      return copy.toString('base64url');
    };
    const wrong = [
      changed((copy) => copy.write(other.id.replaceAll('-', ''), 'hex')),
      changed((copy) => copy.writeUInt32BE(copy.readUInt32BE(16) + 1, 16)),
      ...Array.from({ length: 16 }, (_, n) =>
        changed((copy) => copy.writeUInt8(copy.readUInt8(20 + n) ^ 1, 20 + n)),
      ),
      ...Array.from({ length: 100 }, () => randomBytes(36).toString('base64url')),
      `${token}A`,
      token.slice(1),
      `${token}=`,
    ];
    const [absent] = await Promise.all(wrong.map((one) => see(base + one)).slice(0, 1));
    for (const one of wrong) {
      const answer = await see(base + one);
      assert.deepEqual([answer.status, answer.text], [404, absent?.text], one);
    }
    const there = await the().call('GET', new URL(previewUrl).pathname, { host: new URL(ada.blogUrl).host });
    assert.equal(there.status, the().variant === 'subdomain' ? 404 : 200, 'at the base host alone');
    for (const method of ['POST', 'DELETE']) {
      const path = `/api/posts/${own.id}/preview`;
      assert.ok([403, 404].includes((await the().call(method, path, { key: eve.key })).status));
      assertProblem(await the().call(method, path), 'unauthorized');
    }
    const body = (expiresIn: unknown) => ({ key: ada.key, body: { expiresIn } });
    for (const expiresIn of [299, 2_592_001, '300', 300.5, null]) {
      const refused = await the().call('POST', `/api/posts/${own.id}/preview`, body(expiresIn));
      const message = String(assertProblem(refused, 'invalid_input').at('errors.0.message'));
      assert.match(message, /^must be an integer from 300 to 2592000 seconds, (?:is|not) /);
    }
    await onDatabase(
      the().ctx(),
      `update posts set preview_epoch = preview_epoch + 1 where id = '${own.id}'`,
    );
    assert.equal(await statusOf(previewUrl), 404);
  });

  test('is made and seen while read-only, and not ended', async () => {
    const ada = await newAgent();
    const post = await draft(ada, 'Still');
    await the().restart({ READ_ONLY: 'on' });
    const { previewUrl } = await ada.client.previewPost(post.id);
    assert.equal(await statusOf(previewUrl), 200);
    await assert.rejects(ada.client.endPreviews(post.id), { code: 'read_only' });
    await the().restart({ READ_ONLY: 'off' });
    assert.equal(await statusOf(previewUrl), 200);
  });
});
