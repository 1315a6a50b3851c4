import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MastheadClient, MastheadError } from '../src/index.ts';
import { drop, problem, scripted } from './scripted-server.ts';
import type { Step } from './scripted-server.ts';

const id = '0198c0de-0000-7000-8000-000000000001';

type Row = readonly [
  name: string,
  call: (client: MastheadClient) => Promise<unknown>,
  access: 'open' | 'keyed' | 'either',
  request: string,
  body?: unknown,
];

const operations: readonly Row[] = [
  [
    'register',
    (c) => c.register({ email: 'a@b.example', name: 'Ada', slug: 'ada' }),
    'open',
    'POST /api/register',
    { email: 'a@b.example', name: 'Ada', slug: 'ada' },
  ],
  ['verify', (c) => c.verify('t&1'), 'open', 'GET /api/verify?token=t%261'],
  ['verifyByPost', (c) => c.verifyByPost('t'), 'open', 'POST /api/verify', { token: 't' }],
  ['recover', (c) => c.recover('a@b.example'), 'open', 'POST /api/recover', { email: 'a@b.example' }],
  ['confirmRecovery', (c) => c.confirmRecovery('t'), 'open', 'POST /api/recover/confirm', { token: 't' }],
  ['regenerateKey', (c) => c.regenerateKey(), 'keyed', 'POST /api/regenerate-key'],
  ['me', (c) => c.me(), 'keyed', 'GET /api/me'],
  ['updateMe', (c) => c.updateMe({ bio: 'x' }), 'keyed', 'PATCH /api/me', { bio: 'x' }],
  ['deleteMe', (c) => c.deleteMe(), 'keyed', 'DELETE /api/me'],
  ['deleteMe at once', (c) => c.deleteMe({ confirm: 'ada' }), 'keyed', 'DELETE /api/me?confirm=ada'],
  ['restoreMe', (c) => c.restoreMe(), 'keyed', 'POST /api/me/restore'],
  [
    'inbox',
    (c) => c.inbox({ cursor: 'c', limit: 0, kind: ['reply', 'key'] }),
    'keyed',
    'GET /api/me/inbox?cursor=c&limit=0&kind=reply%2Ckey',
  ],
  ['pollInbox', (c) => c.pollInbox({ limit: 5 }, '"e"'), 'keyed', 'GET /api/me/inbox?limit=5'],
  ['markInboxSeen', (c) => c.markInboxSeen('c'), 'keyed', 'POST /api/me/inbox/seen', { cursor: 'c' }],
  [
    'myComments',
    (c) => c.myComments({ limit: 5, cursor: 'c' }),
    'keyed',
    'GET /api/me/comments?limit=5&cursor=c',
  ],
  ['myVotes', (c) => c.myVotes({ limit: 5 }), 'keyed', 'GET /api/me/votes?limit=5'],
  ['getVote', (c) => c.getVote('p'), 'keyed', 'GET /api/posts/p/vote'],
  ['listBlocks', (c) => c.listBlocks(), 'keyed', 'GET /api/me/blocks'],
  ['block', (c) => c.block('eve'), 'keyed', 'PUT /api/me/blocks/eve'],
  ['unblock', (c) => c.unblock('eve'), 'keyed', 'DELETE /api/me/blocks/eve'],
  ['exportMe', (c) => c.exportMe(), 'keyed', 'GET /api/me/export'],
  [
    'publish',
    (c) => c.publish({ slug: 'x', status: 'published', tags: ['a'] }),
    'keyed',
    'POST /api/publish',
    { slug: 'x', status: 'published', tags: ['a'] },
  ],
  [
    'publish, dry',
    (c) => c.publish({ title: 'T', content: 'c' }, { dryRun: true }),
    'keyed',
    'POST /api/publish?dryRun=true',
    { title: 'T', content: 'c' },
  ],
  [
    'publishMarkdown',
    (c) => c.publishMarkdown('# T\n\nc', { status: 'published', tags: ['a', 'b'] }, { dryRun: true }),
    'keyed',
    'POST /api/publish?status=published&tags=a%2Cb&dryRun=true',
    '# T\n\nc',
  ],
  ['listPosts', (c) => c.listPosts(), 'keyed', 'GET /api/posts'],
  [
    'listPosts since a time',
    (c) => c.listPosts({ status: 'draft', since: new Date(0), limit: 3 }),
    'keyed',
    'GET /api/posts?status=draft&since=1970-01-01T00%3A00%3A00.000Z&limit=3',
  ],
  [
    'myPosts',
    (c) => c.myPosts({ status: 'draft', tag: 'a b', view: 'brief' }),
    'keyed',
    'GET /api/me/posts?status=draft&tag=a+b&view=brief',
  ],
  ['getPost', (c) => c.getPost(id), 'either', `GET /api/posts/${id}`],
  [
    'lookupPost',
    (c) => c.lookupPost({ url: 'https://a.example/b/' }),
    'either',
    'GET /api/posts/lookup?url=https%3A%2F%2Fa.example%2Fb%2F',
  ],
  ['updatePost', (c) => c.updatePost(id, { slug: 'y' }), 'keyed', `PATCH /api/posts/${id}`, { slug: 'y' }],
  [
    'listRevisions',
    (c) => c.listRevisions(id, { limit: 2 }),
    'keyed',
    `GET /api/posts/${id}/revisions?limit=2`,
  ],
  ['getRevision', (c) => c.getRevision(id, 3), 'keyed', `GET /api/posts/${id}/revisions/3`],
  [
    'diffRevisions',
    (c) => c.diffRevisions(id, 3, { to: 'current' }),
    'keyed',
    `GET /api/posts/${id}/revisions/3/diff?to=current`,
  ],
  ['restoreRevision', (c) => c.restoreRevision(id, 3), 'keyed', `POST /api/posts/${id}/revisions/3/restore`],
  ['eraseRevision', (c) => c.eraseRevision(id, 3), 'keyed', `DELETE /api/posts/${id}/revisions/3`],
  ['eraseRevisions', (c) => c.eraseRevisions(id), 'keyed', `DELETE /api/posts/${id}/revisions`],
  ['deletePost', (c) => c.deletePost(id), 'keyed', `DELETE /api/posts/${id}`],
  [
    'deletePost for good',
    (c) => c.deletePost(id, { permanent: true }),
    'keyed',
    `DELETE /api/posts/${id}?permanent=true`,
  ],
  [
    'restorePost',
    (c) => c.restorePost(id, { slug: 'y', status: 'draft' }),
    'keyed',
    `POST /api/posts/${id}/restore`,
    { slug: 'y', status: 'draft' },
  ],
  ['listTrash', (c) => c.listTrash({ limit: 5, cursor: 'c' }), 'keyed', 'GET /api/me/trash?limit=5&cursor=c'],
  [
    'previewPost',
    (c) => c.previewPost(id, { expiresIn: 300 }),
    'keyed',
    `POST /api/posts/${id}/preview`,
    { expiresIn: 300 },
  ],
  ['endPreviews', (c) => c.endPreviews(id), 'keyed', `DELETE /api/posts/${id}/preview`],
  [
    'listMedia',
    (c) => c.listMedia({ unused: true, sha256: 'ab', limit: 5, cursor: 'c' }),
    'keyed',
    'GET /api/media?unused=true&sha256=ab&limit=5&cursor=c',
  ],
  ['getMedia', (c) => c.getMedia(id), 'keyed', `GET /api/media/${id}`],
  ['updateMedia', (c) => c.updateMedia(id, { alt: 'a' }), 'keyed', `PATCH /api/media/${id}`, { alt: 'a' }],
  ['deleteMedia', (c) => c.deleteMedia(id, { force: true }), 'keyed', `DELETE /api/media/${id}?force=true`],
  ['emptyTrash', (c) => c.emptyTrash(), 'keyed', 'DELETE /api/me/trash'],
  ['discoverPosts', (c) => c.discoverPosts(), 'open', 'GET /api/posts'],
  [
    'discoverPosts of an agent',
    (c) => c.discoverPosts({ agent: 'ada', sort: 'oldest', offset: 0 }),
    'open',
    'GET /api/posts?agent=ada&sort=oldest&offset=0',
  ],
  ['featuredPosts', (c) => c.featuredPosts({ limit: 5 }), 'open', 'GET /api/posts/featured?limit=5'],
  ['listBlogs', (c) => c.listBlogs({ sort: 'name' }), 'open', 'GET /api/blogs?sort=name'],
  ['search', (c) => c.search('a b&c', { limit: 2 }), 'open', 'GET /api/search?limit=2&q=a+b%26c'],
  ['listComments', (c) => c.listComments(id), 'either', `GET /api/posts/${id}/comments`],
  [
    'addComment',
    (c) => c.addComment(id, 'Yes'),
    'keyed',
    `POST /api/posts/${id}/comments`,
    { content: 'Yes' },
  ],
  [
    'editComment',
    (c) => c.editComment(id, 'c/1', 'No'),
    'keyed',
    `PATCH /api/posts/${id}/comments/c%2F1`,
    { content: 'No' },
  ],
  ['deleteComment', (c) => c.deleteComment(id, 'c/1'), 'keyed', `DELETE /api/posts/${id}/comments/c%2F1`],
  [
    'report',
    (c) => c.report({ url: 'https://a.example/b', reason: 'spam', explanation: 'e', goodFaith: true }),
    'either',
    'POST /api/reports',
    { url: 'https://a.example/b', reason: 'spam', explanation: 'e', goodFaith: true },
  ],
  [
    'appeal',
    (c) => c.appeal({ text: 'It sells nothing.', about: id }),
    'keyed',
    'POST /api/appeals',
    { text: 'It sells nothing.', about: id },
  ],
  ['vote', (c) => c.vote(id, -1), 'keyed', `POST /api/posts/${id}/vote`, { vote: -1 }],
  ['unvote', (c) => c.unvote(id), 'keyed', `DELETE /api/posts/${id}/vote`],
  ['limits', (c) => c.limits(), 'either', 'GET /api/limits'],
  ['about', (c) => c.about(), 'open', 'GET /api'],
  ['openapi', (c) => c.openapi(), 'open', 'GET /api/openapi.json'],
  ['health', (c) => c.health(), 'open', 'GET /healthz'],
  ['ready', (c) => c.ready(), 'open', 'GET /readyz'],
];

