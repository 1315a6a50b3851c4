import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { atMost } from './support/at-most.ts';
import { documentOf, operationsOf } from './support/api-document.ts';
import { fuzz, populate } from './support/fuzz.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { naughty } from './support/naughty.ts';

/** What is no JSON, by the categories of Nicolas Seriot's JSONTestSuite; written anew. */
const notJson: readonly (string | Uint8Array)[] = [
  // Structure
  ' ',
  '{',
  '}',
  '[',
  ']',
  '{}}',
  '{}{}',
  '{} x',
  '{}#',
  '{"a":1}/**/',
  '/**/{}',
  '{"a":1//\n}',
  '<!-- {} -->',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1,,"b":2}',
  '{"a"}',
  '{"a":}',
  '{:1}',
  '{"a" 1}',
  '{"a"::1}',
  '{"a":1 "b":2}',
  '{a:1}',
  "{'a':1}",
  '{1:1}',
  '{null:1}',
  '{"a":1',
  '{"a":"b',
  '[1,]',
  '[,1]',
  '[1 2]',
  '[1:2]',
  '[[1]',
  '[1]]',
  '\u2060{}',
  '\f{}',
  '\u00a0{}',
  'undefined',
  'nul',
  'True',
  'NaN',
  '"',
  "''",
  '*',
  // Numbers
  '[01]',
  '[+1]',
  '[-]',
  '[-01]',
  '[1.]',
  '[.5]',
  '[1e]',
  '[1e+]',
  '[0x10]',
  '[1_000]',
  '[Infinity]',
  '[-Infinity]',
  '[1a]',
  '[１]',
  // Strings
  '["\\x61"]',
  '["\\u12"]',
  '["\\u"]',
  '["\\U0061"]',
  '["\\a"]',
  '["\\"]',
  '["a\nb"]',
  '["a\tb"]',
  '["a\0b"]',
  '["\\ud800\\u"]',
  // Bytes
  new Uint8Array([0xef, 0xbb, 0xbf]),
  new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]),
  new Uint8Array([0x22, 0xc3, 0x22]),
  new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]),
  new Uint8Array([0x22, 0xc0, 0xaf, 0x22]),
  new Uint8Array([0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]),
  new Uint8Array([0x7b, 0x7d, 0x00]),
  // Depth
  `${'['.repeat(33)}${']'.repeat(33)}`,
  '['.repeat(100_000),
  '{"a":'.repeat(100_000).slice(0, 60_000),
  // Number of values
  `[${'{},'.repeat(10_000)}1]`,
];

describeInstances('what is no JSON', { env: { LIMIT_PUBLISH: '0' }, once: true }, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });

  test(`is 400 invalid_json, in each of ${notJson.length} forms`, async () => {
    for (const body of notJson) {
      const answer = await the().call('POST', '/api/publish', { key: ada.key, body });
      assert.equal(
        answer.at('code'),
        'invalid_json',
        `${JSON.stringify(String(body)).slice(0, 40)}: ${answer.text}`,
      );
      assertProblem(answer, 'invalid_json');
    }
  });

  test('is not repeated in the answer, since it may hold a key', async () => {
    const answer = await the().call('POST', '/api/publish', { key: ada.key, body: `{"key": ${ada.key}}` });
    assertProblem(answer, 'invalid_json');
    assert.ok(!answer.text.includes(ada.key.slice(0, 8)));
  });

  test('is told where, or at least what, the fault is', async () => {
    for (const [body, expected] of [
      ['{"a":1,\n "b" 2}', /stopped at line 2, column 6/],
      ['{"a":1', /stopped at line 1, column 7/],
      ['{"a":', /ends too early/],
      ['{"a":word}', /a bare word/],
    ] as const) {
      const answer = await the().call('POST', '/api/publish', { key: ada.key, body });
      assert.match(String(answer.at('detail')), expected);
    }
  });

  test('JSON of other shapes than an object is 400 invalid_input', async () => {
    for (const body of ['[]', 'null', '1', '"text"', 'true', `${'['.repeat(32)}${']'.repeat(32)}`])
      assertProblem(await the().call('POST', '/api/publish', { key: ada.key, body }), 'invalid_input');
  });

  test('names that objects inherit are fields like others', async () => {
    const body = '{"__proto__":{"title":"T"},"constructor":1,"toString":2,"title":"Plain","content":"c"}';
    const answer = assertOk(await the().call('POST', '/api/publish', { key: ada.key, body }), 201);
    assert.equal(answer.at('post.title'), 'Plain');
    assert.match(JSON.stringify(answer.at('warnings')), /unknown field '__proto__'/);
  });
});

