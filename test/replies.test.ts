import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { atMost } from './support/at-most.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

const subdomain = { variants: ['subdomain'], env: { LIMIT_COMMENT: '0', LIMIT_PUBLISH: '0' } } as const;

describeInstances('replies', subdomain, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  let carol: TestAgent;
  before(async () => {
    [ada, bob, carol] = await Promise.all([the().agent('Ada'), the().agent('Bob'), the().agent('Carol')]);
  });
  let count = 0;
  const published = async () =>
    (await ada.client.publish({ title: `Post ${count++}`, content: 'c', status: 'published' })).post;
  const say = async ({ client }: TestAgent, postId: string, content: string, parentId?: string) =>
    (await client.addComment(postId, content, parentId === undefined ? {} : { parentId })).comment;
  const listed = async (postId: string) => {
    const { comments, total } = await the().client().listComments(postId);
    return {
      said: comments.map(({ content, deleted = false }) => (deleted ? '-' : content)),
      total,
      comments,
    };
  };
  const assertCounts = async () => assert.deepEqual(await findWrongCounts(the().ctx()), []);

  test('name what they answer and their thread, and where they are shown', async () => {
    const post = await published();
    const root = await say(bob, post.id, 'root');
    const path = `/api/posts/${post.id}/comments`;
    const body = { content: 'answer', parentId: root.id.toUpperCase() };
    const made = assertOk(await the().call('POST', path, { key: carol.key, body }), 201);
    const deep = await say(bob, post.id, 'deep', String(made.at('comment.id')));
    assert.equal(made.headers['location'], made.at('comment.url'));
    assert.equal(made.at('comment.url'), `${post.url}#comment-${String(made.at('comment.id'))}`);
    assert.deepEqual(made.at('comment.author'), { name: 'Carol', slug: 'carol', url: carol.blogUrl });
    assert.deepEqual([root.parentId, root.threadId, root.editedAt], [null, root.id, null]);
    assert.deepEqual([made.at('comment.parentId'), made.at('comment.threadId')], [root.id, root.id]);
    assert.deepEqual([deep.parentId, deep.threadId], [made.at('comment.id'), root.id]);
    const { comments } = await listed(post.id);
    assert.deepEqual(comments, [root, made.at('comment'), deep]);
    assert.ok(comments.every((comment) => !('deleted' in comment)));
  });

  test('answer a comment of the same post that is not deleted', async () => {
    const [post, other] = [await published(), await published()];
    const elsewhere = await say(bob, other.id, 'elsewhere');
    const gone = await say(bob, post.id, 'gone');
    await say(carol, post.id, 'answer', gone.id);
    await bob.client.deleteComment(post.id, gone.id);
    const path = `/api/posts/${post.id}/comments`;
    for (const parentId of [elsewhere.id, gone.id, '00000000-0000-7000-8000-000000000000', 'x', 5, null]) {
      const refused = await the().call('POST', path, { key: bob.key, body: { content: 'c', parentId } });
      assert.equal(
        assertProblem(refused, 'invalid_input').at('errors.0.field'),
        'parentId',
        String(parentId),
      );
    }
    const { said, total } = await listed(post.id);
    assert.deepEqual([said, total], [['-', 'answer'], 1]);
  });

  test('keep the place of what they answer until the last of them goes', async () => {
    const post = await published();
    const root = await say(bob, post.id, 'root');
    const one = await say(carol, post.id, 'one', root.id);
    const two = await say(ada, post.id, 'two', one.id);
    const three = await say(bob, post.id, 'three', two.id);
    await bob.client.deleteComment(post.id, root.id);
    await carol.client.deleteComment(post.id, one.id);
    await ada.client.deleteComment(post.id, two.id);
    const { said, total, comments } = await listed(post.id);
    assert.deepEqual([said, total], [['-', '-', '-', 'three'], 1]);
    const blank = { author: null, authorName: '', authorSlug: '', authorUrl: '', content: '' };
    assert.deepEqual(comments[1], { ...one, ...blank, deleted: true });
    for (const [agent, id] of [
      [bob, root.id],
      [ada, root.id],
      [carol, one.id],
    ] as const)
      await assert.rejects(agent.client.deleteComment(post.id, id), { code: 'not_found' });
    await assert.rejects(bob.client.editComment(post.id, root.id, 'back'), { code: 'not_found' });
    await assertCounts();
    await ada.client.deleteComment(post.id, three.id);
    assert.deepEqual(await listed(post.id), { said: [], total: 0, comments: [] });
    await assertCounts();
  });

  test('take a deleted comment along alone, where others still answer one above', async () => {
    const post = await published();
    const root = await say(bob, post.id, 'root');
    const left = await say(carol, post.id, 'left', root.id);
    const below = await say(carol, post.id, 'below', left.id);
    await say(ada, post.id, 'right', root.id);
    await bob.client.deleteComment(post.id, root.id);
    await carol.client.deleteComment(post.id, left.id);
    await carol.client.deleteComment(post.id, below.id);
    assert.deepEqual((await listed(post.id)).said, ['-', 'right']);
  });

  test('outlast the agent that they answer, and go with the one that wrote them', async () => {
    const post = await published();
    const [dora, eve] = [await the().agent('Dora'), await the().agent('Eve')];
    const asked = await say(dora, post.id, 'asked');
    await say(dora, post.id, 'alone');
    const answer = await say(eve, post.id, 'answer', asked.id);
    const own = await say(dora, post.id, 'own', answer.id);
    await say(dora, post.id, 'more of her own', own.id);
    await dora.client.deleteMe({ confirm: dora.slug });
    const { said, total } = await listed(post.id);
    assert.deepEqual([said, total], [['-', 'answer'], 1]);
    await eve.client.deleteMe({ confirm: eve.slug });
    assert.deepEqual(await listed(post.id), { said: [], total: 0, comments: [] });
    await assertCounts();
    await ada.client.deletePost(post.id);
    await assertCounts();
  });

  test('stay below a comment that is blank while its author is suspended', async () => {
    const post = await published();
    const gus = await the().agent('Gus');
    const asked = await say(gus, post.id, 'asked');
    await say(gus, post.id, 'alone');
    await say(bob, post.id, 'answer', asked.id);
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'gus', reason: 'spam' });
    assert.deepEqual((await listed(post.id)).said, ['-', 'answer']);
    await assert.rejects(say(bob, post.id, 'c', asked.id), { code: 'invalid_input' });
    const page = (await open(the(), post.url)).text;
    assert.match(page, /This comment was deleted[^]*in answer to/);
    assert.doesNotMatch(page, /asked|Gus/);
    await engine.write(restoreAgent, { slug: 'gus' });
    assert.deepEqual((await listed(post.id)).said, ['asked', 'alone', 'answer']);
    assert.match((await open(the(), post.url)).text, /asked/);
  });

  test('stand under the comment that began their thread, and say whom they answer', async () => {
    const post = await published();
    const first = await say(bob, post.id, 'first root');
    const second = await say(carol, post.id, 'second root');
    const late = await say(ada, post.id, 'late answer', first.id);
    for (const path of [post.url, `${ada.blogUrl}/-/comments/${post.slug}`]) {
      const { text } = await open(the(), path);
      const order = Array.from(
        text.matchAll(/<li class="(comment[^ ]*(?: reply)?)[^>]*id="comment-([^"]*)"/g),
      );
      assert.deepEqual(
        order.map(([, kind, id]) => [kind, id]),
        [
          ['comment', first.id],
          ['comment reply', late.id],
          ['comment', second.id],
        ],
        path,
      );
      assert.ok(text.includes(`in answer to <a class="u-in-reply-to" href="#comment-${first.id}">`), path);
      assert.doesNotMatch(text, /edited/);
    }
    await bob.client.editComment(post.id, first.id, 'first root, mended');
    assert.match((await open(the(), post.url)).text, /<span>edited <time class="dt-updated"/);
    await bob.client.deleteComment(post.id, first.id);
    assert.match((await open(the(), post.url)).text, /in answer to <a[^>]*>a deleted comment<\/a>/);
  });

  test('are shown with the comment that began their thread, however old that is', async () => {
    const post = await published();
    const root = await say(bob, post.id, 'the oldest');
    await atMost(8, Array.from({ length: 110 }), () => say(carol, post.id, 'between'));
    const answer = await say(ada, post.id, 'the newest', root.id);
    const { text } = await open(the(), post.url);
    assert.ok(text.indexOf(`id="comment-${root.id}"`) < text.indexOf(`id="comment-${answer.id}"`));
    assert.match(text, /the oldest[^]*the newest/);
    assert.equal(text.match(/id="comment-/g)?.length, 100);
  });

  test('are no more than a page holds, those that began their threads counted', async () => {
    const post = await published();
    const roots = await Promise.all(Array.from({ length: 60 }, () => say(bob, post.id, 'root')));
    // The newest answers are to the oldest roots, which are not among the newest of theirs.
    const oldestLast = roots
      .map(({ id }) => id)
      .toSorted()
      .toReversed();
    for (const id of oldestLast) await say(carol, post.id, 'answer', id);
    const shown = (await open(the(), post.url)).text.match(/id="comment-/g)?.length ?? 0;
    assert.ok(shown > 90 && shown <= 100, String(shown));
  });

  test('to one comment at once, while it is deleted, leave no answer without its place', async () => {
    for (let round = 0; round < 5; round++) {
      const post = await published();
      const root = await say(bob, post.id, 'root');
      const both = await Promise.allSettled([
        ...[ada, carol, ada, carol].map((agent) => say(agent, post.id, 'answer', root.id)),
        bob.client.deleteComment(post.id, root.id),
      ]);
      assert.equal(both.at(-1)?.status, 'fulfilled');
      const stored = both.slice(0, -1).filter(({ status }) => status === 'fulfilled').length;
      const { said, comments, total } = await listed(post.id);
      assert.equal(total, stored);
      assert.equal(said.length, stored === 0 ? 0 : stored + 1);
      assert.ok(comments.every(({ parentId }) => parentId === null || parentId === root.id));
    }
    await assertCounts();
  });
});

describeInstances('the text of a comment', subdomain, (the) => {
  test('is changed by its author alone, and counted anew', async () => {
    const [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    const { comment } = await bob.client.addComment(post.id, 'It *runs*.');
    const used = async () => (await bob.client.limits()).quota?.bytes.used;
    assert.equal(await used(), 10);
    the().clock.advance(1000);
    const edited = await bob.client.editComment(post.id, comment.id, 'It *ran* once.');
    assert.equal(edited.changed, true);
    assert.ok(edited.comment.editedAt !== null && edited.comment.editedAt > comment.createdAt);
    const { content, editedAt, ...same } = edited.comment;
    assert.deepEqual({ ...same, content: comment.content, editedAt: null }, comment);
    assert.equal(await used(), 14);
    const again = await bob.client.editComment(post.id, comment.id, ' It *ran* once. ');
    assert.deepEqual([again.changed, again.comment], [false, edited.comment]);
    assert.equal(content, 'It *ran* once.');
    assert.equal(editedAt, again.comment.editedAt);
    const page = (await open(the(), post.url)).text;
    assert.ok(page.includes('<em>ran</em>') && !page.includes('<em>runs</em>'));

    await assert.rejects(ada.client.editComment(post.id, comment.id, 'x'), {
      code: 'forbidden',
      hint: 'GET /api/me/comments lists the comments that are yours.',
    });
    const eve = await the().agent('Eve');
    await assert.rejects(eve.client.deleteComment(post.id, comment.id), {
      code: 'forbidden',
      hint: 'GET /api/me/comments lists the comments that are yours.',
    });
    const unknown = '00000000-0000-7000-8000-000000000000';
    await assert.rejects(bob.client.editComment(post.id, unknown, 'x'), { code: 'not_found' });
    await assert.rejects(bob.client.editComment(unknown, comment.id, 'x'), { code: 'not_found' });
    await assert.rejects(bob.client.editComment(post.id, comment.id, bob.key), { code: 'leaked_key' });
    await assert.rejects(bob.client.editComment(post.id, comment.id, '[a]: /b'), { code: 'invalid_input' });
    await ada.client.updatePost(post.id, { status: 'draft' });
    await assert.rejects(bob.client.editComment(post.id, comment.id, 'x'), { code: 'not_found' });
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });
});

describeInstances('changing a comment', { variants: ['subdomain'], env: { LIMIT_COMMENT: '2' } }, (the) => {
  test('counts as commenting', async () => {
    const ada = await the().agent('Ada');
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    const { comment } = await ada.client.addComment(post.id, 'one');
    await ada.client.editComment(post.id, comment.id, 'two');
    await assert.rejects(ada.client.editComment(post.id, comment.id, 'three'), { code: 'rate_limited' });
  });
});
