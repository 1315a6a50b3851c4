import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { featurePost } from '../src/services/operators/moderation.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('one’s own posts', {}, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    the().clock.freeze();
    for (let i = 0; i < 7; i++) {
      await ada.client.publish({ title: `Post ${i}`, content: 'c', status: i % 2 ? 'published' : 'draft' });
      the().clock.advance(1000);
    }
    await (await the().agent('Bob')).client.publish({ title: 'Bob’s', content: 'c', status: 'published' });
  });
  const list = (query: string, key = ada.key) => the().call('GET', `/api/posts${query}`, { key });
  const titles = (posts: readonly { title: string }[]) => posts.map((post) => Number(post.title.slice(5)));

  test('are listed newest first, all of them, drafts too, and nobody else’s', async () => {
    const page = await ada.client.listPosts();
    assert.deepEqual(titles(page.posts), [6, 5, 4, 3, 2, 1, 0]);
    assert.deepEqual([page.total, page.limit, page.offset, page.nextCursor], [7, 1000, 0, null]);
    const answer = assertOk(await list(''));
    assert.equal(answer.headers['vary'], 'Authorization, Accept-Encoding');
    assert.equal(answer.headers['cache-control'], 'private, no-cache');
    const [first] = page.posts;
    assert.deepEqual(
      Object.keys(first ?? {}).toSorted(),
      'commentsOpen createdAt disclosure excerpt id image publishAt publishedAt slug status tags title updatedAt url'.split(
        ' ',
      ),
    );
  });

  test('are filtered by status, with its total', async () => {
    const drafts = await ada.client.listPosts({ status: 'draft' });
    assert.deepEqual([titles(drafts.posts), drafts.total], [[6, 4, 2, 0], 4]);
    const published = await ada.client.listPosts({ status: 'published' });
    assert.deepEqual([titles(published.posts), published.total], [[5, 3, 1], 3]);
  });

  test('are paged by cursor without loss while posts arrive', async () => {
    const first = await ada.client.listPosts({ limit: 3 });
    const { post } = await ada.client.publish({ title: 'Post 99', content: 'c' });
    const second = await ada.client.listPosts({ limit: 3, cursor: first.nextCursor ?? '' });
    assert.deepEqual(
      [titles(first.posts), titles(second.posts)],
      [
        [6, 5, 4],
        [3, 2, 1],
      ],
    );
    const last = await ada.client.listPosts({ limit: 3, cursor: second.nextCursor ?? '' });
    assert.deepEqual([titles(last.posts), last.nextCursor], [[0], null]);
    // A cursor says where to begin: an offset beside it skips nothing.
    const beside = await ada.client.listPosts({ limit: 3, offset: 2, cursor: first.nextCursor ?? '' });
    assert.deepEqual([titles(beside.posts), beside.offset], [[3, 2, 1], 0]);
    await ada.client.deletePost(post.id);
  });

  test('are paged by offset, and Link leads to the next page', async () => {
    assert.deepEqual(titles((await ada.client.listPosts({ limit: 2, offset: 5 })).posts), [1, 0]);
    const page = await list('?status=draft&limit=2&offset=1');
    const next = /^<([^>]+)>; rel="next"$/.exec(String(page.headers['link']))?.[1] ?? '';
    assert.equal(new URL(next).origin, the().baseUrl);
    assert.equal(new URL(next).searchParams.get('offset'), null);
    const following = await list(new URL(next).search);
    assert.equal(following.at('posts.0.title'), 'Post 0');
    assert.equal(following.headers['link'], undefined);
    const doubled = await the().call('GET', '//api/posts/?limit=1&status=draft', { key: ada.key });
    assert.match(String(doubled.headers['link']), /\/api\/posts\/\?limit=1&status=draft&cursor=/);
  });

  test('since looks at publication, for drafts at creation', async () => {
    const { posts } = await ada.client.listPosts({ status: 'draft' });
    const since = String(posts[1]?.createdAt);
    const page = await list(`?status=draft&since=${since}`);
    assert.deepEqual(
      [page.at('posts.0.title'), page.at('posts.1.title'), page.at('posts.2')],
      ['Post 6', 'Post 4', undefined],
    );
    assert.equal(page.at('total'), null);
  });

  for (const query of [
    'status=public',
    'limit=0',
    'limit=1001',
    'limit=1.5',
    'limit=ten',
    'limit=1&limit=2',
    'offset=-1',
    'offset=10001',
    'since=yesterday',
    'since=2026-02-30',
    'cursor=nonsense',
    `cursor=${Buffer.from('["posts-newest","a","b"]').toString('base64url')}`,
    `cursor=${Buffer.from('["own","\\u0000","b"]').toString('base64url')}`,
    `cursor=${Buffer.from('["own",1,2]').toString('base64url')}`,
    `cursor=${Buffer.from('null').toString('base64url')}`,
  ]) {
    test(`refuse the query ${query}`, async () => {
      const answer = assertProblem(await list(`?${query}`), 'invalid_input');
      assert.equal(answer.at('errors.0.field'), query.split('=')[0]);
    });
  }

  test('need a key that works', async () => {
    const refused = assertProblem(await the().call('GET', '/api/posts?status=draft'), 'unauthorized');
    const leadsOn = /everyone's published posts are listed/.test(String(refused.at('detail')));
    assert.equal(leadsOn, the().ctx().config.variant.discovery);
    assertProblem(await list('', '3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04'), 'unauthorized');
    assertProblem(await list('?since=2020-01-01', 'nonsense'), 'unauthorized');
    if (variant === 'path') assertProblem(await the().call('GET', '/api/posts'), 'unauthorized');
  });
});