describeInstances(
  'no input',
  // Exports have a limit that is never off: where the others are, its refusal cannot say what is left.
  { env: { LIMIT_PUBLISH: '0', LIMIT_COMMENT: '0', LIMIT_API: '1000000', LIMIT_ANONYMOUS: '1000000' } },
  (the, variant) => {
    let ada: TestAgent;
    let postId = '';
    before(async () => {
      ada = await the().agent('Ada');
      postId = (await ada.client.publish({ title: 'Target', content: 'c', status: 'published' })).post.id;
    });

    const bodies = {
      '/api/register': ['email', 'name', 'slug', 'bio', 'avatarUrl'],
      '/api/recover': ['email'],
      '/api/recover/confirm': ['token'],
      '/api/publish': ['title', 'content', 'slug', 'status', 'tags', 'lang', 'excerpt', 'disclosure'],
      ...(variant === 'subdomain'
        ? { '/api/posts/ID/comments': ['content'], '/api/posts/ID/vote': ['vote'] }
        : {}),
    };
    const valid: Record<string, unknown> = {
      email: 'valid@example.com',
      name: 'Valid',
      slug: 'valid',
      title: 'Valid',
      content: 'valid',
      token: 'valid',
      vote: 1,
    };
    const queries = ['status', 'since', 'agent', 'sort', 'limit', 'offset', 'cursor', 'token', 'dryRun', 'q'];
    const paths = [
      '/api/posts',
      '/api/verify',
      '/api/blogs',
      '/api/posts/featured',
      '/api/posts/ID/comments',
      '/api/search',
      '/verify',
      '/',
    ];

    const check = (answer: { status: number; text: string }, what: string) =>
      assert.ok(answer.status < 500, `${what}: ${answer.status} ${answer.text.slice(0, 300)}`);
    const send = async (path: string, body: Record<string, unknown>) =>
      check(
        await the().call('POST', path.replace('ID', postId), { key: ada.key, body: JSON.stringify(body) }),
        `${path} ${JSON.stringify(body).slice(0, 200)}`,
      );

    test('of naughty texts, in every field alone, gives a 5xx', async () => {
      for (const [path, fields] of Object.entries(bodies)) {
        const others = Object.fromEntries(
          fields.flatMap((name) => (name in valid ? [[name, valid[name]]] : [])),
        );
        const bodiesSent = fields.flatMap((field) =>
          naughty.map((text) => ({ ...others, [field]: field === 'tags' ? [text] : text })),
        );
        await atMost(8, bodiesSent, (body) => send(path, body));
      }
    });

    test('of naughty texts, in every query, path and header, gives a 5xx', async () => {
      for (const text of naughty.map((each) => encodeURIComponent(each.toWellFormed().slice(0, 600)))) {
        await Promise.all([
          ...paths.map(async (path) =>
            check(
              await the().call(
                'GET',
                `${path.replace('ID', postId)}?${queries.map((name) => `${name}=${text}`).join('&')}`,
              ),
              `${path} ${text}`,
            ),
          ),
          ...queries
            .slice(0, 7)
            .map(async (name) =>
              check(
                await the().call('GET', `/api/posts?${name}=${text}`, { key: ada.key }),
                `${name}=${text}`,
              ),
            ),
          ...['GET', 'PATCH', 'DELETE'].map(async (method) =>
            check(
              await the().call(method, `/api/posts/${text}`, {
                key: ada.key,
                ...(method === 'PATCH' ? { body: {} } : {}),
              }),
              text,
            ),
          ),
          (async () => check(await the().call('GET', `/${text}/${text}`), text))(),
          ...[
            'idempotency-key',
            'if-match',
            'if-none-match',
            'authorization',
            'x-forwarded-for',
            'accept',
            'content-type',
            'accept-encoding',
          ].map(async (name) =>
            check(
              await the().call('POST', '/api/publish', { key: ada.key, body: {}, headers: { [name]: text } }),
              `${name}: ${text}`,
            ),
          ),
        ]);
      }
    });

    test('of a NUL character in a path or in what is looked up is other than 404, on any database', async () => {
      const values: Readonly<Record<string, string>> = { id: postId, slug: 'a', number: '1', name: 'a' };
      const looked = ['agent=a%00&slug=a', 'agent=ada&slug=a%00'].map(
        (query) => `/api/posts/lookup?${query}`,
      );
      const named = operationsOf(await documentOf(the()))
        .filter(({ method }) => method === 'GET' || method === 'DELETE')
        .flatMap(({ method, path }) =>
          Array.from(path.matchAll(/\{\w+\}/g), ([own]) => ({
            method,
            path: path
              .replace(own, 'a%00b')
              .replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? postId),
          })),
        );
      assert.ok(named.length > 10, String(named.length));
      const puts = [{ method: 'PUT', path: '/api/me/blocks/a%00b' }];
      for (const { method, path } of [
        ...named,
        ...puts,
        ...looked.map((each) => ({ method: 'GET', path: each })),
      ]) {
        const { status } = await the().call(method, path, { key: ada.key });
        assert.equal(status, 404, `${method} ${path}`);
      }
      const params = { name: 'get_post', arguments: { post: 'a\0b' } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const { text } = await the().call('POST', '/mcp', { key: ada.key, body });
      assert.match(text, /not_found/);
    });

    test('that is generated from the document gives a 5xx, or an answer that is not in it', async () => {
      const [bob, spare] = await Promise.all([the().agent('Bob'), the().agent('Spare')]);
      await fuzz({
        document: await documentOf(the()),
        world: {
          keys: { ada: ada.key, bob: bob.key, spare: spare.key },
          ...(await populate(ada.client, bob.client, variant === 'subdomain')),
        },
        requests: 16,
        seed: 20261121,
        send: (...sent) => the().call(...sent),
      });
    });

    test('was the cause of an unforeseen failure', () => {
      assert.doesNotMatch(the().log(), /not foreseen|"level":"error"/);
    });
  },
);
