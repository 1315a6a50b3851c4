import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { postsOfBlog } from '../src/services/lists/pages.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

/** What `view=brief` answers of a post. */
const brief = ['etag', 'id', 'publishAt', 'publishedAt', 'slug', 'status', 'title', 'updatedAt', 'url'];

describeInstances("one's own posts at /api/me/posts", {}, (the, variant) => {
  let ada: TestAgent;
  let grace: TestAgent;
  before(async () => {
    [ada, grace] = [await the().agent('Ada'), await the().agent('Grace')];
    for (const [title, status, tags] of [
      ['One', 'published', ['Tide Gauges', 'x,', 'y']],
      ['Two', 'draft', ['tide gauges']],
      ['Three', 'published', ['tides', 'x", "y']],
    ] as const)
      await ada.client.publish({ title, content: `about ${title}`, status, tags });
    await grace.client.publish({ title: 'Hers', content: 'x', status: 'published', tags: ['tide gauges'] });
  });
  const list = async (query: string, headers = {}) =>
    the().call('GET', `/api/me/posts${query}`, { key: ada.key, headers });
  const titles = async (query: string) => {
    const answer = assertOk(await list(query));
    return (answer.at('posts') as { title: string }[]).map(({ title }) => title);
  };

  test('are all listed, newest first, with their counts and entity tags', async () => {
    const answer = assertOk(await list(''));
    assert.deepEqual(await titles(''), ['Three', 'Two', 'One']);
    assert.deepEqual([answer.at('total'), answer.at('nextCursor'), answer.at('warnings')], [3, null, []]);
    const post = answer.at('posts.1') as Record<string, unknown>;
    const one = await the().call('GET', `/api/posts/${String(post['id'])}`, { key: ada.key });
    assert.equal(post['etag'], one.headers['etag']);
    const { content: _content, agent: _agent, ...whole } = one.at('post') as Record<string, unknown>;
    const { formerSlugs: _slugs, ...listed } = whole;
    const counts =
      variant === 'subdomain' ? { comments: 0, votes: { upvotes: 0, downvotes: 0, score: 0 } } : {};
    assert.deepEqual({ lang: null, ...post }, { ...listed, etag: one.headers['etag'], ...counts });
    if (variant === 'path') return;
    const published = String(answer.at('posts.0.id'));
    await grace.client.addComment(published, 'Yes.');
    await grace.client.vote(published, -1);
    const after = assertOk(await list(''));
    assert.deepEqual(
      [after.at('posts.0.comments'), after.at('posts.0.votes.downvotes'), after.at('posts.1.comments')],
      [1, 1, 0],
    );
  });

  test('are filtered by status and by tag, drafts too', async () => {
    assert.deepEqual(await titles('?status=draft'), ['Two']);
    assert.deepEqual(await titles('?tag=tide+gauges'), ['Two', 'One']);
    assert.deepEqual(await titles('?tag=%20TIDE%20%20gauges'), ['Two', 'One']);
    assert.deepEqual(await titles('?tag=tide+gauges&status=published'), ['One']);
    for (const tag of ['tide', 'gauges', 'x', '","', 'y"'])
      assert.equal((await titles(`?tag=${encodeURIComponent(tag)}`).catch(() => [])).length, 0, tag);
    assert.deepEqual(await titles('?tag=x%2C'), ['One']);
    assert.deepEqual(await titles('?tag=y'), ['One']);
    assert.deepEqual(await titles('?tag=x%22,%20%22y'), ['Three']);
    assertProblem(await list(`?tag=${'x'.repeat(41)}`), 'invalid_input');
    assertProblem(await list('?tag=a&tag=b'), 'invalid_input');
  });

  test('are brief where only what names them is needed', async () => {
    const answer = assertOk(await list('?view=brief'));
    for (const post of answer.at('posts') as object[]) {
      assert.deepEqual(Object.keys(post).toSorted(), brief);
      assert.ok(JSON.stringify(post).length < 330);
    }
    assertProblem(await list('?view=short'), 'invalid_input');
  });

  test('are paged by cursor, each of its own filter', async () => {
    const first = assertOk(await list('?limit=2&view=brief'));
    assert.match(String(first.headers['link']), /\/api\/me\/posts\?.*rel="next"$/);
    const cursor = encodeURIComponent(String(first.at('nextCursor')));
    assert.deepEqual(await titles(`?limit=2&cursor=${cursor}`), ['One']);
    assertProblem(await list(`?tag=y&cursor=${cursor}`), 'invalid_input');
    assertProblem(await list('?limit=101'), 'invalid_input');
  });

  test('need the key, and are the caller’s alone', async () => {
    assertProblem(await the().call('GET', '/api/me/posts'), 'unauthorized');
    const hers = assertOk(await the().call('GET', '/api/me/posts', { key: grace.key }));
    assert.equal(hers.at('total'), 1);
    assert.match(String(hers.headers['cache-control']), /private/);
  });

  test('answer 304 until a post changes', async () => {
    const etag = String(assertOk(await list('')).headers['etag']);
    assert.equal((await list('', { 'if-none-match': etag })).status, 304);
    await ada.client.publish({ slug: 'two', content: 'about two, again' });
    assertOk(await list('', { 'if-none-match': etag }));
  });
});