describeInstances('one post', {}, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    bob = await the().agent('Bob');
  });

  test('is anyone’s when published and one’s own as a draft', async () => {
    const { post } = await ada.client.publish({ title: 'Seen', content: 'c' });
    const path = `/api/posts/${post.id}`;
    assert.equal(assertOk(await the().call('GET', path, { key: ada.key })).at('post.content'), 'c');
    assertProblem(await the().call('GET', path), 'not_found');
    assertProblem(await the().call('GET', path, { key: bob.key }), 'not_found');
    await ada.client.publish({ slug: 'seen', status: 'published' });
    const read = assertOk(await the().call('GET', path.toUpperCase().replace('/API/POSTS', '/api/posts')));
    assert.deepEqual(read.at('post.agent'), { name: 'Ada', slug: 'ada', url: ada.blogUrl });
    assert.equal(read.headers['cache-control'], 'no-cache');
    for (const id of ['nonsense', '00000000-0000-7000-8000-000000000000', '%2e%2e', "'--"])
      assertProblem(await the().call('GET', `/api/posts/${id}`), 'not_found');
  });

  test('is not sent again to who has it, until it or its author changes', async () => {
    const { post } = await ada.client.publish({ title: 'Cached', content: 'c', status: 'published' });
    const get = (etag: string, method = 'GET') =>
      the().call(method, `/api/posts/${post.id}`, { headers: { 'if-none-match': etag } });
    const etag = String((await get('"0.0"')).headers['etag']);
    for (const form of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const answer = await get(form);
      assert.deepEqual([answer.status, answer.text, answer.headers['etag']], [304, '', etag]);
    }
    assert.equal((await get(etag, 'HEAD')).status, 304);
    for (const same of [{}, { name: 'Ada' }, { bio: '' }]) await ada.client.updateMe(same);
    assert.equal((await get(etag)).status, 304);
    await ada.client.updateMe({ name: 'Ada B.' });
    const renamed = assertOk(await get(etag));
    assert.equal(renamed.at('post.agent.name'), 'Ada B.');
    await ada.client.publish({ slug: 'cached', content: 'new' });
    assert.equal(assertOk(await get(String(renamed.headers['etag']))).at('post.content'), 'new');
  });

  test('HEAD has the headers of GET and no body', async () => {
    const { post } = await ada.client.publish({ title: 'Headed', content: 'c', status: 'published' });
    const [get, head] = await Promise.all(
      ['GET', 'HEAD'].map((method) => the().call(method, `/api/posts/${post.id}`)),
    );
    assert.equal(head?.text, '');
    assert.equal(get?.headers['vary'], 'Authorization, Accept-Encoding');
    for (const name of ['etag', 'content-type', 'content-length', 'cache-control', 'vary']) {
      assert.ok(get?.headers[name], name);
      assert.equal(head?.headers[name], get.headers[name], name);
    }
  });

  test('PATCH changes any field, and a new slug moves it', async () => {
    const { post, etag } = await ada.client.publish({ title: 'Moved', content: 'c', status: 'published' });
    const patched = await ada.client.updatePost(
      post.id,
      { slug: 'elsewhere', tags: ['moved'] },
      { ifMatch: etag ?? '' },
    );
    assert.deepEqual([patched.created, patched.changed, patched.post.slug], [false, true, 'elsewhere']);
    assert.equal(patched.post.id, post.id);
    assert.equal((await ada.client.getPost(post.id)).post.title, 'Moved');
    assert.equal((await ada.client.updatePost(post.id, {})).changed, false);
    await assert.rejects(ada.client.updatePost(post.id, { title: 'x' }, { ifMatch: etag ?? '' }), {
      code: 'precondition_failed',
    });

    const other = await ada.client.publish({ title: 'Other', content: 'c' });
    await assert.rejects(ada.client.updatePost(other.post.id, { slug: 'elsewhere' }), { code: 'slug_taken' });
    assert.equal((await ada.client.updatePost(post.id, { slug: 'moved-2' })).post.slug, 'moved-2');
  });

  test('only its owner changes and deletes it: 403 when others can see it, else 404', async () => {
    const { post } = await ada.client.publish({ title: 'Mine', content: 'c' });
    for (const [status, code] of [
      ['draft', 'not_found'],
      ['published', 'forbidden'],
    ] as const) {
      await ada.client.publish({ slug: 'mine', status });
      for (const [method, body] of [
        ['PATCH', { title: 'Stolen' }],
        ['DELETE', undefined],
      ] as const) {
        assertProblem(
          await the().call(method, `/api/posts/${post.id}`, { key: bob.key, ...(body ? { body } : {}) }),
          code,
        );
      }
    }
    assert.equal((await ada.client.getPost(post.id)).post.title, 'Mine');
    assertProblem(await the().call('PATCH', `/api/posts/${post.id}`, { body: {} }), 'unauthorized');
    assertProblem(await the().call('DELETE', `/api/posts/${post.id}`), 'unauthorized');
  });

  test('DELETE removes it, once, and its slug can be used again', async () => {
    const { post, etag } = await ada.client.publish({ title: 'Doomed', content: 'c', status: 'published' });
    const remove = (headers = {}) => the().call('DELETE', `/api/posts/${post.id}`, { key: ada.key, headers });
    assertProblem(await remove({ 'if-match': '"9"' }), 'precondition_failed');
    const { postCount } = (await ada.client.me()).agent;
    assert.match(String(assertOk(await remove({ 'if-match': String(etag) })).at('message')), /Doomed/);
    assertProblem(await remove(), 'not_found');
    await assert.rejects(ada.client.getPost(post.id), { code: 'not_found' });
    assert.equal((await ada.client.me()).agent.postCount, postCount - 1);
    const again = await ada.client.publish({ title: 'Doomed', content: 'c' });
    assert.equal(again.created, true);
    assert.notEqual(again.post.id, post.id);
  });
});

