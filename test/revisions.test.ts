import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { ageOutRevisions } from '../src/services/upkeep/expiry.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';

const day = 24 * 3_600_000;

/** SQLite gives rows without a prototype. */
const plain = <Row extends object>(rows: readonly Row[]) => rows.map((row) => ({ ...row }));

describeInstances('revisions of a post', {}, (the) => {
  let named = 0;
  const newAgent = (): Promise<TestAgent> => the().agent(`Reviser${++named}`);

  /** What is stored of the former states of a post, oldest first. */
  async function stored(instance: Instance, postId: string) {
    const rows = instance
      .ctx()
      .db.selectFrom('post_revisions')
      .select(['revision', 'cause', 'title', 'slug', 'status', 'bytes', 'content'])
      .where('post_id', '=', postId)
      .orderBy('revision');
    return plain(await rows.execute());
  }

  test('hold what each change replaced, and the text where it was the text', async () => {
    const { client, id: agentId } = await newAgent();
    const { post } = await client.publish({ title: 'First', content: 'one' });
    await client.updatePost(post.id, { title: 'Second' });
    await client.updatePost(post.id, { status: 'published' });
    await client.updatePost(post.id, { content: 'other' });
    await client.updatePost(post.id, { slug: 'moved' });
    await client.updatePost(post.id, { status: 'draft', tags: ['t'] });
    assert.equal((await client.updatePost(post.id, { tags: ['t'] })).changed, false);
    const common = { slug: 'first', status: 'draft', title: 'Second', bytes: 3, content: null };
    assert.deepEqual(await stored(the(), post.id), [
      { ...common, revision: 1, cause: 'created', title: 'First' },
      { ...common, revision: 2, cause: 'changed' },
      { ...common, revision: 3, cause: 'published', status: 'published', content: 'one' },
      { ...common, revision: 4, cause: 'changed', status: 'published', bytes: 5 },
      { ...common, revision: 5, cause: 'renamed', status: 'published', bytes: 5, slug: 'moved' },
    ]);
    const { db } = the().ctx();
    const now = await db
      .selectFrom('posts')
      .select(['revision', 'cause'])
      .where('id', '=', post.id)
      .execute();
    assert.deepEqual(plain(now), [{ revision: 6, cause: 'unpublished' }]);
    const agents = await db.selectFrom('agents').select('revision_bytes').where('id', '=', agentId).execute();
    assert.deepEqual(plain(agents), [{ revision_bytes: 3 }]);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
    await client.deletePost(post.id);
    assert.deepEqual(await stored(the(), post.id), []);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('are the newest 50 of a post', async () => {
    const { client } = await newAgent();
    const { post } = await client.publish({ title: 'Many', content: 'text 0' });
    for (let n = 1; n <= 53; n++) await client.updatePost(post.id, { content: `text ${n}` });
    const rows = await stored(the(), post.id);
    assert.deepEqual(
      rows.map(({ content }) => content),
      Array.from({ length: 50 }, (_, n) => `text ${n + 3}`),
    );
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('go when they were replaced 30 days ago, and not a moment before', async () => {
    const { client } = await newAgent();
    const instance = the();
    const { post } = await client.publish({ title: 'Old', content: 'written long ago' });
    instance.clock.advance(60 * day);
    await client.updatePost(post.id, { content: 'changed now' });
    instance.clock.freeze();
    const { updatedAt } = (await client.getPost(post.id)).post;
    instance.clock.advance(Date.parse(updatedAt) + 30 * day - 1 - instance.clock.now());
    await instance.ctx().engine.write(ageOutRevisions, null);
    assert.equal((await stored(instance, post.id)).length, 1);
    instance.clock.advance(1);
    await instance.ctx().engine.write(ageOutRevisions, null);
    assert.equal((await stored(instance, post.id)).length, 0);
    assert.deepEqual(await findWrongCounts(instance.ctx()), []);
  });
});

describeInstances(
  'revisions beyond the quota of their agent',
  { variants: ['path'], env: { QUOTA_REVISIONS: '1000' } },
  (the) => {
    test('let the oldest texts go, of whatever post, and refuse no write', async () => {
      const { client } = await the().agent('Quota');
      const posts = await Promise.all(
        ['a', 'b'].map((letter) => client.publish({ title: letter, content: letter.repeat(400) })),
      );
      const [first = '', second = ''] = posts.map(({ post }) => post.id);
      await client.updatePost(first, { title: 'a renamed' });
      await client.updatePost(first, { content: 'c'.repeat(400) });
      await client.updatePost(second, { content: 'd'.repeat(400) });
      const texts = () =>
        the()
          .ctx()
          .db.selectFrom('post_revisions')
          .select(['post_id', 'revision', 'bytes', 'content'])
          .orderBy('replaced_at')
          .orderBy('revision')
          .execute();
      assert.equal((await texts()).length, 3);
      await client.updatePost(second, { content: 'e'.repeat(400) });
      // The first text of the first post went, and with it the revision before that shared it.
      assert.deepEqual(
        (await texts()).map(({ post_id, content }) => [post_id, content?.[0]]),
        [
          [second, 'b'],
          [second, 'd'],
        ],
      );
      await client.updatePost(second, { content: 'f'.repeat(2_000) });
      await client.updatePost(second, { content: 'g' });
      assert.deepEqual(await texts(), [], 'not even one that fills it alone');
      assert.deepEqual(await findWrongCounts(the().ctx()), []);
    });
  },
);

describeInstances('revisions of a service that keeps none', { env: { REVISION_DAYS: '0' } }, (the) => {
  test('are not stored', async () => {
    const { client } = await the().agent('None');
    const { post } = await client.publish({ title: 'One', content: 'one' });
    await client.updatePost(post.id, { content: 'two' });
    const rows = await the().ctx().db.selectFrom('post_revisions').selectAll().execute();
    assert.deepEqual(rows, []);
  });
});
