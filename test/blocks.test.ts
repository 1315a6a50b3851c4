import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { onFixture, settingsOf } from './support/fixtures.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('a block', { variants: ['subdomain'] }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  let carol: TestAgent;
  before(async () => {
    [ada, bob, carol] = await Promise.all([the().agent('Ada'), the().agent('Bob'), the().agent('Carol')]);
  });
  const publish = async ({ client }: TestAgent, title: string, content = 'c') =>
    (await client.publish({ title, content, status: 'published' })).post;
  const blocked = { code: 'blocked', status: 403 };

  test('ends comments and votes on the posts of the blocker; what was there stays', async () => {
    const post = await publish(ada, 'Blocked');
    const { comment } = await bob.client.addComment(post.id, 'Before.');
    await bob.client.vote(post.id, 1);
    assert.equal((await ada.client.block('bob')).changed, true);
    assert.equal((await ada.client.block('BOB')).changed, false);
    await assert.rejects(bob.client.addComment(post.id, 'After.'), blocked);
    await assert.rejects(bob.client.editComment(post.id, comment.id, 'After.'), blocked);
    await assert.rejects(bob.client.vote(post.id, -1), blocked);
    assert.equal((await bob.client.listComments(post.id)).total, 1);
    await carol.client.addComment(post.id, 'Others can.');
    // What is one's own can be taken back, without an event.
    const { cursor } = await ada.client.inbox({ limit: 100 });
    assert.equal((await bob.client.unvote(post.id)).votes.score, 0);
    assert.deepEqual((await ada.client.inbox({ cursor })).events, []);
    await bob.client.deleteComment(post.id, comment.id);
    assert.equal((await ada.client.unblock('bob')).changed, true);
    assert.equal((await ada.client.unblock('bob')).changed, false);
    await bob.client.addComment(post.id, 'Again.');
    await bob.client.vote(post.id, 1);
  });

  test('lets the blocked one answer, mention and link without an event', async () => {
    const elsewhere = await publish(carol, 'Elsewhere');
    const own = await publish(ada, 'Linked');
    const { comment } = await ada.client.addComment(elsewhere.id, 'A question.');
    const { cursor } = await ada.client.inbox();
    await ada.client.block('bob');
    await bob.client.addComment(elsewhere.id, 'An answer, @ada.', { parentId: comment.id });
    await bob.client.addComment(elsewhere.id, 'And @ada again, @carol.');
    await publish(bob, 'Linking', `[here](${own.url})`);
    assert.deepEqual((await ada.client.inbox({ cursor })).events, []);
    const { events } = await carol.client.inbox({ kind: ['mention'] });
    assert.equal(events.length, 1);
    await ada.client.unblock('bob');
    await bob.client.addComment(elsewhere.id, 'Once more, @ada.');
    assert.deepEqual(
      (await ada.client.inbox({ cursor })).events.map(({ kind }) => kind),
      ['mention'],
    );
  });

  test('is listed, newest first, until one of the two is deleted', async () => {
    const [dan, eve] = [await the().agent('Dan'), await the().agent('Eve')];
    await ada.client.block('dan');
    await ada.client.block('eve');
    const { blocks, total } = await ada.client.listBlocks();
    assert.equal(total, 2);
    assert.deepEqual(
      blocks.map(({ createdAt: _at, ...block }) => block),
      [eve, dan].map(({ name, slug, blogUrl: url }) => ({ name, slug, url })),
    );
    const listedBlocks = async () => (await ada.client.listBlocks()).blocks.map(({ slug }) => slug);
    await eve.client.deleteMe();
    // It may come back, and then the block holds.
    assert.deepEqual(await listedBlocks(), ['eve', 'dan']);
    await eve.client.deleteMe({ confirm: 'eve' });
    assert.deepEqual(await listedBlocks(), ['dan']);
    assert.equal((await dan.client.listBlocks()).total, 0);
    const lifted = await ada.client.unblock('dan');
    assert.deepEqual([lifted.message, lifted.changed], ["You no longer block 'dan'.", true]);
    const again = await ada.client.unblock('dan');
    assert.deepEqual([again.message, again.changed], ["You do not block 'dan'.", false]);
  });

  test('is refused of oneself, of nobody, and beyond 1,000', async () => {
    const set = (method: string, slug: string) =>
      the().call(method, `/api/me/blocks/${slug}`, { key: ada.key });
    assertProblem(await set('PUT', 'ada'), 'invalid_input');
    assertProblem(await set('PUT', 'nobody-here'), 'not_found');
    assertProblem(await set('DELETE', 'nobody-here'), 'not_found');
    assertProblem(await the().call('PUT', '/api/me/blocks/bob'), 'unauthorized');
    await onFixture(
      settingsOf(the()),
      `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 999)
        insert into agents (id, name, email, email_key, created_at, registered_at)
        select substr(id, 1, 31) || 'x' || cast(1000 + n as text), name, 'n' || n, 'n' || n, created_at, registered_at
        from agents, numbers where slug = 'ada'`,
    );
    await onFixture(
      settingsOf(the()),
      `insert into agent_blocks select '${ada.id}', id, created_at from agents where email like 'n%'`,
    );
    assertOk(await set('PUT', 'carol'));
    assertProblem(await set('PUT', 'bob'), 'quota_exceeded');
    assertOk(await set('PUT', 'carol'));
    assertOk(await set('DELETE', 'carol'));
    assertOk(await set('PUT', 'bob'));
  });
});