describeInstances('discovery', { variants: ['subdomain'] }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    ada = await the().agent('Ada', { bio: 'first' });
    bob = await the().agent('Bob');
    the().clock.freeze();
    for (let i = 0; i < 6; i++) {
      the().clock.advance(1000);
      await (i % 2 ? bob : ada).client.publish({ title: `Post ${i}`, content: 'Text.', status: 'published' });
    }
    await ada.client.publish({ title: 'Draft', content: 'c' });
  });
  const titles = (posts: readonly { title: string }[]) => posts.map((post) => Number(post.title.slice(5)));
  const anyone = () => the().client();

  test('lists everyone’s published posts with author, comments and votes', async () => {
    const page = await anyone().discoverPosts();
    assert.deepEqual(titles(page.posts), [5, 4, 3, 2, 1, 0]);
    assert.deepEqual([page.total, page.limit], [6, 50]);
    const [first] = page.posts;
    assert.deepEqual(first?.agent, { name: 'Bob', slug: 'bob', url: bob.blogUrl });
    assert.deepEqual([first?.comments, first?.votes], [0, { upvotes: 0, downvotes: 0, score: 0 }]);
  });

  test('sorts, filters by agent and since, and pages', async () => {
    assert.deepEqual(titles((await anyone().discoverPosts({ sort: 'oldest', limit: 2 })).posts), [0, 1]);
    const bobs = await anyone().discoverPosts({ agent: 'bob' });
    assert.deepEqual([titles(bobs.posts), bobs.total], [[5, 3, 1], 3]);
    const since = bobs.posts[1]?.publishedAt ?? '';
    const late = await anyone().discoverPosts({ since });
    assert.deepEqual([titles(late.posts), late.total], [[5, 4, 3], null]);
    assert.deepEqual(
      titles((await anyone().discoverPosts({ since: since.replace('Z', '+00:00') })).posts),
      [5, 4, 3],
    );
    assert.deepEqual(titles((await anyone().discoverPosts({ offset: 4 })).posts), [1, 0]);
    for (const sort of ['newest', 'oldest'] as const) {
      const all: number[] = [];
      for await (const post of anyone().iterateDiscovered({ sort, limit: 2 }))
        all.push(Number(post.title.slice(5)));
      assert.deepEqual(all, sort === 'newest' ? [5, 4, 3, 2, 1, 0] : [0, 1, 2, 3, 4, 5]);
    }
  });

  test('a key alone lists one’s own; with since or agent it discovers', async () => {
    const list = (query: string) => the().call('GET', `/api/posts${query}`, { key: ada.key });
    assert.equal((await list('')).at('total'), 4);
    assert.equal((await list('?agent=bob')).at('total'), 3);
    assert.equal((await list('?since=2020-01-01')).at('posts.5.title'), 'Post 0');
    assertProblem(await list('?status=published&agent=bob'), 'invalid_input');
    const ordered = await list('?status=published&sort=oldest');
    assert.match(String(assertOk(ordered).at('warnings.0')), /^'sort' ignored/);
    assertProblem(await list('?agent=nobody'), 'not_found');
    assertProblem(await list('?agent=No-Slug'), 'invalid_input');
    assertProblem(await list('?since=2020-01-01&limit=101'), 'invalid_input');
    assertProblem(await list('?agent=bob&sort=best'), 'invalid_input');
  });

  test('a page of a size that there is not is told the bounds of the list that was asked for', async () => {
    const own = 'must be an integer from 1 to 1000';
    const everyones = 'must be an integer from 1 to 100,';
    const cases: [query: string, hasKey: boolean, bounds: string][] = [
      ['limit=0', false, everyones],
      ['limit=1001&tag=x', false, everyones],
      ['limit=-5&since=2020-01-01', true, everyones],
      ['limit=0&agent=bob', true, everyones],
      ['limit=0', true, own],
      ['limit=0&status=draft', true, own],
    ];
    for (const [query, hasKey, bounds] of cases) {
      const answer = await the().call('GET', `/api/posts?${query}`, hasKey ? { key: ada.key } : {});
      const problem = assertProblem(answer, 'invalid_input');
      const told = String(problem.at('errors.0.message'));
      assert.ok(told.startsWith(bounds), `${query}: ${told}`);
    }
  });

  test('lists blogs with their counts, in three orders', async () => {
    await ada.client.publish({ title: 'Post 6', content: 'c', status: 'published' });
    const page = await anyone().listBlogs();
    assert.deepEqual(
      page.blogs.map((blog) => blog.slug),
      ['bob', 'ada'],
    );
    assert.deepEqual(
      [page.total, page.limit, page.blogs[1]?.postCount, page.blogs[1]?.bio],
      [2, 50, 4, 'first'],
    );
    assert.match(String(page.blogs[0]?.lastPublishedAt), /Z$/);
    const by = async (sort: 'posts' | 'name', cursor?: string) =>
      anyone().listBlogs({ sort, limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    for (const sort of ['posts', 'name'] as const) {
      const first = await by(sort);
      const second = await by(sort, first.nextCursor ?? '');
      assert.deepEqual(
        [first.blogs[0]?.slug, second.blogs[0]?.slug, second.nextCursor],
        ['ada', 'bob', null],
      );
    }
  });

  test('an unverified agent is in no list', async () => {
    await anyone().register({ email: 'ghost@example.com', name: 'Ghost', slug: 'ghost' });
    assert.equal((await anyone().listBlogs()).total, 2);
    await assert.rejects(anyone().discoverPosts({ agent: 'ghost' }), { code: 'not_found' });
  });

  test('featured are the highest ranked, newest first', async () => {
    const { posts } = await anyone().discoverPosts({ sort: 'oldest' });
    const oldest = posts[0]?.id ?? '';
    const carol = await the().agent('Carol');
    // Votes weigh once the blog is a day old.
    the().clock.advance(24 * 3_600_000);
    await bob.client.vote(oldest, 1);
    await carol.client.vote(oldest, 1);
    const featured = await anyone().featuredPosts({ limit: 2 });
    assert.deepEqual([titles(featured.posts), featured.limit, featured.total], [[6, 0], 2, 2]);
    assert.equal((await anyone().featuredPosts()).limit, 10);
    assertProblem(await the().call('GET', '/api/posts/featured?limit=51'), 'invalid_input');
  });

  test('what the operator has pinned is featured before the highest ranked', async () => {
    const { posts } = await anyone().discoverPosts({ sort: 'oldest' });
    const postId = posts[2]?.id ?? '';
    await the().ctx().engine.write(featurePost, { postId, featured: true });
    for (const [limit, expected] of [
      [1, [2]],
      [2, [2, 0]],
      [3, [6, 2, 0]],
    ] as const)
      assert.deepEqual(titles((await anyone().featuredPosts({ limit })).posts), expected);
    // Of two that are pinned, the last comes first.
    the().clock.advance(1000);
    const lastId = posts[1]?.id ?? '';
    await the().ctx().engine.write(featurePost, { postId: lastId, featured: true });
    assert.deepEqual(titles((await anyone().featuredPosts({ limit: 1 })).posts), [1]);
    for (const id of [postId, lastId])
      await the().ctx().engine.write(featurePost, { postId: id, featured: false });
    assert.deepEqual(titles((await anyone().featuredPosts({ limit: 2 })).posts), [6, 0]);
  });

  test('one’s own vote does not rank', async () => {
    const { posts } = await anyone().discoverPosts({ sort: 'oldest' });
    const own = posts[2]?.id ?? '';
    await ada.client.vote(own, 1);
    const featured = await anyone().featuredPosts({ limit: 3 });
    assert.equal(
      featured.posts.some((post) => post.id === own),
      false,
    );
  });

  test('a suspended agent and all it has leave every list', async () => {
    const carl = await the().agent('Carl');
    const { post } = await carl.client.publish({ title: 'Post 77', content: 'c', status: 'published' });
    const { total } = await anyone().discoverPosts();
    await the().ctx().engine.write(suspendAgent, { slug: 'carl', reason: 'spam' });
    const answer = assertProblem(await the().call('GET', '/api/me/posts', { key: carl.key }), 'suspended');
    assert.match(String(answer.at('detail')), /spam/);
    assertProblem(await the().call('GET', `/api/posts/${post.id}`), 'not_found');
    assert.equal((await anyone().discoverPosts()).total, Number(total) - 1);
    assert.equal(
      (await anyone().listBlogs()).blogs.some((blog) => blog.slug === 'carl'),
      false,
    );
  });

  test('an agent that is suspended before it verifies stays out of the lists', async () => {
    const total = (await anyone().listBlogs()).total;
    await anyone().register({ email: 'early@example.com', name: 'Early', slug: 'early' });
    await the().ctx().engine.write(suspendAgent, { slug: 'early', reason: 'known' });
    // The first token is void by then.
    await anyone().recover('early@example.com');
    await anyone().verify(await the().token('early@example.com'));
    assert.equal((await anyone().listBlogs()).total, total);
    assert.equal(
      (await anyone().listBlogs()).blogs.some((blog) => blog.slug === 'early'),
      false,
    );
  });
});

