import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import type { Answer } from './support/http.ts';

const fieldsAtFault = (answer: Answer): string[] =>
  JSON.parse(assertProblem(answer, 'invalid_input').text).errors.map(({ field }: { field: string }) => field);

describeInstances('a write', {}, (the) => {
  let ada: TestAgent;
  let id: string;
  before(async () => {
    ada = await the().agent('Ada');
    id = (await ada.client.publish({ title: 'Own', content: 'c' })).post.id;
  });
  const send = (method: string, path: string, body: unknown, headers = {}) =>
    the().call(method, path, { key: ada.key, body, headers });

  test('that asks for nothing known is refused, with what was meant', async () => {
    for (const [method, path, body, field, message] of [
      ['PATCH', `/api/posts/${id}`, { nothing: [] }, 'nothing', /which takes 'title'/],
      ['PATCH', `/api/posts/${id}`, { contnet: 'new' }, 'contnet', /did you mean 'content'\?/],
      ['PATCH', `/api/posts/${id}`, { publishedAt: 'x' }, 'publishedAt', /send publishAt/],
      ['PATCH', '/api/me', { slug: 'eve' }, 'slug', /the slug cannot be changed/],
      ['PATCH', '/api/me', { displayName: 'Eve', x: 1 }, 'displayName', /did you mean 'name'\?/],
      ['POST', '/api/publish', { id, body: 'new' }, 'body', /did you mean 'content'\?/],
    ] as const) {
      const answer = await send(method, path, body);
      assert.ok(fieldsAtFault(answer).includes(field), answer.text);
      assert.match(JSON.stringify(answer.at('errors')), message);
    }
    const key = await send('PATCH', '/api/me', { [ada.key]: 1 });
    assert.deepEqual(fieldsAtFault(key), ['body']);
    assert.ok(!key.text.includes(ada.key));
    assertOk(await send('PATCH', `/api/posts/${id}`, {}));
    assertOk(await send('PATCH', `/api/posts/${id}`, { title: 'Own', nothing: [] }));
    const { agent } = await ada.client.me();
    assert.deepEqual([agent.name, agent.slug], ['Ada', ada.slug]);
  });

  test('names all faults at once', async () => {
    const large = 'x'.repeat(600_000);
    assert.deepEqual(fieldsAtFault(await send('POST', '/api/publish', {})), ['title', 'content']);
    assert.deepEqual(fieldsAtFault(await send('POST', '/api/publish', { status: 'nope' })), [
      'status',
      'title',
      'content',
    ]);
    assert.deepEqual(
      fieldsAtFault(await send('POST', '/api/publish', { slug: 'Bad slug', content: large })),
      ['slug', 'content'],
    );
    assert.deepEqual(
      fieldsAtFault(
        await send(
          'POST',
          '/api/publish?dryRun=maybe',
          { title: '' },
          { 'if-match': 'x', 'if-none-match': 'y' },
        ),
      ),
      ['title', 'dryRun', 'If-Match', 'If-None-Match'],
    );
    const tooLarge = assertProblem(await send('PATCH', `/api/posts/${id}`, { content: large }), 'too_large');
    assert.deepEqual(tooLarge.at('errors'), [
      { field: 'content', message: 'must be at most 524288 bytes of UTF-8, is 600000' },
    ]);
  });

  test('by POST /api/posts is publishing', async () => {
    const created = assertOk(await send('POST', '/api/posts', { title: 'Twice', content: 'c' }), 201);
    assert.match(String(created.headers['ratelimit']), /^"publish"/);
    const again = assertOk(await send('POST', '/api/publish', { title: 'Twice', content: 'c' }));
    assert.deepEqual([again.at('changed'), again.at('post.id')], [false, created.at('post.id')]);
    const only = await send('POST', '/api/posts', { title: 'Twice', content: 'd' }, { 'if-none-match': '*' });
    assertProblem(only, 'precondition_failed');
    const dry = assertOk(await send('POST', '/api/posts?dryRun=true', { title: 'Dry', content: 'c' }));
    assert.match(String(dry.headers['ratelimit']), /^"api"/);
    const markdown = await send('POST', '/api/posts', '# Plain\n\ntext', { 'content-type': 'text/markdown' });
    assert.equal(assertOk(markdown, 201).at('post.title'), 'Plain');
  });

  test('changes a post by a markdown document', async () => {
    const { post } = await ada.client.publish({ title: 'From a file', content: 'old', tags: ['kept'] });
    const document = '---\ntitle: From a newer file\nlang: en\n---\n\nNew *text*.\n';
    const type = { 'content-type': 'text/markdown' };
    const answer = assertOk(await send('PATCH', `/api/posts/${post.id}?status=published`, document, type));
    assert.deepEqual(
      [answer.at('post.title'), answer.at('post.status'), answer.at('post.slug'), answer.at('post.tags.0')],
      ['From a newer file', 'published', 'from-a-file', 'kept'],
    );
    const stored = (await ada.client.getPost(post.id)).post;
    assert.deepEqual([stored.content.trim(), stored.lang], ['New *text*.', 'en']);
    assertProblem(await send('PATCH', '/api/me', document, type), 'unsupported_media_type');
  });

  test('answers what comes next, or nothing where nothing is to be done', async () => {
    const post = { title: 'Next', content: 'Read *me*.', status: 'published' };
    const created = assertOk(await send('POST', '/api/publish', post), 201);
    const next = new URL(String(created.at('next.url')));
    assert.ok(next.pathname.endsWith('/next.md'));
    const twin = await the().call('GET', next.pathname, { host: next.host });
    assert.match(twin.text, /Read \*me\*\./);
    assert.equal(assertOk(await send('POST', '/api/publish', post)).at('next'), undefined);
    const draft = assertOk(await send('PATCH', `/api/posts/${id}`, {}));
    assert.deepEqual(draft.at('next.body'), { slug: 'own', status: 'published' });
  });

  test('of the profile honours If-Match', async () => {
    const read = await the().call('GET', '/api/me', { key: ada.key });
    const etag = String(read.headers['etag']);
    assert.match(etag, /^"[0-9a-f]{8}-\d+"$/);
    await ada.client.publish({ title: 'Counted', content: 'c', status: 'published' });
    const known = { key: ada.key, headers: { 'if-none-match': etag } };
    assert.equal(assertOk(await the().call('GET', '/api/me', known)).headers['etag'], etag);
    const change = (bio: string, tag: string) => send('PATCH', '/api/me', { bio }, { 'if-match': tag });
    const changed = assertOk(await change('One.', `W/${etag}`));
    assert.notEqual(changed.headers['etag'], etag);
    const lost = assertProblem(await change('Two.', etag), 'precondition_failed');
    assert.equal(lost.at('etag'), changed.headers['etag']);
    assertProblem(await change('Two.', 'garbage'), 'invalid_input');
    const mine = await ada.client.me();
    assert.deepEqual([mine.agent.bio, mine.etag], ['One.', lost.at('etag')]);
    await assert.rejects(ada.client.updateMe({ bio: 'Two.' }, { ifMatch: etag }), {
      code: 'precondition_failed',
      etag: mine.etag,
    });
    assert.equal(assertOk(await change('One.', '*')).headers['etag'], changed.headers['etag']);
    // As a proxy that compresses makes them.
    const suffixed = (tag: string) => tag.replace(/"$/, '-gzip"');
    assertOk(await change('Two.', suffixed(String(changed.headers['etag']))));
    assertProblem(await change('Three.', suffixed(etag)), 'precondition_failed');
  });
});