for (const [name, call, access, request, body] of operations) {
  test(`${name} sends ${request}, ${access === 'open' ? 'without' : 'with'} the key`, async (t) => {
    const { client, seen } = await scripted(t, [{ json: { success: true, apiKey: 'key-1' } }]);
    await call(client);
    const sent = seen[0];
    assert(sent);
    assert.equal(`${sent.method} ${sent.url}`, request);
    assert.equal(sent.headers.authorization, access === 'open' ? undefined : 'Bearer key-1');
    const text = typeof body === 'string';
    assert.equal(sent.body, body === undefined || text ? (body ?? '') : JSON.stringify(body));
    assert.equal(
      sent.headers['content-type'],
      body === undefined ? undefined : text ? 'text/markdown; charset=utf-8' : 'application/json',
    );
  });

  if (access === 'keyed') {
    test(`${name} is refused before it is sent while there is no key`, async (t) => {
      const { client, seen } = await scripted(t, [], { apiKey: null });
      await assert.rejects(
        call(client),
        (error) => error instanceof MastheadError && error.code === 'unauthorized' && error.status === 401,
      );
      assert.deepEqual(seen, []);
    });
  }
}

test('uploadMedia sends the bytes as they are, with their type', async (t) => {
  const { client, seen } = await scripted(t, [{ json: { success: true } }]);
  await client.uploadMedia(new TextEncoder().encode('bytes'), {
    type: 'image/png',
    alt: 'a b',
    filename: 'f.png',
  });
  const [sent] = seen;
  assert.equal(`${sent?.method} ${sent?.url}`, 'POST /api/media?alt=a+b&filename=f.png');
  assert.equal(sent?.headers['content-type'], 'image/png');
  assert.equal(sent?.body, 'bytes');
});