describeInstances('what variant B does not have', { variants: ['path'] }, (the) => {
  test('is 404, and since filters own posts', async () => {
    const ada = await the().agent('Ada');
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    for (const [method, path] of [
      ['GET', '/api/blogs'],
      ['GET', '/api/posts/featured'],
      ['GET', `/api/posts/${post.id}/comments`],
      ['POST', `/api/posts/${post.id}/comments`],
      ['DELETE', `/api/posts/${post.id}/comments/${post.id}`],
      ['POST', `/api/posts/${post.id}/vote`],
      ['DELETE', `/api/posts/${post.id}/vote`],
      ['GET', '/api/search?q=x'],
    ] as const) {
      const body = method === 'POST' ? { body: { content: 'c', vote: 1 } } : {};
      assertProblem(await the().call(method, path, { key: ada.key, ...body }), 'not_found');
    }
    const list = (query: string) => the().call('GET', `/api/posts${query}`, { key: ada.key });
    assert.equal(assertOk(await list('?since=2020-01-01')).at('posts.0.id'), post.id);
    assert.equal(assertOk(await list('?since=2999-01-01')).at('posts.0'), undefined);
    assert.match(JSON.stringify(assertOk(await list('?agent=bob')).at('warnings')), /'agent' ignored/);
  });
});

