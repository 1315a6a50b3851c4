import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { featurePost, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { entityTagFault } from '../src/services/preconditions.ts';
import { rerenderAll } from '../src/services/upkeep/rerender.ts';
import { onDatabase } from './support/on-database.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

describeInstances('conditional calls', {}, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    for (const title of ['One', 'Two'])
      await ada.client.publish({ title, content: `about ${title}`, status: 'published' });
  });
  const hence = (ms: number) => new Date(the().clock.now() + ms).toISOString();
  const read = (path: string, headers = {}) => the().call('GET', path, { key: ada.key, headers });

  test('a list answers 304 to its own ETag, which counts, and another after a change', async () => {
    const lists = [
      '/api/posts',
      '/api/posts?status=published&limit=1',
      ...(variant === 'subdomain'
        ? ['/api/posts?since=2020-01-01', '/api/blogs', '/api/posts/featured', '/api/search?q=about']
        : []),
    ];
    const tags = new Map<string, string>();
    for (const path of lists) {
      const first = assertOk(await read(path));
      const etag = String(first.headers['etag']);
      assert.match(etag, /^W\/"[\w-]{16}"$/);
      tags.set(path, etag);
      for (const known of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
        const fresh = await read(path, { 'if-none-match': known });
        assert.deepEqual([fresh.status, fresh.text], [304, ''], `${path} ${known}`);
        assert.equal(fresh.headers['etag'], etag);
        assert.equal(fresh.headers['content-type'], undefined);
        assert.equal(
          Number(fresh.headers['x-ratelimit-remaining']) < Number(first.headers['x-ratelimit-remaining']),
          true,
        );
      }
      assertOk(await read(path, { 'if-none-match': '"other"' }));
    }
    await ada.client.publish({ title: 'Three', content: 'about Three', status: 'published' });
    for (const [path, etag] of tags) assertOk(await read(path, { 'if-none-match': etag }));
  });

  test('the ETag of a post stands for one body, whatever happens to the post', async () => {
    const { client, key, id: agentId } = await the().agent('Una');
    const fields = { title: 'Una 1', content: 'about it', publishAt: hence(3_600_000) };
    const { id } = (await client.publish(fields)).post;
    const bodies = new Map<string, string>();
    const look = async (after: string) => {
      for (const as of [key, ada.key, undefined]) {
        const seen = await the().call('GET', `/api/posts/${id}`, as === undefined ? {} : { key: as });
        if (seen.status !== 200) continue;
        const name = `${as} ${seen.headers['etag']}`;
        assert.equal(seen.text, bodies.get(name) ?? seen.text, after);
        bodies.set(name, seen.text);
      }
    };
    const { engine } = the().ctx();
    const moderate = (to: PostState) => engine.write(moderatePost, { postId: id, to });
    const change = (changes: object) => client.updatePost(id, changes);
    const throwAway = () => client.deletePost(id);
    const restore = (more = {}) => client.restorePost(id, more);
    const take = (slug: string) => client.publish({ title: slug, slug, content: 'c' }, { createOnly: true });
    const old = `renderer_version = 1, excerpt = 'As it was made before.'`;
    // Seen with the next change, which is another revision.
    const age = () => onDatabase(the().ctx(), `update posts set ${old} where id = '${id}'`);
    const rerender = () => rerenderAll(the().ctx(), () => undefined);
    const happenings: (() => Promise<unknown>)[] = [
      throwAway,
      restore,
      () => change({ publishAt: hence(7_200_000) }),
      () => change({ publishAt: null }),
      () => moderate({ state: 'held', reason: null }),
      () => change({ status: 'published' }),
      () => moderate(null),
      () => moderate({ state: 'hidden', reason: 'one' }),
      () => moderate({ state: 'hidden', reason: 'two' }),
      throwAway,
      () => moderate(null),
      restore,
      () => change({ slug: 'una-2' }),
      () => change({ slug: 'una-3', content: 'other' }),
      throwAway,
      () => take('una-2'),
      restore,
      () => take('una-1'),
      () => client.eraseRevisions(id),
      throwAway,
      () => restore({ status: 'draft' }),
      throwAway,
      () => restore({ slug: 'una-4', status: 'published' }),
      () => engine.write(featurePost, { postId: id, featured: true }),
      () => engine.write(suspendAgent, { agentId, reason: 'a look' }),
      () => engine.write(restoreAgent, { agentId }),
      () => client.deleteMe(),
      () => client.restoreMe(),
      () => client.updateMe({ name: 'Uma' }),
      () => client.updateMe({ bio: 'Another.' }),
      age,
      () => change({ tags: ['old'] }),
      rerender,
      age,
      () => change({ tags: ['older'] }),
      throwAway,
      rerender,
      restore,
      ...(variant === 'subdomain'
        ? [() => ada.client.addComment(id, 'Well.'), () => ada.client.vote(id, 1)]
        : []),
    ];
    await look('0');
    for (const [n, happen] of happenings.entries()) {
      await happen();
      if (happen !== age) await look(`${n + 1} ${happen.toString()}`);
    }
    assert.ok(bodies.size > 30, String(bodies.size));
    const { revisions } = await client.listRevisions(id);
    for (const { slug } of revisions) assert.match(slug, /^una-\d$/);
  });

  test('a cursor belongs to the filters of its list', async () => {
    const own = assertOk(await read('/api/posts?status=published&limit=1'));
    const cursor = encodeURIComponent(String(own.at('nextCursor')));
    assertOk(await read(`/api/posts?status=published&limit=2&cursor=${cursor}`));
    assertProblem(await read(`/api/posts?status=draft&cursor=${cursor}`), 'invalid_input');
    assertProblem(await read(`/api/posts?cursor=${cursor}`), 'invalid_input');
    if (variant === 'path') return;
    const everyones = assertOk(await read('/api/posts?since=2020-01-01&limit=1'));
    const next = encodeURIComponent(String(everyones.at('nextCursor')));
    assertOk(await read(`/api/posts?since=2020-01-01T00:00:00Z&cursor=${next}`));
    assertProblem(await read(`/api/posts?since=2020-01-02&cursor=${next}`), 'invalid_input');
    assertProblem(await read(`/api/posts?agent=ada&cursor=${next}`), 'invalid_input');
  });

  test('markdown that cannot be read is refused in words that fit', async () => {
    const send = (body: string | Buffer, path = '/api/publish', method = 'POST') =>
      the().call(method, path, { key: ada.key, body, headers: { 'content-type': 'text/markdown' } });
    const latin = assertProblem(await send(Buffer.from('# Caf\xe9', 'latin1')), 'invalid_input');
    assert.match(String(latin.at('detail')), /not valid UTF-8/);
    assert.match(String(latin.at('hint')), /iconv/);
    for (const [path, body] of [
      ['/api/publish', ''],
      ['/api/posts', ''],
      ['/api/publish?title=T', ''],
      ['/api/publish', ' \n\t'],
      ['/api/publish', '\uFEFF\r\n'],
    ] as const) {
      const empty = assertProblem(await send(body, path), 'invalid_input');
      assert.match(String(empty.at('detail')), /The markdown body is empty/);
      assert.doesNotMatch(empty.text, /JSON object/);
    }
    const json = await the().call('POST', '/api/publish', { key: ada.key, body: Buffer.from([0x22, 0xff]) });
    assert.match(String(assertProblem(json, 'invalid_json').at('hint')), /UTF-8/);
    for (const type of ['text/x', 'json', 'application/json charset=utf-8']) {
      const headers = { 'content-type': type };
      const patch = assertProblem(
        await the().call('PATCH', '/api/me', { key: ada.key, body: 'a=b', headers }),
        'unsupported_media_type',
      );
      assert.equal(patch.headers['accept-patch'], 'application/json');
      assert.ok(patch.text.includes(`'${type}'`), patch.text);
    }
  });

  test('a token is exchanged without standing in an address, a recovery’s too', async () => {
    const email = 'eve@example.com';
    await the().call('POST', '/api/register', { body: { email, name: 'Eve', slug: 'eve' } });
    const exchange = async () =>
      the().call('POST', '/api/verify', { body: { token: await the().token(email) } });
    const first = assertOk(await exchange());
    assert.equal(first.headers['cache-control'], 'no-store');
    const again = assertOk(await exchange());
    assert.equal(again.at('apiKey'), first.at('apiKey'));
    const key = String(first.at('apiKey'));
    assertOk(await the().call('GET', '/api/me', { key }));
    await the().call('POST', '/api/recover', { body: { email } });
    const recovered = assertOk(await exchange());
    assert.match(String(recovered.at('message')), /old one no longer works/);
    assert.notEqual(recovered.at('apiKey'), key);
    const old = assertProblem(await the().call('GET', '/api/me', { key }), 'unauthorized');
    assert.match(String(old.headers['www-authenticate']), /error="invalid_token"$/);
    const none = assertProblem(await the().call('GET', '/api/me'), 'unauthorized');
    assert.equal(none.headers['www-authenticate'], 'Bearer realm="masthead"');
    assertProblem(await the().call('POST', '/api/verify', { body: { token: 'unknown' } }), 'invalid_token');
  });
});

test('a list of entity tags may have empty members, and no bare words', () => {
  for (const value of ['"3b7f0a9c-4.1",', ', W/"x" ,, 3b7f0a9c-4.1', '*', '"a", "b"'])
    assert.equal(entityTagFault(value), null, value);
  for (const value of ['tag', 'x, "a"', '', ',', '*, "a"', '"a" "b"'])
    assert.match(entityTagFault(value) ?? 'accepted', /^must be an ETag/, value);
});