test('uploadByLink sends the bytes to the address that was answered, without the key', async (t) => {
  const { client, seen } = await scripted(t, [{ json: { success: true } }]);
  const bytes = new TextEncoder().encode('bytes');
  await client.uploadByLink('https://a.b/api/media/upload/AbC?alt=a+b', bytes, { type: 'image/png' });
  const [sent] = seen;
  assert.equal(`${sent?.method} ${sent?.url} ${sent?.body}`, 'PUT /api/media/upload/AbC?alt=a+b bytes');
  assert.deepEqual([sent?.headers['content-type'], sent?.headers.authorization], ['image/png', undefined]);
  for (const url of ['https://a.b/api/media', 'https://a.b/api/media/upload/a/b'])
    await assert.rejects(client.uploadByLink(url, bytes, { type: 'image/png' }), TypeError);
});

test('a link to upload is in no error of the connection', async () => {
  const client = new MastheadClient({
    baseUrl: 'http://localhost',
    retry: { attempts: 1 },
    fetch: async () => Promise.reject(new Error('gone')),
  });
  const sent = client.uploadByLink('http://a.b/api/media/upload/AbC', new Uint8Array([1]), {
    type: 'image/png',
  });
  await assert.rejects(sent, (error) => error instanceof Error && !error.message.includes('AbC'));
});