describeInstances('blogs with long names', { variants: ['subdomain'] }, (the) => {
  test('are paged by name with cursors of at most 512 characters, each blog once', async () => {
    const alike = '가각갂갃간'.repeat(19);
    const names = {
      // Each of its characters is three letters, eighteen, or four bytes; or is escaped in JSON.
      hangul: '가각갂갃간'.repeat(20),
      honorific: 'ﷺ'.repeat(100),
      balloons: '🎈'.repeat(100),
      quotes: '"'.repeat(100),
      slashes: '\\'.repeat(100),
      short: 'Short',
      'alike-d': `${alike}d`,
      'alike-a': `${alike}a`,
      'alike-c': `${alike}c`,
      'alike-b': `${alike}b`,
    };
    const agents = new Map<string, TestAgent>();
    for (const [slug, name] of Object.entries(names)) {
      const agent = await the().agent(slug);
      await agent.client.updateMe({ name });
      agents.set(slug, agent);
    }
    const client = the().client();
    const pageAfter = async (cursor: string | null, limit = 1) => {
      const page = await client.listBlogs({ sort: 'name', limit, ...(cursor === null ? {} : { cursor }) });
      return { ...page, slugs: page.blogs.map(({ slug }) => slug) };
    };
    const { slugs: all } = await pageAfter(null, 100);
    assert.deepEqual(all.toSorted(), Object.keys(names).toSorted());
    assert.ok(all.indexOf('short') < all.indexOf('alike-a'), String(all));
    const cursors: string[] = [];
    for (let next: string | null = null; ;) {
      const page = await pageAfter(next);
      assert.deepEqual(page.slugs, [all[cursors.length]]);
      next = page.nextCursor;
      if (next === null) break;
      assert.ok(next.length <= 512, `${page.slugs[0]}: ${next.length}`);
      cursors.push(next);
    }
    assert.equal(cursors.length, all.length - 1);
    for (const [n, cursor] of cursors.entries()) {
      const rest = all.slice(n + 1);
      const { text, status } = await the().call('GET', `/blogs?sort=name&cursor=${cursor}`);
      const shown = [
        ...new Set(Array.from(text.matchAll(/href="http:\/\/([a-z-]+)\.localhost/g), ([, slug]) => slug)),
      ];
      assert.deepEqual([status, shown], [200, rest]);
      const params = { name: 'list_blogs', arguments: { sort: 'name', cursor, limit: 1 } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const told = String((await the().call('POST', '/mcp', { body })).at('result.content.0.text'));
      assert.ok(told.includes(`"slug":"${rest[0]}"`), told);
    }
    // A cursor goes on from where its blog was, whatever became of that.
    const places = all.flatMap((slug, n) => (slug.startsWith('alike-') ? [n] : []));
    const [first = 0, second = 0] = places;
    await agents.get(all[first] ?? '')?.client.updateMe({ name: 'Aa' });
    await agents.get(all[second] ?? '')?.client.deleteMe({ confirm: all[second] ?? '' });
    for (const place of [first, second]) {
      const left = all.slice(place + 1).filter((slug) => slug !== all[second]);
      assert.deepEqual((await pageAfter(cursors[place] ?? '', 100)).slugs, left);
    }
  });
});

describeInstances('orders of blogs', { variants: ['subdomain'] }, (the) => {
  test('are by letters, and by when an agent registered', async () => {
    const client = the().client();
    const names = { zeta: 'Zeta', alpha: 'alpha', emile: 'Émile', beth: 'beth', emil: 'ÉMIL' };
    for (const [slug, name] of Object.entries(names)) {
      await client.register({ email: `${slug}@example.com`, name, slug });
      the().clock.advance(1000);
    }
    for (const slug of Object.keys(names).toReversed())
      await client.verify(await the().token(`${slug}@example.com`));
    const slugs = async (sort: 'name' | 'newest') => {
      const found: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const page = await client.listBlogs({ sort, limit: 2, ...(cursor === '' ? {} : { cursor }) });
        found.push(...page.blogs.map((blog) => blog.slug));
        cursor = page.nextCursor;
      }
      return found;
    };
    assert.deepEqual(await slugs('name'), ['alpha', 'beth', 'emil', 'emile', 'zeta']);
    assert.deepEqual(await slugs('newest'), Object.keys(names).toReversed());
    const renamed = await the().agent('Omega');
    await renamed.client.updateMe({ name: 'álgebra' });
    assert.deepEqual((await slugs('name')).slice(0, 3), ['omega', 'alpha', 'beth']);
  });
});
