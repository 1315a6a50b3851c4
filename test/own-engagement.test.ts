import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('one’s own', { variants: ['subdomain'] }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  const posts: { id: string; title: string; url: string }[] = [];
  before(async () => {
    [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
    for (const title of ['One', 'Two', 'Three']) {
      const { post } = await ada.client.publish({ title, content: 'c', status: 'published' });
      posts.push({ id: post.id, title, url: post.url });
    }
  });
  const on = (n: number) => {
    const { name, slug, blogUrl: url } = ada;
    return { ...posts[n], agent: { name, slug, url } };
  };

  test('comments are listed newest first, in pages, also on posts that were withdrawn', async () => {
    const [one = '', two = ''] = posts.map(({ id }) => id);
    const first = (await bob.client.addComment(one, 'first')).comment;
    await ada.client.addComment(one, 'of another');
    const second = (await bob.client.addComment(two, 'second')).comment;
    const third = (await bob.client.addComment(one, 'third', { parentId: first.id })).comment;
    const all = await bob.client.myComments();
    assert.deepEqual(all.comments, [
      { ...third, post: on(0) },
      { ...second, post: on(1) },
      { ...first, post: on(0) },
    ]);
    assert.equal(all.nextCursor, null);
    const paged: string[] = [];
    for await (const { content } of bob.client.iterateMyComments({ limit: 1 })) paged.push(content);
    assert.deepEqual(paged, ['third', 'second', 'first']);
    await ada.client.updatePost(two, { status: 'draft' });
    const [, withdrawn] = (await bob.client.myComments()).comments;
    assert.deepEqual([withdrawn?.id, withdrawn?.post], [second.id, { ...on(1), title: null, url: null }]);
    // Nor its slug, which may be new: the address of the comment is one of the blog.
    assert.equal(withdrawn?.url, `${ada.blogUrl}/#comment-${second.id}`);
    await bob.client.deleteComment(two, second.id);
    // Blanked, since it has an answer.
    await bob.client.deleteComment(one, first.id);
    assert.deepEqual(
      (await bob.client.myComments()).comments.map(({ id }) => id),
      [third.id],
    );
    await ada.client.updatePost(two, { status: 'published' });
  });

  test('votes are listed newest first, in pages', async () => {
    const [one = '', two = '', three = ''] = posts.map(({ id }) => id);
    for (const [id, vote] of [
      [two, 1],
      [three, -1],
      [one, 1],
    ] as const)
      await bob.client.vote(id, vote);
    await ada.client.vote(one, 1);
    await bob.client.vote(two, -1);
    const { votes } = await bob.client.myVotes();
    assert.deepEqual(
      votes.map(({ vote, post }) => [vote, post]),
      [
        [1, on(0)],
        [-1, on(2)],
        [-1, on(1)],
      ],
    );
    const paged: (string | null)[] = [];
    for await (const { post } of bob.client.iterateMyVotes({ limit: 2 })) paged.push(post.title);
    assert.deepEqual(paged, ['One', 'Three', 'Two']);
    await bob.client.unvote(three);
    assert.equal((await bob.client.myVotes()).votes.length, 2);
  });

  test('vote on a post is read with its tally', async () => {
    const [one = '', , three = ''] = posts.map(({ id }) => id);
    const { vote, votes } = await bob.client.getVote(one);
    assert.deepEqual([vote, votes], [1, { upvotes: 2, downvotes: 0, score: 2 }]);
    assert.equal((await bob.client.getVote(three)).vote, null);
    await ada.client.updatePost(three, { status: 'draft' });
    await assert.rejects(bob.client.getVote(three), { code: 'not_found' });
    assertProblem(await the().call('GET', `/api/posts/${one}/vote`), 'unauthorized');
  });

  test('lists answer 304 until something changes, and refuse what is no cursor of theirs', async () => {
    for (const list of ['comments', 'votes']) {
      const path = `/api/me/${list}`;
      const { headers } = assertOk(await the().call('GET', path, { key: bob.key }));
      const again = { key: bob.key, headers: { 'if-none-match': String(headers['etag']) } };
      assert.equal((await the().call('GET', path, again)).status, 304);
      for (const query of ['cursor=x', 'limit=0', 'limit=101'])
        assertProblem(await the().call('GET', `${path}?${query}`, { key: bob.key }), 'invalid_input');
      assertProblem(await the().call('GET', path), 'unauthorized');
    }
  });
});