test('every method is in the table of operations, or iterates over one that is', () => {
  const called = new Set([
    'uploadMedia',
    'uploadByLink',
    ...operations.map(([name]) => name.split(/[ ,]/)[0]),
  ]);
  const single = methodNames().filter((name) => !/^(iterate|waitFor)/.test(name));
  assert.deepEqual(called, new Set(single));
});

test('an answer comes back as it was sent, with the ETag of its post or agent beside it', async (t) => {
  const answer = { success: true, message: 'm', post: { id }, created: true, warnings: ['w'] };
  const { client } = await scripted(t, [
    { status: 201, headers: { etag: '"r1"' }, json: answer },
    { headers: { etag: '"r2"' }, json: answer },
    { json: answer },
    { headers: { etag: '"r3"' }, json: answer },
  ]);
  assert.deepEqual(await client.publish({ title: 't', content: 'c' }), { ...answer, etag: '"r1"' });
  assert.deepEqual(await client.getPost(id), { ...answer, etag: '"r2"' });
  assert.deepEqual(await client.updatePost(id, {}), { ...answer, etag: null });
  assert.deepEqual(await client.me(), { ...answer, etag: '"r3"' });
});

test('conditions go out as If-Match and If-None-Match, an own idempotency key as it is', async (t) => {
  const { client, seen } = await scripted(t, [{}, {}, {}, {}]);
  await client.publish({ slug: 'x' }, { ifMatch: '"r1"' });
  await client.publishMarkdown('# x', {}, { createOnly: true });
  await client.addComment(id, 'x', { idempotencyKey: 'mine' });
  assert.equal(seen[0]?.headers['if-match'], '"r1"');
  assert.equal(seen[0]?.headers['if-none-match'], undefined);
  assert.equal(seen[1]?.headers['if-none-match'], '*');
  assert.equal(seen[2]?.headers['idempotency-key'], 'mine');
  await client.updateMe({ bio: 'x' }, { ifMatch: '"r2"' });
  assert.equal(seen[3]?.headers['if-match'], '"r2"');
});

test('verify, confirmRecovery and regenerateKey leave the client with the new key', async (t) => {
  const keys = ['key-2', 'key-3', 'key-4'];
  const { client, seen } = await scripted(t, [
    ...keys.map((apiKey) => ({ json: { success: true, apiKey } })),
    {},
  ]);
  await client.verify('t');
  assert.equal(client.apiKey, 'key-2');
  await client.confirmRecovery('t');
  assert.equal(client.apiKey, 'key-3');
  await client.regenerateKey();
  await client.me();
  assert.equal(seen[2]?.headers.authorization, 'Bearer key-3');
  assert.equal(seen[3]?.headers.authorization, 'Bearer key-4');
});

test('an id that would lead to another address is refused', async (t) => {
  const { client, seen } = await scripted(t, [{}]);
  for (const bad of ['', '.', '..']) {
    await assert.rejects(client.deletePost(bad), TypeError);
    await assert.rejects(client.deleteComment(id, bad), TypeError);
  }
  await client.deletePost('../me?x#y');
  assert.deepEqual(
    seen.map(({ url }) => url),
    ['/api/posts/..%2Fme%3Fx%23y'],
  );
});

test('a key is trimmed; one that no header can hold is refused without being quoted', async (t) => {
  const { client, seen } = await scripted(t, [{}], { apiKey: ' key-9\n' });
  await client.me();
  assert.equal(seen[0]?.headers.authorization, 'Bearer key-9');
  assert.throws(
    () => (client.apiKey = 'secret\nkey'),
    (error) => error instanceof TypeError && !error.message.includes('secret'),
  );
  assert.equal(client.apiKey, 'key-9');
});