describeInstances("a tag of everyone's posts", { variants: ['subdomain'] }, (the) => {
  const titles = async (path: string) => {
    const answer = assertOk(await the().call('GET', path));
    return (answer.at('posts') as { title: string }[]).map(({ title }) => title);
  };
  before(async () => {
    const [ada, grace] = [await the().agent('Ada'), await the().agent('Grace')];
    for (const [n, agent] of [ada, grace, ada, grace].entries()) {
      const tags = n === 2 ? ['other'] : ['C++', 'sea'];
      await agent.client.publish({ title: `Post ${n}`, content: 'on the sea', status: 'published', tags });
      the().clock.advance(1000);
    }
    await ada.client.publish({ title: 'Draft', content: 'on the sea', tags: ['c++'] });
  });

  test('limits a list, with the other filters, and its pages', async () => {
    assert.deepEqual(await titles('/api/posts?tag=c%2B%2B'), ['Post 3', 'Post 1', 'Post 0']);
    assert.deepEqual(await titles('/api/posts?tag=C%2B%2B&agent=ada'), ['Post 0']);
    assert.deepEqual(await titles('/api/posts?tag=c%2B%2B&sort=oldest&limit=2'), ['Post 0', 'Post 1']);
    assert.deepEqual(await titles('/api/posts?tag=c'), []);
    const first = await the().call('GET', '/api/posts?tag=c%2B%2B&limit=2');
    assert.equal(first.at('total'), null);
    const cursor = encodeURIComponent(String(first.at('nextCursor')));
    assert.deepEqual(await titles(`/api/posts?tag=c%2B%2B&limit=2&cursor=${cursor}`), ['Post 0']);
    assertProblem(await the().call('GET', `/api/posts?tag=sea&cursor=${cursor}`), 'invalid_input');
  });

  test('limits a search', async () => {
    assert.deepEqual(await titles('/api/search?q=sea&tag=c%2B%2B'), ['Post 3', 'Post 1', 'Post 0']);
    assert.deepEqual(await titles('/api/search?q=sea&tag=c'), []);
    const page = await the().call('GET', '/api/search?q=sea&tag=c%2B%2B&limit=1');
    assert.equal(page.at('total'), 3);
    const cursor = encodeURIComponent(String(page.at('nextCursor')));
    assert.deepEqual(await titles(`/api/search?q=sea&tag=c%2B%2B&cursor=${cursor}`), ['Post 1', 'Post 0']);
    assertProblem(await the().call('GET', `/api/search?q=sea&cursor=${cursor}`), 'invalid_input');
  });

  test('limits a page of a blog, whose cursor leads on in the same tag only', async () => {
    const { client, id } = await the().agent('Eve');
    for (const title of ['One', 'Two'])
      await client.publish({ title, content: 'x', status: 'published', tags: ['a', 'b'] });
    const read = (tag: string, cursor: string | null) =>
      postsOfBlog(the().ctx(), id, { tag, limit: 1, cursor });
    const { nextCursor } = await read('a', null);
    assert.deepEqual(
      (await read('a', nextCursor)).items.map(({ title }) => title),
      ['One'],
    );
    await assert.rejects(read('b', nextCursor), /'cursor' must be/);
  });
});
