import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine, findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { purgeTrash } from '../src/services/trash/erasure.ts';
import { blockSource } from '../src/services/trust/source-blocks.ts';
import { assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';
import { callTool, placesOf } from './support/readings.ts';

const day = 24 * 3_600_000;

const unlimited = { LIMIT_API: '0', LIMIT_ANONYMOUS: '0' };

describeInstances('the trash', { env: unlimited }, (the, variant) => {
  const isCommunity = variant === 'subdomain';
  let named = 0;
  const newAgent = (): Promise<TestAgent> => the().agent(`Thrower${++named}`);
  const countsAreRight = async () => assert.deepEqual(await findWrongCounts(the().ctx()), []);

  test('takes a deleted post, and gives it back as it was', async () => {
    const [{ client, key }, other] = [await newAgent(), await newAgent()];
    const fields = { content: 'Some *text*.', tags: ['a', 'b'], lang: 'en', excerpt: 'By hand.' } as const;
    const { post } = await client.publish({ title: 'Thrown', ...fields, status: 'published' });
    await client.updatePost(post.id, { slug: 'moved-once' });
    await client.updatePost(post.id, { slug: 'moved-twice' });
    if (isCommunity) {
      await other.client.addComment(post.id, 'Well said.');
      await other.client.vote(post.id, 1);
    }
    const before = await client.getPost(post.id);
    const listed = (await client.myPosts()).posts;
    const page = await open(the(), before.post.url);
    assert.equal(page.status, 200);
    const feed = await open(the(), `${new URL(before.post.url).origin}/feed.xml`);

    const deleted = await client.deletePost(post.id);
    assert.equal(deleted.deleted, true);
    assert.match(deleted.message, /is in the trash, and can be restored until 20/);
    const left = Date.parse(deleted.restoreUntil ?? '') - the().clock.now();
    assert.ok(left > 30 * day - 60_000 && left <= 30 * day);
    if (isCommunity)
      assert.deepEqual([deleted.comments, deleted.votes], [1, { upvotes: 1, downvotes: 0, score: 1 }]);
    else assert.deepEqual([deleted.comments, deleted.votes], [undefined, undefined]);

    const path = `/api/posts/${post.id}`;
    const refusals = [
      await the().call('GET', path, { key }),
      await the().call('PATCH', path, { key, body: { title: 'x' } }),
      await the().call('DELETE', path, { key }),
      await the().call('DELETE', `${path}?dryRun=true`, { key }),
      await the().call('GET', `${path}/revisions`, { key }),
    ];
    for (const refused of refusals) {
      assertProblem(refused, 'not_found');
      assert.equal(refused.at('deleted'), true, refused.text);
      assert.match(String(refused.at('hint')), new RegExp(`^POST ${path}/restore takes it back`));
    }
    for (const method of ['GET', 'PATCH', 'DELETE'])
      for (const as of [{ key: other.key }, ...(method === 'GET' ? [{}] : [])]) {
        const body = method === 'PATCH' ? { body: { title: 'x' } } : {};
        const refused = assertProblem(await the().call(method, path, { ...as, ...body }), 'not_found');
        assert.doesNotMatch(refused.text, /deleted|restore|trash/);
      }
    assertProblem(await the().call('POST', `${path}/restore`, { key: other.key }), 'not_found');
    for (const slug of ['moved-twice', 'moved-once', 'thrown']) {
      const gone = await open(the(), before.post.url.replace(/[^/]+$/, slug));
      assert.equal(gone.status, 410, slug);
    }
    assert.deepEqual((await client.myPosts()).posts, []);
    assert.deepEqual((await client.listPosts()).posts, []);
    assert.equal((await client.me()).agent.postCount, 0);
    const trash = await client.listTrash();
    assert.deepEqual(trash.posts, [
      {
        id: post.id,
        title: 'Thrown',
        slug: 'moved-twice',
        status: 'published',
        deletedAt: trash.posts[0]?.deletedAt,
        restoreUntil: deleted.restoreUntil,
        comments: isCommunity ? 1 : 0,
      },
    ]);
    assert.deepEqual([trash.total, (await other.client.listTrash()).total], [1, 0]);
    if (isCommunity) {
      assertProblem(await the().call('GET', `${path}/comments`, { key }), 'not_found');
      const vote = await the().call('POST', `${path}/vote`, { key: other.key, body: { vote: -1 } });
      assertProblem(vote, 'not_found');
    }
    await countsAreRight();

    const restored = await client.restorePost(post.id);
    assert.equal(restored.changed, true);
    assert.deepEqual(await client.getPost(post.id), { ...before });
    assert.deepEqual((await client.myPosts()).posts, listed);
    assert.equal((await open(the(), before.post.url)).text, page.text);
    assert.equal((await open(the(), `${new URL(before.post.url).origin}/feed.xml`)).text, feed.text);
    const old = await open(the(), before.post.url.replace(/[^/]+$/, 'moved-once'));
    assert.deepEqual([old.status, old.headers['location']], [301, before.post.url]);
    assert.equal((await client.restorePost(post.id)).changed, false);
    assert.equal((await client.listTrash()).total, 0);
    await countsAreRight();
    await client.deletePost(post.id, { permanent: true });
  });

  test('leaves slugs free, and gives back those that still are', async () => {
    const { client } = await newAgent();
    const { post: first } = await client.publish({
      title: 'A',
      slug: 'one',
      content: 'a',
      status: 'published',
    });
    await client.updatePost(first.id, { slug: 'two' });
    await client.updatePost(first.id, { slug: 'three' });
    await client.deletePost(first.id);
    const { post: second } = await client.publish({
      title: 'B',
      slug: 'three',
      content: 'b',
      status: 'published',
    });
    assert.equal((await client.publish({ title: 'C', slug: 'one', content: 'c' })).created, true);
    await assert.rejects(client.restorePost(first.id), { code: 'slug_taken' });
    await assert.rejects(client.restorePost(first.id, { slug: 'one' }), { code: 'slug_taken' });
    const { post, changed } = await client.restorePost(first.id, { slug: 'four', status: 'draft' });
    assert.deepEqual(
      [changed, post.slug, post.status, post.publishedAt],
      [true, 'four', 'draft', first.publishedAt],
    );
    assert.notEqual(post.updatedAt, first.updatedAt);
    assert.deepEqual(
      (await client.listRevisions(first.id)).revisions.map(({ cause, slug }) => [cause, slug]),
      [
        ['restored', 'four'],
        ['renamed', 'three'],
        ['renamed', 'two'],
        ['created', 'one'],
      ],
    );
    await client.updatePost(first.id, { status: 'published' });
    const at = (slug: string) => open(the(), second.url.replace(/[^/]+$/, slug));
    assert.equal((await at('two')).headers['location'], (await client.getPost(first.id)).post.url);
    assert.equal((await at('three')).status, 200);
    // The draft that took it has no page yet.
    assert.equal((await at('one')).status, 410);
    await countsAreRight();
  });

  test('gives a draft no former slug at which a deleted post was, and frees the one that becomes public', async () => {
    const { client } = await newAgent();
    const publish = async (slug: string, status: 'draft' | 'published') =>
      (await client.publish({ title: slug, slug, content: slug, status })).post;
    const draft = await publish('left', 'draft');
    await client.updatePost(draft.id, { slug: 'held' });
    await client.deletePost(draft.id);
    for (const slug of ['left', 'held'])
      await client.deletePost((await publish(slug, 'published')).id, { permanent: true });
    const statusAt = async (slug: string) => (await open(the(), draft.url.replace(/[^/]+$/, slug))).status;
    await client.restorePost(draft.id);
    assert.deepEqual((await client.getPost(draft.id)).post.formerSlugs, []);
    assert.deepEqual([await statusAt('left'), await statusAt('held')], [410, 410]);
    await client.deletePost(draft.id);
    await client.restorePost(draft.id, { status: 'published' });
    assert.equal(await statusAt('held'), 200);
    const { message } = await client.updatePost(draft.id, { slug: 'moved', status: 'draft' });
    assert.doesNotMatch(message, /redirects/);
    assert.deepEqual([await statusAt('held'), await statusAt('moved')], [404, 404]);
  });

  test('gives back what others hear of: links, and what is held back', async () => {
    const [ada, bob] = [await newAgent(), await newAgent()];
    const { post: target } = await ada.client.publish({ title: 'T', content: 't', status: 'published' });
    const content = `See [this](${target.url}) of dear ducks.`;
    const { post: draft } = await bob.client.publish({ title: 'Linking', content });
    await bob.client.deletePost(draft.id);
    await bob.client.restorePost(draft.id, { status: 'published' });
    const links = async () => (await ada.client.inbox()).events.map(({ kind, from }) => [kind, from?.id]);
    assert.deepEqual(await links(), isCommunity ? [['link', draft.id]] : []);
    await bob.client.deletePost(draft.id);
    await the().ctx().engine.write(blockSource, { kind: 'phrase', value: 'dear ducks' });
    const { post, message, warningCodes } = await bob.client.restorePost(draft.id);
    assert.deepEqual([post.moderation?.action, warningCodes], ['held', ['held']]);
    assert.match(message, /^Restored 'Linking'\. It is held back/);
    assert.equal((await open(the(), draft.url)).status, 404);
    assert.deepEqual(await links(), []);
    await bob.client.deletePost(draft.id);
    const byModel = await callTool(the(), bob.key, 'restore_post', { post: draft.id });
    assert.deepEqual(byModel.warningCodes, ['held']);
    await bob.client.deletePost(draft.id);
    await assert.rejects(bob.client.restorePost(draft.id, { slug: bob.key }), { code: 'leaked_key' });
    await countsAreRight();
  });

  test('keeps drafts too, and a draft can be restored as a published post', async () => {
    const { client } = await newAgent();
    const { post } = await client.publish({ title: 'Draft', content: 'words to be found', tags: ['t'] });
    await client.deletePost(post.id);
    const restored = await client.restorePost(post.id, { status: 'published' });
    assert.equal(restored.post.status, 'published');
    assert.ok(restored.post.publishedAt !== null);
    assert.equal((await open(the(), restored.post.url)).status, 200);
    if (isCommunity) assert.equal((await client.search('words found')).posts[0]?.id, post.id);
    await countsAreRight();
    await client.deletePost(post.id, { permanent: true });
  });

  test('is emptied, and left for good by permanent', async () => {
    const { client, key } = await newAgent();
    const ids: string[] = [];
    for (let n = 0; n < 23; n++) {
      const { post } = await client.publish({ title: `T${n}`, content: 'x', status: 'published' });
      ids.push(post.id);
    }
    // The bytes of former texts and of comments are given back.
    const other = await newAgent();
    for (const id of ids.slice(-3)) {
      await client.updatePost(id, { content: 'Another text.' });
      if (isCommunity) await other.client.addComment(id, 'A comment.');
    }
    const [first = '', second = '', third = '', ...rest] = ids;
    const gone = await client.deletePost(first, { permanent: true });
    assert.deepEqual([gone.restoreUntil, gone.message], [null, "Deleted 'T0' for good."]);
    await client.deletePost(second);
    assert.equal((await client.deletePost(second, { permanent: true })).restoreUntil, null);
    for (const id of [first, second]) {
      const refused = assertProblem(
        await the().call('DELETE', `/api/posts/${id}?permanent=true`, { key }),
        'not_found',
      );
      assert.equal(refused.at('deleted'), undefined);
      await assert.rejects(client.restorePost(id), { code: 'not_found' });
    }
    for (const id of [third, ...rest]) await client.deletePost(id);
    const walked: string[] = [];
    for await (const post of client.iterateTrash({ limit: 2 })) walked.push(post.id);
    assert.deepEqual(walked, [third, ...rest].toReversed());
    assert.equal((await client.emptyTrash()).erased, 21);
    assert.equal((await client.emptyTrash()).erased, 0);
    const rows = await the().ctx().db.selectFrom('posts').select('id').where('id', 'in', ids).execute();
    assert.deepEqual(rows, []);
    await countsAreRight();
  });

  test('shows its posts nowhere, nor a former text, and restoring brings all back', async () => {
    const agent = await newAgent();
    const { client } = agent;
    const [word, query, slug] = [`quagga${named}`, `zebra${named}`, `hidden-${named}`];
    const fields = {
      title: `${word} title`,
      content: `${word} text ${query}`,
      tags: [`${word}tag`],
      excerpt: `${word} excerpt`,
    };
    const { post } = await client.publish({ ...fields, slug, status: 'published' });
    const places = () => placesOf(the(), { agent, word, query, slug, postId: post.id });
    const shown = await places();
    assert.ok(shown.length >= (isCommunity ? 70 : 40), `${shown.length}: ${shown.join(', ')}`);
    await client.deletePost(post.id);
    // One's own trash, and the refusals that say where the post is.
    const own = new RegExp(
      `^(?:own /api/(?:me/trash|posts/(?:${post.id}|lookup))|tool (?:get_post|list_revisions|list_comments) |masthead://post/)`,
    );
    assert.deepEqual(
      (await places()).filter((place) => !own.test(place)),
      [],
    );
    await client.restorePost(post.id);
    assert.deepEqual(await places(), shown);
    await client.updatePost(post.id, { title: 'Plain', content: query, tags: [], excerpt: null });
    // A former text is its agent's alone.
    const former = new RegExp(
      `^(?:own /api/posts/${post.id}/revisions|tool (?:list_revisions |get_post .*"revision":1)|export of revisions$)`,
    );
    assert.deepEqual(
      (await places()).filter((place) => !former.test(place)),
      [],
    );
  });

  test('is reached by models: a repeated deletion is done', async () => {
    const { client, key } = await newAgent();
    const { post } = await client.publish({ title: 'By model', content: 'one', status: 'published' });
    await client.updatePost(post.id, { content: 'two' });
    const run = (name: string, args: object) => callTool(the(), key, name, args);
    const listed = await run('list_revisions', { post: 'by-model' });
    assert.match(JSON.stringify(listed), /"revision":2.*"current":true.*"linesAdded":1.*"revision":1/);
    const then = await run('get_post', { post: 'by-model', revision: 1 });
    assert.match(JSON.stringify(then), /"cause":"created".*"content":"one"/);
    await run('restore_post', { post: 'by-model', revision: 1 });
    assert.equal((await client.getPost(post.id)).post.content, 'one');

    assert.equal((await run('delete_post', { post: 'by-model' })).changed, true);
    for (const name of ['by-model', post.id, post.url])
      assert.equal((await run('delete_post', { post: name })).changed, false, name);
    assert.equal((await run('get_post', { post: post.id })).code, 'not_found');
    assert.equal((await run('restore_post', { post: 'by-model' })).changed, true);
    assert.equal((await run('delete_post', { post: post.id, permanent: true })).restoreUntil, null);
    assert.equal((await run('delete_post', { post: post.id })).code, 'not_found');
    await countsAreRight();
  });

  test('is left after 30 days, and not a moment before', async () => {
    const instance = the();
    const erasures = async () => (await examine(instance.ctx())).find(({ what }) => what === 'erasures');
    const { client } = await newAgent();
    const { post } = await client.publish({ title: 'Edge', content: 'one', status: 'published' });
    await client.updatePost(post.id, { content: 'two' });
    const { restoreUntil } = await client.deletePost(post.id);
    instance.clock.freeze();
    instance.clock.advance(Date.parse(restoreUntil ?? '') - 1 - instance.clock.now());
    await instance.ctx().engine.write(purgeTrash, null);
    await client.restorePost(post.id);
    const { restoreUntil: again } = await client.deletePost(post.id);
    instance.clock.advance(Date.parse(again ?? '') - instance.clock.now());
    assert.equal((await client.listTrash()).total, 0);
    await assert.rejects(client.restorePost(post.id), { code: 'not_found' });
    await assert.rejects(client.deletePost(post.id, { permanent: true }), { code: 'not_found' });
    assert.deepEqual(await erasures(), { what: 'erasures', state: 'ok', detail: 'none is overdue' });
    instance.clock.advance(3 * 3_600_000);
    const overdue = await erasures();
    assert.equal(overdue?.state, 'look');
    assert.match(overdue?.detail ?? '', /^[1-9]\d* posts of the trash and 0 deleted agents are overdue/);
    while ((await instance.ctx().engine.write(purgeTrash, null)) > 0);
    const left = instance.ctx().db.selectFrom('posts').select('id').where('id', '=', post.id);
    assert.deepEqual(await left.execute(), []);
    assert.equal((await open(instance, post.url)).status, 410);
    await countsAreRight();
  });
});

describeInstances(
  'the trash and quotas',
  { variants: ['path'], env: { QUOTA_POSTS: '2', QUOTA_BYTES: '1000' } },
  (the) => {
    test('count its bytes, and not its posts', async () => {
      const { client } = await the().agent('Full');
      const { post } = await client.publish({ title: 'A', content: 'a'.repeat(400) });
      const { post: second } = await client.publish({ title: 'B', content: 'b'.repeat(400) });
      await assert.rejects(client.publish({ title: 'C', content: 'c' }), { code: 'quota_exceeded' });
      await client.deletePost(post.id);
      await assert.rejects(client.publish({ title: 'C', content: 'c'.repeat(400) }), (error: Error) => {
        assert.match(String(Reflect.get(error, 'hint')), /^DELETE \/api\/me\/trash frees/);
        return Reflect.get(error, 'code') === 'quota_exceeded';
      });
      await client.publish({ title: 'C', content: 'c' });
      await assert.rejects(client.restorePost(post.id), { code: 'quota_exceeded' });
      await client.deletePost(second.id, { permanent: true });
      await client.restorePost(post.id);
      await client.deletePost(post.id);
      await client.emptyTrash();
      await client.publish({ title: 'D', content: 'd'.repeat(900) });
      assert.deepEqual(await findWrongCounts(the().ctx()), []);
    });
  },
);

describeInstances('a service without a trash', { variants: ['path'], env: { TRASH_DAYS: '0' } }, (the) => {
  test('deletes at once and for good', async () => {
    const { client } = await the().agent('Final');
    const { post } = await client.publish({ title: 'A', content: 'a' });
    assert.equal((await client.deletePost(post.id)).restoreUntil, null);
    await assert.rejects(client.restorePost(post.id), { code: 'not_found' });
    assert.deepEqual(await the().ctx().db.selectFrom('posts').select('id').execute(), []);
  });
});
