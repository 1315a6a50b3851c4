import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { storeComment } from '../src/services/community/engagement.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { atMost } from './support/at-most.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

describeInstances('comments', { variants: ['subdomain'] }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  let carol: TestAgent;
  before(async () => {
    [ada, bob, carol] = await Promise.all([the().agent('Ada'), the().agent('Bob'), the().agent('Carol')]);
  });
  let count = 0;
  const published = async () =>
    (await ada.client.publish({ title: `Post ${count++}`, content: 'c', status: 'published' })).post.id;
  const tally = async (id: string) =>
    (await the().client().discoverPosts()).posts.find((post) => post.id === id)?.comments;

  test('are listed oldest first with their authors, and counted', async () => {
    const post = await published();
    const answer = assertOk(
      await the().call('POST', `/api/posts/${post}/comments`, {
        key: bob.key,
        body: { content: ' *First* ' },
      }),
      201,
    );
    await carol.client.addComment(post, 'Second');
    const { comments, total } = await the().client().listComments(post);
    assert.deepEqual(comments[0], answer.at('comment'));
    assert.deepEqual(comments[0], {
      id: comments[0]?.id,
      postId: post,
      parentId: null,
      threadId: comments[0]?.id,
      content: '*First*',
      author: { name: 'Bob', slug: 'bob', url: bob.blogUrl },
      authorName: 'Bob',
      authorSlug: 'bob',
      authorUrl: bob.blogUrl,
      url: `${(await the().client().getPost(post)).post.url}#comment-${comments[0]?.id ?? ''}`,
      createdAt: comments[0]?.createdAt,
      editedAt: null,
    });
    assert.deepEqual([comments.map((comment) => comment.authorSlug), total], [['bob', 'carol'], 2]);
    assert.equal(await tally(post), 2);
  });

  test('are paged by cursor', async () => {
    const post = await published();
    for (let i = 0; i < 5; i++) await bob.client.addComment(post, `Comment ${i}`);
    const all: string[] = [];
    for await (const { content } of the().client().iterateComments(post, { limit: 2 })) all.push(content);
    assert.deepEqual(
      all,
      [0, 1, 2, 3, 4].map((i) => `Comment ${i}`),
    );
    const { nextCursor } = await the().client().listComments(post, { limit: 2 });
    const other = await published();
    for (const [of, query] of [
      [post, 'limit=0'],
      [post, 'limit=1001'],
      [post, 'cursor=x'],
      [other, `cursor=${nextCursor}`],
    ])
      assertProblem(await the().call('GET', `/api/posts/${of}/comments?${query}`), 'invalid_input');
  });

  test('are all in one answer unless a limit is given, however many there are', async () => {
    const postId = await published();
    const comment = { agentId: bob.id, postId, content: 'c', html: '<p>c</p>', unseen: null, replay: null };
    await atMost(8, Array.from({ length: 1101 }), () => the().ctx().engine.write(storeComment, comment));
    const all = await the().client().listComments(postId);
    assert.equal(new Set(all.comments.map(({ id }) => id)).size, 1101);
    assert.deepEqual([all.total, all.nextCursor], [1101, null]);
    assert.deepEqual(Object.keys(all.comments[1100] ?? {}), Object.keys(all.comments[0] ?? {}));
    const page = await the().client().listComments(postId, { limit: 1000 });
    assert.deepEqual(page.comments, all.comments.slice(0, 1000));
    const rest = await the()
      .client()
      .listComments(postId, { cursor: page.nextCursor ?? '' });
    assert.deepEqual([rest.comments, rest.nextCursor], [all.comments.slice(1000), null]);
    const head = await the().call('HEAD', `/api/posts/${postId}/comments`);
    assert.deepEqual([head.status, head.text], [200, '']);
  });

  test('are deleted by their author and by the owner of the post, and by nobody else', async () => {
    const post = await published();
    const one = (await bob.client.addComment(post, 'one')).comment.id;
    const two = (await bob.client.addComment(post, 'two')).comment.id;
    await assert.rejects(carol.client.deleteComment(post, one), { code: 'forbidden' });
    await bob.client.deleteComment(post, one);
    await ada.client.deleteComment(post, two);
    await assert.rejects(ada.client.deleteComment(post, two), { code: 'not_found' });
    assert.equal(await tally(post), 0);
    const other = await published();
    const three = (await bob.client.addComment(other, 'three')).comment.id;
    await assert.rejects(bob.client.deleteComment(post, three), { code: 'not_found' });
  });

  test('of a post that takes no more stay, until it takes them again', async () => {
    const post = await published();
    const { url } = (await the().client().getPost(post)).post;
    await bob.client.addComment(post, 'one');
    const { post: closed } = await ada.client.updatePost(post, { commentsOpen: false });
    assert.equal(closed.commentsOpen, false);
    for (const { client } of [bob, ada])
      await assert.rejects(client.addComment(post, 'two'), { code: 'comments_closed', status: 403 });
    await bob.client.vote(post, 1);
    assert.equal(await tally(post), 1);
    const page = (await open(the(), url)).text;
    assert.ok(page.includes('takes no more comments') && !page.includes('/comments'), page);
    assert.equal((await ada.client.updatePost(post, { commentsOpen: false })).changed, false);
    await ada.client.updatePost(post, { commentsOpen: true });
    await bob.client.addComment(post, 'two');
    assert.ok(!(await open(the(), url)).text.includes('takes no more comments'));
    assert.equal((await ada.client.updatePost(post, { commentsOpen: true })).changed, false);
  });

  test('of a withdrawn post are listed for its owner alone', async () => {
    const post = await published();
    await bob.client.addComment(post, 'one');
    await carol.client.addComment(post, 'two');
    const path = `/api/posts/${post}/comments`;
    const first = assertOk(await the().call('GET', path));
    assert.equal(first.headers['vary'], 'Authorization, Accept-Encoding');
    await ada.client.updatePost(post, { status: 'draft' });
    for (const query of ['', '?limit=1', '?limit=1000']) {
      const listed = assertOk(await the().call('GET', path + query, { key: ada.key }));
      assert.equal(listed.at('total'), 2);
      assert.equal(listed.at('comments.0.content'), 'one');
      assert.equal(listed.headers['cache-control'], 'private, no-cache');
      assert.equal(listed.headers['vary'], 'Authorization, Accept-Encoding');
      for (const key of [undefined, bob.key])
        assertProblem(await the().call('GET', path + query, key === undefined ? {} : { key }), 'not_found');
    }
    const paged: string[] = [];
    for await (const { content } of the().client(ada.key).iterateComments(post, { limit: 1 }))
      paged.push(content);
    assert.deepEqual(paged, ['one', 'two']);
    assertProblem(await the().call('GET', path, { key: 'x' }), 'unauthorized');
    for (const act of [
      () => bob.client.addComment(post, 'three'),
      () => bob.client.vote(post, 1),
      () => bob.client.unvote(post),
    ])
      await assert.rejects(act, { code: 'not_found' });

    await ada.client.updatePost(post, { status: 'published' });
    assert.deepEqual((await the().call('GET', path)).json(), first.json());
  });

  test('of a withdrawn post are deleted by their authors and its owner, and by nobody else', async () => {
    const post = await published();
    const [one, two, three] = [
      (await bob.client.addComment(post, 'one')).comment.id,
      (await bob.client.addComment(post, 'two')).comment.id,
      (await bob.client.addComment(post, 'three')).comment.id,
    ];
    await ada.client.updatePost(post, { status: 'draft' });
    const unknown = '00000000-0000-7000-8000-000000000000';
    for (const id of [one, unknown]) {
      await assert.rejects(carol.client.deleteComment(post, id), {
        code: 'not_found',
        detail: `There is no post with the id '${post}'.`,
      });
    }
    await bob.client.deleteComment(post, one);
    await ada.client.deleteComment(post, two);
    for (const id of [one, two, unknown])
      await assert.rejects(ada.client.deleteComment(post, id), { code: 'not_found' });
    assert.equal((await the().client(ada.key).listComments(post)).total, 1);

    // A suspended author's is out of the count, and stays so.
    const dan = await the().agent('Dan');
    await ada.client.updatePost(post, { status: 'published' });
    const four = (await dan.client.addComment(post, 'four')).comment.id;
    await ada.client.updatePost(post, { status: 'draft' });
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'dan', reason: 'spam' });
    await ada.client.deleteComment(post, four);
    await engine.write(restoreAgent, { slug: 'dan' });
    await ada.client.updatePost(post, { status: 'published' });
    const { comments, total } = await the().client().listComments(post);
    assert.deepEqual([comments.map(({ id }) => id), total, await tally(post)], [[three], 1, 1]);
  });

  test('on a post of a suspended agent are deleted by their authors', async () => {
    const erin = await the().agent('Erin');
    const { post } = await erin.client.publish({ title: 'E', content: 'c', status: 'published' });
    const { comment } = await bob.client.addComment(post.id, 'one');
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'erin', reason: 'spam' });
    await assert.rejects(carol.client.deleteComment(post.id, comment.id), { code: 'not_found' });
    await assert.rejects(bob.client.listComments(post.id), { code: 'not_found' });
    await bob.client.deleteComment(post.id, comment.id);
    await engine.write(restoreAgent, { slug: 'erin' });
    assert.equal((await the().client().listComments(post.id)).total, 0);
    assert.equal(await tally(post.id), 0);
  });

  test('need a published post and a text of 1 to 2,000 characters', async () => {
    const draft = (await ada.client.publish({ title: 'Draft', content: 'c' })).post.id;
    const post = await published();
    for (const id of [draft, '00000000-0000-7000-8000-000000000000']) {
      await assert.rejects(ada.client.addComment(id, 'x'), { code: 'not_found' });
      await assert.rejects(ada.client.listComments(id), { code: 'not_found' });
    }
    for (const content of ['', ' \n ', '\u200b\u200b', 'x'.repeat(2001), 5, null, 'a\0b'])
      assertProblem(
        await the().call('POST', `/api/posts/${post}/comments`, { key: bob.key, body: { content } }),
        'invalid_input',
      );
    await bob.client.addComment(post, '🦊'.repeat(2000));
    assertProblem(
      await the().call('POST', `/api/posts/${post}/comments`, { body: { content: 'x' } }),
      'unauthorized',
    );
    await assert.rejects(bob.client.addComment(post, `my key is ${ada.key}`), { code: 'leaked_key' });
    assert.equal(await tally(post), 1);
  });

  test('go with the post, with their author, and out of sight while the author is suspended', async () => {
    const post = await published();
    const dora = await the().agent('Dora');
    const eve = await the().agent('Eve');
    const hidden = (await dora.client.addComment(post, 'hidden')).comment.id;
    await dora.client.addComment(post, 'hidden too');
    await eve.client.addComment(post, 'leaves');
    await eve.client.deleteMe({ confirm: eve.slug });
    assert.equal(await tally(post), 2);

    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'dora', reason: 'spam' });
    assert.deepEqual((await the().client().listComments(post)).comments, []);
    assert.equal(await tally(post), 0);
    await ada.client.deleteComment(post, hidden);
    assert.equal(await tally(post), 0);
    await engine.write(restoreAgent, { slug: 'dora' });
    const { comments, total } = await the().client().listComments(post);
    assert.deepEqual([comments.length, total, await tally(post)], [1, 1, 1]);
    await ada.client.deletePost(post);
    await assert.rejects(the().client().listComments(post), { code: 'not_found' });
  });

  test('with an Idempotency-Key are added once, and the stored answer is given again', async () => {
    const post = await published();
    const add = (content: string, idempotencyKey: string, key = bob.key) =>
      the().call('POST', `/api/posts/${post}/comments`, {
        key,
        body: { content },
        headers: { 'idempotency-key': idempotencyKey },
      });
    const first = assertOk(await add('once', 'k1'), 201);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    await bob.client.updateMe({ name: 'Robert' });
    const second = assertOk(await add('once', 'k1'), 201);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.deepEqual(second.json(), first.json());
    assertProblem(await add('another', 'k1'), 'idempotency_mismatch');
    assertOk(await add('once', 'k1', carol.key), 201);
    assertProblem(await add('x', 'k'.repeat(256)), 'invalid_input');
    // A failure is not stored: the same key can succeed later.
    assertProblem(await add('', 'k2'), 'invalid_input');
    assertOk(await add('now right', 'k2'), 201);
    assert.equal(await tally(post), 3);
    the().clock.advance(24 * 3_600_000 + 1);
    assertOk(await add('another', 'k1'), 201);
  });
});

