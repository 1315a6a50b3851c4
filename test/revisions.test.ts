import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { ageOutRevisions } from '../src/services/upkeep/expiry.ts';
import { sha256 } from '../src/rules/secrets.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type Instance,
  type TestAgent,
} from './support/instance.ts';
import { onDatabase } from './support/on-database.ts';

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
    await client.deletePost(post.id, { permanent: true });
    assert.deepEqual(await stored(the(), post.id), []);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('are listed newest first with what changed, to their agent alone', async () => {
    const { client, key } = await newAgent();
    const { post } = await client.publish({ title: 'Lines', content: 'one\ntwo\nthree' });
    await client.updatePost(post.id, { title: 'Lines of text' });
    await client.updatePost(post.id, { content: 'one\n2\nthree\nfour', status: 'published' });
    const list = await client.listRevisions(post.id);
    assert.deepEqual(
      list.revisions.map(({ at, slug, ...revision }) => ({
        ...revision,
        slug: slug === 'lines' && at <= new Date(the().clock.now()).toISOString(),
      })),
      [
        { revision: 3, cause: 'published', title: 'Lines of text', status: 'published' },
        { revision: 2, cause: 'changed', title: 'Lines of text', status: 'draft' },
        { revision: 1, cause: 'created', title: 'Lines', status: 'draft' },
      ].map((revision, n) => ({
        ...revision,
        slug: true,
        bytes: [16, 13, 13][n],
        linesAdded: [3, 0, 3][n],
        linesRemoved: [2, 0, 0][n],
        ...(n === 0 ? { current: true } : {}),
      })),
    );
    assert.deepEqual([list.total, list.nextCursor], [3, null]);
    const walked: number[] = [];
    for await (const { revision } of client.iterateRevisions(post.id, { limit: 1 })) walked.push(revision);
    assert.deepEqual(walked, [3, 2, 1]);
    const tag = (await the().call('GET', `/api/posts/${post.id}/revisions`, { key })).headers['etag'];
    const again = { key, headers: { 'if-none-match': String(tag) } };
    assert.equal((await the().call('GET', `/api/posts/${post.id}/revisions`, again)).status, 304);

    const other = await newAgent();
    const path = `/api/posts/${post.id}/revisions`;
    for (const at of ['', '/1', '/1/diff']) {
      const refused = await the().call('GET', path + at, { key: other.key });
      assert.match(String(assertProblem(refused, 'forbidden').at('detail')), /or read its former texts\.$/);
    }
    assertProblem(await the().call('POST', `${path}/1/restore`, { key: other.key }), 'forbidden');
    assertProblem(await the().call('DELETE', path, { key: other.key }), 'forbidden');
    assertProblem(await the().call('GET', path), 'unauthorized');
    for (const at of ['/0', '/4', '/x', '/1.0'])
      assertProblem(await the().call('GET', path + at, { key }), 'not_found');
  });

  test('are read, compared and restored', async () => {
    const { client } = await newAgent();
    const first = {
      title: 'Kept',
      content: 'one\ntwo\n',
      tags: ['a'],
      lang: 'en',
      disclosure: 'ai-assisted',
    } as const;
    const { post } = await client.publish({ ...first, excerpt: 'By hand.' });
    await client.updatePost(post.id, {
      title: 'Lost',
      content: 'one\n2\n',
      tags: [],
      lang: null,
      excerpt: null,
    });
    await client.updatePost(post.id, { disclosure: 'none', status: 'published', slug: 'elsewhere' });
    const { revision } = await client.getRevision(post.id, 1);
    const { content, tags, lang, excerpt, disclosure, title } = revision;
    assert.deepEqual({ content, tags, lang, excerpt, disclosure, title }, { ...first, excerpt: 'By hand.' });
    assert.equal((await client.getRevision(post.id, 2)).revision.content, 'one\n2\n');
    assert.equal((await client.getRevision(post.id, 3)).revision.current, true);

    const { diff, truncated } = await client.diffRevisions(post.id, 1);
    assert.equal(truncated, false);
    assert.equal(
      diff,
      `# title: Kept -> Lost\n# tags: a -> none\n--- ${post.slug} revision 1\n+++ elsewhere revision 3\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n`,
    );
    assert.equal((await client.diffRevisions(post.id, 2, { to: 3 })).diff, '');
    assert.match((await client.diffRevisions(post.id, 2, { to: 1 })).diff, /\n-2\n\+two\n$/);

    const before = (await client.getPost(post.id)).post;
    const restored = await client.restoreRevision(post.id, 1, { ifMatch: '*' });
    assert.equal(restored.changed, true);
    const after = (await client.getPost(post.id)).post;
    assert.deepEqual(after, { ...before, ...first, excerpt: 'By hand.', updatedAt: after.updatedAt });
    const { revisions: list } = await client.listRevisions(post.id);
    assert.deepEqual(
      list.map(({ cause }) => cause),
      ['restored', 'published', 'changed', 'created'],
    );
    assert.equal((await client.restoreRevision(post.id, 1)).changed, false);
    assert.equal((await client.restoreRevision(post.id, 4)).changed, false);
    await client.restoreRevision(post.id, 2);
    assert.equal((await client.getPost(post.id)).post.excerpt, 'one 2');
    // It was made of the text then, so it is of the next one too.
    await client.updatePost(post.id, { content: 'three' });
    assert.equal((await client.getPost(post.id)).post.excerpt, 'three');
    await assert.rejects(client.restoreRevision(post.id, 1, { ifMatch: before.id }), { status: 400 });
    await assert.rejects(client.restoreRevision(post.id, 1, { ifMatch: restored.etag ?? '' }), {
      code: 'precondition_failed',
    });
    await assert.rejects(client.restoreRevision(post.id, 77), { code: 'not_found' });
  });

  test('wait to be compared, edited and restored without their texts', async (t) => {
    const { client, key } = await newAgent();
    const long = `€\n${'words\n'.repeat(20_000)}`;
    const { post } = await client.publish({ title: 'Long', content: long, excerpt: 'short' });
    await client.updatePost(post.id, { content: `${long}\n\nend` });
    const { renderer } = the().ctx();
    const waiting: [name: string, characters: number][] = [];
    for (const name of ['renderPost', 'editPost', 'diff'] as const) {
      const run = renderer[name] as (...given: unknown[]) => Promise<never>;
      t.mock.method(renderer, name, (...given: unknown[]) => {
        waiting.push([name, JSON.stringify(given[0]).length]);
        return run(...given);
      });
    }
    const dryRun = async (body: object) =>
      assertOk(await the().call('PATCH', `/api/posts/${post.id}?dryRun=true`, { key, body }));
    assert.match(String((await dryRun({ append: 'dry' })).at('diff')), /\+dry/);
    await dryRun({ content: 'short' });
    await client.updatePost(post.id, { append: 'more' });
    await client.updatePost(post.id, { excerpt: null });
    await client.diffRevisions(post.id, 1);
    await client.listRevisions(post.id);
    await client.restoreRevision(post.id, 1);
    assert.equal((await client.getPost(post.id)).post.content, long);
    assert.deepEqual(new Set(waiting.map(([name]) => name)), new Set(['renderPost', 'editPost', 'diff']));
    for (const [name, characters] of waiting) assert.ok(characters < 500, `${name} of ${characters}`);
  });

  test('are compared as they were when that was asked for, whatever changes while it waits', async (t) => {
    const { client } = await newAgent();
    const { post } = await client.publish({ title: 'Turns', content: 'one\n' });
    await client.updatePost(post.id, { content: 'two\n' });
    const { renderer } = the().ctx();
    const run = renderer.diff.bind(renderer);
    const isOver = t.mock.method(renderer, 'diff', async (...given: Parameters<typeof run>) => {
      await client.updatePost(post.id, { content: 'six\n' });
      return run(...given);
    });
    assert.match((await client.diffRevisions(post.id, 1)).diff, /^-one\n\+two$/m);
    isOver.mock.restore();
    assert.match((await client.diffRevisions(post.id, 1)).diff, /^-one\n\+six$/m);
  });

  test('that hold a key that works by now are not restored, nor such drafts published', async () => {
    const { client } = await newAgent();
    const later = randomUUID();
    const { post } = await client.publish({ title: 'Key', content: `it is ${later}` });
    await client.updatePost(post.id, { content: 'something' });
    const { post: draft } = await client.publish({ title: 'Draft', content: `it is ${later}` });
    const eve = await newAgent();
    // As if the key had been given out only now.
    await onDatabase(the().ctx(), `update agents set key_hash = '${sha256(later)}' where id = '${eve.id}'`);
    await assert.rejects(client.restoreRevision(post.id, 1), { code: 'leaked_key' });
    await assert.rejects(client.updatePost(draft.id, { status: 'published' }), { code: 'leaked_key' });
    assert.equal((await client.getPost(draft.id)).post.status, 'draft');
  });

  test('are erased with those that share their text, and say so', async () => {
    const { client, key, id: agentId } = await newAgent();
    const { post } = await client.publish({ title: 'Safe', content: 'plain' });
    await client.updatePost(post.id, {
      title: 'secretword title',
      content: 'the secretword',
      tags: ['secretword'],
    });
    await client.updatePost(post.id, { status: 'published' });
    await client.updatePost(post.id, { content: 'harmless', title: 'Safe', tags: [] });
    await client.updatePost(post.id, { lang: 'en' });
    const { erased } = await client.eraseRevision(post.id, 2);
    assert.equal(erased, 2);
    const rows = await the()
      .ctx()
      .db.selectFrom('post_revisions')
      .selectAll()
      .where('post_id', '=', post.id)
      .execute();
    assert.doesNotMatch(JSON.stringify(rows), /secretword/);
    const { revisions: list } = await client.listRevisions(post.id);
    assert.deepEqual(
      list.map(({ revision, erased: isErased = false, linesAdded, title }) => [
        revision,
        isErased,
        linesAdded,
        title,
      ]),
      [
        [5, false, 0, 'Safe'],
        [4, false, null, 'Safe'],
        [3, true, null, ''],
        [2, true, null, ''],
        [1, false, 1, 'Safe'],
      ],
    );
    for (const at of ['/2', '/3', '/2/diff', '/1/diff?to=3']) {
      const answer = await the().call('GET', `/api/posts/${post.id}/revisions${at}`, { key });
      assert.match(String(assertProblem(answer, 'not_found').at('detail')), /was erased/);
    }
    await assert.rejects(client.restoreRevision(post.id, 2), { code: 'not_found' });
    assert.equal((await client.getRevision(post.id, 1)).revision.content, 'plain');
    assert.equal((await client.getRevision(post.id, 4)).revision.content, 'harmless');
    await assert.rejects(client.eraseRevision(post.id, 5), { code: 'invalid_input' });
    await assert.rejects(client.eraseRevision(post.id, 9), { code: 'not_found' });
    assert.match((await client.eraseRevision(post.id, 4)).message, /present text of the post is the same/);
    assert.equal((await client.eraseRevisions(post.id)).erased, 1);
    assert.equal((await client.eraseRevisions(post.id)).erased, 0);
    const agents = await the()
      .ctx()
      .db.selectFrom('agents')
      .select('revision_bytes')
      .where('id', '=', agentId)
      .execute();
    assert.deepEqual(plain(agents), [{ revision_bytes: 0 }]);
    // What follows is kept again.
    await client.updatePost(post.id, { content: 'more' });
    assert.equal((await client.getRevision(post.id, 5)).revision.content, 'harmless');
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
