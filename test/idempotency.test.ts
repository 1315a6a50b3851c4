import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { publish } from '../src/services/posts/posts.ts';
import { requireCallerRow } from '../src/services/agents/callers.ts';
import { blockSource, listSourceBlocks, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import type { Answer } from './support/http.ts';

describeInstances('repeating a call with its Idempotency-Key', { env: { LIMIT_PUBLISH: '0' } }, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  let posts = 0;
  const create = async (more: object = {}) => {
    const slug = `essay-${++posts}`;
    const fields = { title: `Essay ${posts}`, slug, content: 'alpha beta', excerpt: 'Given.', ...more };
    return (await ada.client.publish(fields)).post;
  };
  type Sent = { method?: string; path: string; body: unknown; headers?: Record<string, string> };
  let keys = 0;
  /** Makes a call, and returns how to make it again. */
  const make = async ({ method = 'PATCH', path, body, headers = {} }: Sent) => {
    const once = { 'idempotency-key': `k${++keys}`, ...headers };
    const send = (sent: unknown = body) =>
      the().call(method, path, { key: ada.key, body: sent, headers: once });
    const first = await send();
    assert.ok(first.status < 300, first.text);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    return { first, send };
  };
  const assertRepeats = (again: Answer, first: Answer, name: string) => {
    assert.equal(again.text, first.text, name);
    assert.deepEqual(
      [again.status, again.headers['idempotent-replayed'], again.headers['etag'], again.headers['location']],
      [first.status, 'true', first.headers['etag'], first.headers['location']],
      name,
    );
  };

  test('is answered as before once the post is in the trash, and when it is gone for good', async () => {
    const publishAt = new Date(the().clock.now() + 3_600_000).toISOString();
    const bodies: object[] = [
      { edits: [{ old: 'beta', new: 'gamma' }] },
      { append: 'gamma' },
      { title: 'Other', append: 'gamma' },
      { excerpt: null },
      { content: 'gamma' },
      { title: 'Other' },
      { tags: ['gamma'] },
      { lang: 'de' },
      { image: null },
      { formerSlugs: [] },
      { commentsOpen: false },
      { disclosure: 'none' },
      { publishAt },
      { status: 'published' },
    ];
    for (const body of bodies) {
      const name = JSON.stringify(body);
      const { id, etag } = await create();
      const { first, send } = await make({ path: `/api/posts/${id}`, body, headers: { 'if-match': etag } });
      for (const permanent of [false, true]) {
        await ada.client.deletePost(id, { permanent });
        assertRepeats(await send(), first, name);
      }
      assertProblem(await send({ ...body, title: 'Something else' }), 'idempotency_mismatch');
      assertProblem(await the().call('PATCH', `/api/posts/${id}`, { key: ada.key, body }), 'not_found');
    }
  });

  test('of markdown too, and of a post that is found by its slug', async () => {
    const { id, slug } = await create();
    const made = [
      await make({
        path: `/api/posts/${id}?title=Headed`,
        body: 'Other text.',
        headers: { 'content-type': 'text/markdown' },
      }),
      await make({ method: 'POST', path: '/api/publish', body: { slug, append: 'gamma' } }),
      await make({ method: 'POST', path: '/api/posts', body: { slug, excerpt: null } }),
      await make({
        method: 'POST',
        path: '/api/publish',
        body: { slug, edits: [{ old: 'gamma', new: 'd' }] },
      }),
      await make({ method: 'POST', path: '/api/publish', body: { slug, status: 'published' } }),
    ];
    await ada.client.deletePost(id, { permanent: true });
    for (const [n, { first, send }] of made.entries()) assertRepeats(await send(), first, String(n));
  });

  test('when another post has taken its slug, its text has changed, or a time has passed', async () => {
    const { id } = await create();
    const path = `/api/posts/${id}`;
    const [slug, edits] = [`mv-${id}`, [{ old: 'beta', new: 'gamma' }]];
    const moved = await make({ path, body: { slug, edits } });
    const renamed = await make({ path, body: { slug: `${slug}-2`, excerpt: null } });
    await ada.client.updatePost(id, { slug: `${slug}-3`, formerSlugs: [], content: 'rewritten' });
    for (const taken of [slug, `${slug}-2`]) await create({ slug: taken });
    assertRepeats(await moved.send(), moved.first, 'moved');
    assertRepeats(await renamed.send(), renamed.first, 'renamed');
    assert.equal((await ada.client.getPost(id)).post.content, 'rewritten');

    const due = new Date(the().clock.now() + 3_600_000).toISOString();
    const draft = await create();
    const timed = await make({ path: `/api/posts/${draft.id}`, body: { publishAt: due, append: 'more' } });
    the().clock.advance(2 * 3_600_000);
    assertRepeats(await timed.send(), timed.first, 'timed');
  });

  test('is done once where processes are asked at once, and all of them answer', async () => {
    const { id } = await create({ content: 'one' });
    const { id: agentId, slug } = await requireCallerRow(the().ctx(), ada.id);
    const caller = { id: agentId, slug: slug ?? '', keyHash: '', suspended: null, version: '' };
    // The service itself, which knows nothing of what other processes have under way.
    const calls = [
      { edits: [{ old: 'one', new: 'two' }] },
      { append: 'three' },
      { slug: `at-once-${id}`, edits: [{ old: 'two', new: 'four' }] },
      { excerpt: null },
    ];
    for (const [n, fields] of calls.entries()) {
      const replay = { scope: `${ada.id} at once`, key: String(n), requestHash: String(n) };
      const all = await Promise.all(
        [1, 2, 3].map(async () => publish(the().ctx(), caller, fields, { postId: id, replay })),
      );
      assert.equal(all.filter(({ replayed }) => !replayed).length, 1, JSON.stringify(fields));
      for (const one of all) assert.equal(one.post.etag, all[0]?.post.etag);
    }
    assert.equal((await ada.client.getPost(id)).post.content, 'four\n\nthree');
  });

  test('that failed is tried again, and answered when it has succeeded', async () => {
    const { id } = await create({ content: 'one' });
    const body = { edits: [{ old: 'two', new: 'three' }] };
    const send = () =>
      the().call('PATCH', `/api/posts/${id}`, {
        key: ada.key,
        body,
        headers: { 'idempotency-key': `failed-${id}` },
      });
    for (const _ of [1, 2]) assertProblem(await send(), 'edit_not_applied');
    await ada.client.updatePost(id, { content: 'two' });
    const first = assertOk(await send());
    assertRepeats(await send(), first, 'failed before');
  });
});

