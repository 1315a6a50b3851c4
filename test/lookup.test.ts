import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

describeInstances('a post', {}, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  let id: string;
  let draftId: string;
  before(async () => {
    [ada, bob] = await Promise.all([the().agent('Ada'), the().agent('Bob')]);
    ({
      post: { id },
    } = await ada.client.publish({ title: 'First', slug: 'first', content: 'c', status: 'published' }));
    await ada.client.updatePost(id, { slug: 'second' });
    draftId = (await ada.client.publish({ title: 'Draft', slug: 'draft', content: 'd' })).post.id;
  });

  const lookUp = (query: Readonly<Record<string, string>>, key?: string) =>
    the().call(
      'GET',
      `/api/posts/lookup?${new URLSearchParams(query).toString()}`,
      key === undefined ? {} : { key },
    );

  /** What get_post finds under a name. */
  async function readByTool(post: string, key?: string): Promise<Record<string, unknown>> {
    const params = { name: 'get_post', arguments: { post } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const answer = await the().call('POST', '/mcp', { body, ...(key === undefined ? {} : { key }) });
    return JSON.parse(String(answer.at('result.content.0.text')));
  }

  /** Every address of a post's slug. */
  function addresses(slug: string): string[] {
    const { host } = new URL(the().baseUrl);
    return [
      `http://ada.${host}/${slug}`,
      `https://ada.${host}/${slug}`,
      `http://ADA.${host}/${slug}.md`,
      `http://${host}/ada/${slug}`,
      `http://${host}/ada/${slug}.md?utm=1#comment-1`,
      `http://ada.${host}/${slug}/`,
      `http://${host}/ADA/${slug.toUpperCase()}.html`,
      `http://ada.${host}/%${slug.charCodeAt(0).toString(16)}${slug.slice(1)}`,
      `http://ada.${host}/-/comments/${slug}?cursor=x#comment-1`,
      `http://${host}/ada/-/comments/${slug}`,
    ];
  }

  test('is found by its agent and slug in any case, and by an address without its scheme', async () => {
    const { host } = new URL(the().baseUrl);
    for (const query of [
      { agent: 'Ada', slug: 'SECOND' },
      { agent: 'ADA', slug: 'First' },
      { url: `ada.${host}/second` },
      { url: `${host}/ada/First.md` },
      { url: '/ada/second' },
    ]) {
      const found = await lookUp(query);
      assert.deepEqual([found.status, found.at('post.id')], [200, id], JSON.stringify(query));
    }
    for (const url of ['elsewhere.example/ada/second', 'mailto:ada@agents.example', 'javascript:second'])
      assert.match(String((await lookUp({ url })).at('detail')), /is not an address of this service/, url);
  });

  test('is found by every form of its address, the former ones too', async () => {
    for (const [slug, movedFrom] of [['second'], ['first', 'first']])
      for (const url of addresses(slug ?? '')) {
        const found = await lookUp({ url });
        assert.deepEqual(
          [found.status, found.at('post.id'), found.at('movedFrom')],
          [200, id, movedFrom],
          url,
        );
      }
    const json = `<${the().baseUrl}/api/posts/${id}>; rel="alternate"; type="application/json"`;
    for (const form of ['', '.md']) {
      const page = await open(the(), `${ada.blogUrl}/second${form}`);
      assert.ok(String(page.headers['link']).split(', ').includes(json), String(page.headers['link']));
    }
    const direct = await the().call('GET', `/api/posts/${id}`);
    const found = await lookUp({ agent: 'ada', slug: 'second' });
    assert.deepEqual([found.json(), found.headers['etag']], [direct.json(), direct.headers['etag']]);
    assert.equal((await lookUp({ agent: 'ada', slug: 'first' })).at('movedFrom'), 'first');
    for (const url of [`${the().baseUrl}/api/posts/${id}/comments`, `masthead://post/${id}`])
      assert.equal((await lookUp({ url })).at('post.id'), id);
  });

  test('that is a draft is found by its agent alone', async () => {
    for (const query of [{ agent: 'ada', slug: 'draft' }, { url: `${the().baseUrl}/ada/draft` }]) {
      assert.equal((await lookUp(query, ada.key)).at('post.id'), draftId);
      for (const key of [bob.key, undefined]) {
        const answer = assertProblem(await lookUp(query, key), 'not_found');
        assert.doesNotMatch(answer.text, new RegExp(draftId));
      }
    }
  });

  test('that is not there is 404, which says whose the host is', async () => {
    for (const path of ['', '/ada', '/ada/none', '/ada/second/more', '/docs', '/ada/%00', '/ada/feed.xml']) {
      const answer = assertProblem(await lookUp({ url: the().baseUrl + path }), 'not_found');
      assert.match(String(answer.at('detail')), / is an address of this service, but/, path);
    }
    for (const url of ['https://example.com/ada/second', 'ftp://localhost/ada/second', 'second', 'x:y']) {
      const answer = assertProblem(await lookUp({ url }), 'not_found');
      assert.match(String(answer.at('detail')), /is not an address of this service/, url);
      assert.match(String(answer.at('hint')), /\/hello\.$/);
    }
    const none = assertProblem(await lookUp({ agent: 'ada', slug: 'none' }), 'not_found');
    assert.match(String(none.at('detail')), /^The agent 'ada' has no post with the slug 'none'/);
  });

  test('is asked for by its address, or by agent and slug', async () => {
    for (const [query, field] of [
      [{}, 'url'],
      [{ slug: 'second' }, 'agent'],
      [{ agent: 'ada' }, 'slug'],
      [{ url: 'x', slug: 'second' }, 'url'],
    ] as const) {
      const answer = assertProblem(await lookUp(query), 'invalid_input');
      assert.equal(answer.at('errors.0.field'), field);
    }
  });

  test('is named to a tool by id, own slug or address, and in the names of 0.1', async () => {
    const { host } = new URL(the().baseUrl);
    const everywhere = [id, id.toUpperCase(), `${the().baseUrl}/ada/second`, 'ada/second', '/ada/first'];
    for (const post of everywhere) assert.equal(Object(await readByTool(post)).post.id, id, post);
    for (const post of ['second', 'first', 'draft', `https://ada.${host}/draft`]) {
      const { post: found } = await readByTool(post, ada.key);
      assert.equal(Object(found).id, post.includes('draft') ? draftId : id);
    }
    assert.equal((await readByTool('second', bob.key))['code'], 'not_found');
    const refused = await readByTool('second');
    assert.match(String(refused['detail']), /^'post' is no id or address; a slug alone/);
    for (const [name, value] of [
      ['postId', id],
      ['id', id],
      ['slug', 'second'],
      ['url', `${the().baseUrl}/ada/second`],
    ] as const) {
      const params = { name: 'get_post', arguments: { [name]: value } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const { text } = await the().call('POST', '/mcp', { body, key: ada.key });
      const answer = JSON.parse(JSON.parse(text).result.content[0].text);
      assert.deepEqual([answer.post.id, answer.warningCodes], [id, ['other_name']]);
    }
  });

  test('is changed and deleted by a tool under its slug, which may be changed as well', async () => {
    const call = async (name: string, args: object) => {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
      const { text } = await the().call('POST', '/mcp', { body, key: bob.key });
      return JSON.parse(JSON.parse(text).result.content[0].text);
    };
    await bob.client.publish({ title: 'Mine', slug: 'mine', content: 'c' });
    assert.equal((await call('update_post', { post: 'mine', slug: 'ours' })).post.slug, 'ours');
    assert.equal((await call('update_post', { slug: 'theirs' })).code, 'invalid_input');
    assert.equal((await call('delete_post', { post: 'ours' })).success, true);
    assert.equal((await call('delete_post', { post: 'first' })).code, 'not_found');
  });
});