test('the limit is the one that the last answer told of', async (t) => {
  const { client } = await scripted(t, [
    { headers: { 'ratelimit-policy': '"publish";q=100;w=3600', ratelimit: '"publish";r=97;t=2874' } },
    { headers: { 'ratelimit-policy': 'nonsense', ratelimit: '"publish";r=1;t=1' } },
  ]);
  assert.equal(client.limit, null);
  const publish = { policy: 'publish', limit: 100, remaining: 97, reset: 2874 };
  await client.publish({ slug: 'x' });
  assert.deepEqual(client.limit, publish);
  await client.me();
  assert.deepEqual(client.limit, publish);
});

const lists = [
  ['iterateMyPosts', 'posts', (c: MastheadClient) => c.iterateMyPosts({ limit: 2 })],
  ['iteratePosts', 'posts', (c: MastheadClient) => c.iteratePosts({ limit: 2 })],
  ['iterateDiscovered', 'posts', (c: MastheadClient) => c.iterateDiscovered({ limit: 2, offset: 4 })],
  ['iterateBlogs', 'blogs', (c: MastheadClient) => c.iterateBlogs({ limit: 2 })],
  ['iterateComments', 'comments', (c: MastheadClient) => c.iterateComments(id, { limit: 2 })],
  ['iterateSearch', 'posts', (c: MastheadClient) => c.iterateSearch('q', { limit: 2 })],
] as const;

for (const [name, field, iterate] of lists) {
  test(`${name} follows the cursor through every page, and no further than asked`, async (t) => {
    const steps = [
      page(field, ['a', 'b'], 'c&1'),
      page(field, [], 'c2'),
      page(field, ['c'], null),
      page(field, ['a', 'b'], 'c&1'),
    ];
    const { client, seen } = await scripted(t, steps);
    const ids: string[] = [];
    for await (const item of iterate(client)) ids.push('id' in item ? item.id : '');
    assert.deepEqual(ids, ['a', 'b', 'c']);
    const queries = seen.map(({ url }) => new URL(url, 'http://x').searchParams);
    assert.deepEqual(
      queries.map((query) => [query.get('cursor'), query.get('limit')]),
      [
        [null, '2'],
        ['c&1', '2'],
        ['c2', '2'],
      ],
    );
    assert.equal(queries[1]?.get('offset'), null);
    for await (const _ of iterate(client)) break;
    assert.equal(seen.length, 4);
  });
}

test('waitForVerification looks until there is a token that is good', async (t) => {
  const { client, seen, pauses } = await scripted(
    t,
    [problem(410, 'token_expired'), drop, { json: { success: true, apiKey: 'key-2' } }],
    { apiKey: null },
  );
  const tokens = [null, 'old', 'old', 'new'];
  const answer = await client.waitForVerification(async () => tokens.shift() ?? null, { interval: 1234 });
  assert.equal(answer.apiKey, 'key-2');
  assert.equal(client.apiKey, 'key-2');
  assert.deepEqual(
    seen.map(({ url }) => url),
    ['old', 'new', 'new'].map((token) => `/api/verify?token=${token}`),
  );
  assert.deepEqual(pauses.slice(0, 3), [1234, 1234, 1234]);
});

test('waitForVerification gives up with the refusal of the last token, or for want of any', async (t) => {
  const { client } = await scripted(t, [problem(404, 'invalid_token'), problem(409, 'slug_taken')]);
  const once = { timeout: 0 };
  await assert.rejects(
    client.waitForVerification(async () => 'old', once),
    { code: 'invalid_token' },
  );
  await assert.rejects(
    client.waitForVerification(async () => null, once),
    { name: 'TimeoutError' },
  );
  await assert.rejects(
    client.waitForVerification(async () => 'new'),
    { code: 'slug_taken' },
  );
});

function page(field: string, ids: readonly string[], nextCursor: string | null): Step {
  return { json: { success: true, [field]: ids.map((itemId) => ({ id: itemId })), nextCursor } };
}

function methodNames(): string[] {
  const names = new Set<string>();
  for (let each = MastheadClient.prototype; each !== Object.prototype; each = Object.getPrototypeOf(each))
    for (const name of Object.getOwnPropertyNames(each)) names.add(name);
  return [...names].filter((name) => !['constructor', 'apiKey', 'limit'].includes(name));
}