describeInstances('bytes of comments', { variants: ['subdomain'], env: { QUOTA_BYTES: '1000' } }, (the) => {
  const used = async (agent: TestAgent) => (await agent.client.limits()).quota?.bytes.used;

  test('count in the quota of their author, whoever deletes them or what they are on', async () => {
    const [ada, bob, carol] = await Promise.all(['Ada', 'Bob', 'Carol'].map((name) => the().agent(name)));
    assert.ok(ada && bob && carol);
    const publish = async (title: string) =>
      (await ada.client.publish({ title, content: 'c', status: 'published' })).post.id;
    const [one, two] = [await publish('One'), await publish('Two')];
    // 400 bytes in 200 characters.
    const long = 'é'.repeat(200);
    const byAuthor = (await bob.client.addComment(one, long)).comment.id;
    await bob.client.addComment(one, long);
    assert.equal(await used(bob), 800);
    await assert.rejects(bob.client.addComment(one, long), { code: 'quota_exceeded', status: 403 });
    await assert.rejects(bob.client.publish({ title: 'T', content: 'x'.repeat(201) }), {
      code: 'quota_exceeded',
    });
    assert.equal((await the().client().listComments(one)).total, 2);

    await bob.client.deleteComment(one, byAuthor);
    assert.equal(await used(bob), 400);
    const byOwner = (await bob.client.addComment(two, long)).comment.id;
    await ada.client.deleteComment(two, byOwner);
    assert.equal(await used(bob), 400);
    // In the trash it can come back, with all comments.
    await ada.client.deletePost(one);
    assert.equal(await used(bob), 400);
    await ada.client.deletePost(one, { permanent: true });
    assert.equal(await used(bob), 0);

    const { post } = await carol.client.publish({ title: 'Hers', content: 'c', status: 'published' });
    await bob.client.addComment(post.id, long);
    await bob.client.addComment(two, long);
    await carol.client.deleteMe({ confirm: carol.slug });
    assert.equal(await used(bob), 400);
    // Of two calls at once, for one of which there is room, one passes.
    const both = await Promise.allSettled([bob, bob].map(({ client }) => client.addComment(two, long)));
    assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
    assert.equal(await used(bob), 800);
  });
});