describeInstances(
  'repeating a comment with its Idempotency-Key',
  { variants: ['subdomain'], env: { LIMIT_COMMENT: '0' } },
  (the) => {
    test('says what the first answer said, whatever is blocked since', async () => {
      const [ann, ben] = [await the().agent('Ann'), await the().agent('Ben')];
      const { post } = await ann.client.publish({ title: 'T', content: 'c', status: 'published' });
      const send = (content: string) =>
        the().call('POST', `/api/posts/${post.id}/comments`, {
          key: ben.key,
          body: { content },
          headers: { 'idempotency-key': content },
        });
      const { engine } = the().ctx();
      await engine.write(blockSource, { kind: 'phrase', value: 'cheap pills' });
      const held = assertOk(await send('Cheap pills!'), 201);
      const plain = assertOk(await send('Dear pills!'), 201);
      assert.deepEqual([held.at('warningCodes'), plain.at('warningCodes')], [['held'], []]);
      const [block] = await listSourceBlocks(the().ctx(), ['phrase']);
      await engine.write(setSourceBlock, { id: block?.id ?? '', isOn: false });
      await engine.write(blockSource, { kind: 'phrase', value: 'dear pills' });
      assert.equal((await send('Cheap pills!')).text, held.text);
      assert.equal((await send('Dear pills!')).text, plain.text);
    });

    test('is answered as before once it or its post is gone, closed or its author blocked', async () => {
      const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
      const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
      const send = () =>
        the().call('POST', `/api/posts/${post.id}/comments`, {
          key: bob.key,
          body: { content: 'Said once.' },
          headers: { 'idempotency-key': 'once' },
        });
      const first = assertOk(await send(), 201);
      const repeats = async (after: string) => {
        const again = await send();
        assert.equal(again.text, first.text, after);
        assert.equal(again.headers['idempotent-replayed'], 'true', after);
      };
      await ada.client.block(bob.slug);
      await repeats('block');
      await ada.client.updatePost(post.id, { commentsOpen: false });
      await repeats('close');
      await bob.client.deleteComment(post.id, String(first.at('comment.id')));
      await repeats('delete the comment');
      for (const permanent of [false, true]) {
        await ada.client.deletePost(post.id, { permanent });
        await repeats('delete the post');
      }
    });
  },
);