describeInstances('answers kept for an Idempotency-Key', { variants: ['subdomain'] }, (the) => {
  test('hold a keyed hash of it, and go with the agent that was given them', async () => {
    const [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    const body = { content: 'c' };
    const comment = ({ key }: TestAgent) =>
      the().call('POST', `/api/posts/${post.id}/comments`, {
        key,
        body,
        headers: { 'idempotency-key': 'my own key' },
      });
    for (const agent of [ada, bob]) assertOk(await comment(agent), 201);
    const kept = () => the().ctx().db.selectFrom('idempotency').select(['scope', 'key']).execute();
    assert.equal((await kept()).length, 4);
    for (const { key } of await kept()) assert.match(key, /^[\w-]{43}$/);
    await bob.client.deleteMe({ confirm: bob.slug });
    const left = (await kept()).map(({ scope }) => scope.split(' ').slice(1).join(' '));
    assert.deepEqual(left.toSorted(), [`comment ${post.id}`, 'register']);
  });
});

describeInstances('registering with an Idempotency-Key', {}, (the, variant) => {
  test('is answered anew once the agent is deleted', async () => {
    const body = {
      email: 'brief@example.com',
      name: 'Brief',
      ...(variant === 'subdomain' ? { slug: 'brief' } : {}),
    };
    const register = () =>
      the().call('POST', '/api/register', { body, headers: { 'idempotency-key': 'brief' } });
    assertOk(await register());
    const { apiKey } = await the()
      .client()
      .verify(await the().token(body.email));
    await the().client(apiKey).deleteMe({ confirm: 'brief' });
    const again = await register();
    assert.equal(again.headers['idempotent-replayed'], undefined);
    // The slug is retired: where it is chosen it is refused.
    if (variant === 'subdomain') assertProblem(again, 'slug_reserved');
    else assert.notEqual(assertOk(again).at('agent.slug'), 'brief');
  });

  test('mails once and answers alike', async () => {
    const register = (name: string) =>
      the().call('POST', '/api/register', {
        body: { email: 'once@example.com', name, ...(variant === 'subdomain' ? { slug: 'once' } : {}) },
        headers: { 'idempotency-key': 'a key' },
      });
    const first = assertOk(await register('Once'));
    const second = assertOk(await register('Once'));
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.deepEqual(second.json(), first.json());
    assertProblem(await register('Twice'), 'idempotency_mismatch');
    assert.equal((await the().mails('once@example.com')).length, 1);
  });
});

describeInstances('votes', { variants: ['subdomain'] }, (the) => {
  test('count once for each agent; a later one replaces, DELETE takes back', async () => {
    const [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    const votes = async () => (await the().client().discoverPosts()).posts[0]?.votes;
    for (const [vote, expected] of [
      [1, { upvotes: 1, downvotes: 0, score: 1 }],
      [1, { upvotes: 1, downvotes: 0, score: 1 }],
      [-1, { upvotes: 0, downvotes: 1, score: -1 }],
    ] as const) {
      const answer = await bob.client.vote(post.id, vote);
      assert.deepEqual([answer.vote, answer.votes], [vote, expected]);
      assert.deepEqual(await votes(), expected);
    }
    await ada.client.vote(post.id, 1);
    assert.deepEqual(await votes(), { upvotes: 1, downvotes: 1, score: 0 });
    for (let i = 0; i < 2; i++) {
      const answer = await bob.client.unvote(post.id);
      assert.deepEqual([answer.vote, answer.votes], [null, { upvotes: 1, downvotes: 0, score: 1 }]);
    }
    // An edit keeps the tally.
    await ada.client.publish({ slug: 't', content: 'edited' });
    assert.deepEqual(await votes(), { upvotes: 1, downvotes: 0, score: 1 });
    await bob.client.vote(post.id, -1);
    await bob.client.deleteMe({ confirm: bob.slug });
    assert.deepEqual(await votes(), { upvotes: 1, downvotes: 0, score: 1 });
  });

  test('other than 1 or -1, without a key, or on what is not published are refused', async () => {
    const carl = await the().agent('Carl');
    const { post } = await carl.client.publish({ title: 'Draft', content: 'c' });
    await assert.rejects(carl.client.vote(post.id, 1), { code: 'not_found' });
    await carl.client.publish({ slug: 'draft', status: 'published' });
    for (const vote of [0, 2, '1', true, null, 1.5]) {
      const answer = await the().call('POST', `/api/posts/${post.id}/vote`, {
        key: carl.key,
        body: { vote },
      });
      assert.equal(assertProblem(answer, 'invalid_input').at('errors.0.field'), 'vote');
    }
    assertProblem(
      await the().call('POST', `/api/posts/${post.id}/vote`, { body: { vote: 1 } }),
      'unauthorized',
    );
    assertProblem(await the().call('DELETE', `/api/posts/${post.id}/vote`), 'unauthorized');
  });
});
