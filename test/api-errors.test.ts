import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { errorCodes } from '../client/src/index.ts';
import { createApp } from '../src/app.ts';
import type { Context } from '../src/context.ts';
import type { Engine } from '../src/db/database.ts';
import { AppError, catalogue, type ErrorCode } from '../src/errors.ts';
import { createRateLimiter } from '../src/services/limits/rate-limiter.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { blockSource } from '../src/services/trust/source-blocks.ts';
import { makePng } from './support/made-pictures.ts';
import { rawRequest, request, type Answer } from './support/http.ts';
import { assertOk, assertProblem, startInstance, type Instance, type TestAgent } from './support/instance.ts';

/** A second door to an instance's database, with parts of the context replaced. */
async function openDoor(instance: Instance, change: Partial<Context>) {
  const ctx = { ...instance.ctx(), ...change };
  const limiter = createRateLimiter(instance.ctx(), () => 1);
  const app = await createApp(ctx, { limiter, health: { state: () => 'ready', writable: () => true } });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    call: (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      request(url, {
        method,
        path,
        host: `localhost:${instance.port}`,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    async close() {
      await app.close();
      await limiter.close();
    },
  };
}

describe('every code of the catalogue', () => {
  let instance: Instance;
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    instance = await startInstance({ env: { LIMIT_REGISTER: '', QUOTA_POSTS: '1' } });
    [ada, bob] = await Promise.all([instance.agent('Ada'), instance.agent('Bob')]);
  });
  after(() => instance.close());

  const call = (method: string, path: string, body?: unknown, key?: string, headers = {}) =>
    instance.call(method, path, {
      ...(body === undefined ? {} : { body }),
      ...(key ? { key } : {}),
      headers,
    });
  const register = (more: object) =>
    call('POST', '/api/register', { email: 'x@example.com', name: 'X', slug: 'xxx', ...more });
  const publish = (body: unknown, headers = {}) => call('POST', '/api/publish', body, ada.key, headers);
  const published = async () =>
    (await bob.client.publish({ title: 'P', content: 'c', status: 'published' })).post.id;

  /** What a call answers while every write ends so. */
  const failingWith = async (write: Engine['write'], headers = {}) => {
    const door = await openDoor(instance, { engine: { ...instance.ctx().engine, write } });
    try {
      const registration = { email: 'y@example.com', name: 'Y', slug: 'yyy' };
      return await door.call('POST', '/api/register', registration, headers);
    } finally {
      await door.close();
    }
  };
  const failing = (code: ErrorCode) =>
    failingWith(() => Promise.reject(new AppError(code, 'Nothing can be written.', { retryAfter: 7 })));

  const sendPicture = (body: Uint8Array) =>
    instance.call('POST', '/api/media', { body, key: bob.key, headers: { 'content-type': 'image/png' } });

  const produce: Record<ErrorCode, () => Promise<Answer>> = {
    invalid_json: () => publish('{"title":'),
    invalid_input: () => publish({ title: 5 }),
    slug_reserved: () => register({ slug: 'admin' }),
    unauthorized: () => call('GET', '/api/me'),
    async suspended() {
      const carl = await instance.agent('Carl');
      await instance.ctx().engine.write(suspendAgent, { slug: 'carl', reason: 'Spam.' });
      return call('GET', '/api/me/posts', undefined, carl.key);
    },
    async deleting() {
      const dora = await instance.agent('Dora');
      await dora.client.deleteMe();
      return call('GET', '/api/limits', undefined, dora.key);
    },
    forbidden: async () => call('DELETE', `/api/posts/${await published()}`, undefined, ada.key),
    async blocked() {
      const post = await published();
      await bob.client.block('ada');
      const answer = await call('POST', `/api/posts/${post}/vote`, { vote: 1 }, ada.key);
      await bob.client.unblock('ada');
      return answer;
    },
    async comments_closed() {
      const post = await published();
      await bob.client.updatePost(post, { commentsOpen: false });
      const answer = await call('POST', `/api/posts/${post}/comments`, { content: 'x' }, ada.key);
      await bob.client.updatePost(post, { commentsOpen: true });
      return answer;
    },
    async quota_exceeded() {
      await publish({ title: 'One', content: 'c' });
      return publish({ title: 'Two', content: 'c' });
    },
    not_found: () => call('GET', '/api/nothing'),
    invalid_token: () => call('GET', '/api/verify?token=3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04'),
    method_not_allowed: () => call('PUT', '/api/publish'),
    not_implemented: () => call('EVIL', '/api/publish'),
    expectation_failed: () => call('GET', '/skill.md', undefined, undefined, { expect: '200-ok' }),
    slug_taken: () => register({ slug: 'ada' }),
    email_taken: () => register({ email: ada.email }),
    async in_progress() {
      const { engine } = instance.ctx();
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      const arrivals = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      let arrived = 0;
      const door = await openDoor(instance, {
        engine: {
          ...engine,
          async write(operation, input, ticket) {
            arrivals[arrived++]?.resolve();
            await gate;
            return engine.write(operation, input, ticket);
          },
        },
      });
      const send = () =>
        door.call(
          'POST',
          '/api/register',
          { email: 'slow@example.com', name: 'S', slug: 'slow' },
          { 'idempotency-key': 'k' },
        );
      const first = send();
      await arrivals[0].promise;
      const second = send();
      // The second is refused after its own count, which waits at the gate as well.
      await arrivals[1].promise;
      open();
      const answers = await Promise.all([first, second]);
      const [refused] = answers.filter(({ status }) => status !== 200);
      await door.close();
      return refused ?? assert.fail('both calls ran');
    },
    async in_use() {
      const { media } = await bob.client.uploadMedia(makePng(), { type: 'image/png' });
      await bob.client.updatePost(await published(), { content: media.markdown });
      return call('DELETE', `/api/media/${media.id}`, undefined, bob.key);
    },
    invalid_media: () => sendPicture(makePng().subarray(0, -4)),
    async blocked_media() {
      const bytes = makePng();
      const value = createHash('sha256').update(bytes).digest('hex');
      await instance.ctx().engine.write(blockSource, { kind: 'media', value });
      return sendPicture(bytes);
    },
    async edit_conflict() {
      const id = await published();
      const { engine } = instance.ctx();
      let changes = 0;
      const door = await openDoor(instance, {
        engine: {
          ...engine,
          async write(operation, input, ticket) {
            if (operation.name === 'posts.save')
              assertOk(await call('PATCH', `/api/posts/${id}`, { title: `Changed ${++changes}` }, bob.key));
            return engine.write(operation, input, ticket);
          },
        },
      });
      const body = { append: 'More.' };
      const answer = await door.call('PATCH', `/api/posts/${id}`, body, {
        authorization: `Bearer ${bob.key}`,
      });
      await door.close();
      assert.equal(changes, 3);
      return answer;
    },
    async edit_not_applied() {
      const body = { edits: [{ old: 'nowhere', new: 'x' }] };
      return call('PATCH', `/api/posts/${await published()}`, body, bob.key);
    },
    async token_expired() {
      await register({ slug: 'expired', email: 'expired@example.com' });
      const token = await instance.token('expired@example.com');
      await register({ slug: 'expired', email: 'expired@example.com', name: 'Other' });
      await call('GET', `/api/verify?token=${await instance.token('expired@example.com')}`);
      return call('GET', `/api/verify?token=${token}`);
    },
    async token_used() {
      await ada.client.me();
      return call('GET', `/api/verify?token=${await instance.token(ada.email)}`);
    },
    precondition_failed: () => publish({ title: 'One', content: 'c' }, { 'if-match': '"0"' }),
    too_large: () => publish({ title: 'One', content: 'x'.repeat(512 * 1024 + 1) }),
    unsupported_media_type: () =>
      publish('title=One', { 'content-type': 'application/x-www-form-urlencoded' }),
    misdirected: () => instance.call('GET', '/api/posts', { host: 'elsewhere.example' }),
    leaked_key: () => publish({ title: 'One', content: bob.key }),
    unrenderable: () => publish({ title: 'One', content: '>'.repeat(60) }),
    async idempotency_mismatch() {
      const post = await published();
      const add = (content: string) =>
        call('POST', `/api/posts/${post}/comments`, { content }, ada.key, { 'idempotency-key': 'same' });
      assertOk(await add('one'), 201);
      return add('two');
    },
    async rate_limited() {
      let answer = await register({ email: '' });
      for (let i = 0; i < 60 && answer.status !== 429; i++) answer = await register({ email: '' });
      instance.clock.advance(3_600_000);
      return answer;
    },
    async withheld() {
      const postId = await published();
      const to = { state: 'hidden', reason: 'Forged papers.' } as const;
      await instance.ctx().engine.write(moderatePost, { postId, to });
      return call('GET', `/api/posts/${postId}`);
    },
    internal_error: () => failingWith(() => Promise.reject(new Error('SQLITE_OOPS at src/x.ts'))),
    unavailable: () => failing('unavailable'),
    read_only: () => failing('read_only'),
    storage_full: () => failing('storage_full'),
  };

  test('is one that the client knows', () => {
    assert.deepEqual([...errorCodes].toSorted(), Object.keys(catalogue).toSorted());
  });

  for (const code of errorCodes) {
    test(`is answered where it belongs: ${code}`, async () => {
      const answer = assertProblem(await produce[code](), code);
      assert.ok(!answer.text.includes(ada.key));
      if ([429, 503, 507].includes(answer.status))
        assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
      if (answer.status === 401)
        assert.match(
          String(answer.headers['www-authenticate']),
          /^Bearer realm="masthead"(?:, error="invalid_token")?$/,
        );
    });
  }
});

describe('a service that cannot write', () => {
  test('goes on reading: with a key, a new one too, and without', async (t) => {
    const instance = await startInstance();
    const { key, client } = await instance.agent('Ada');
    const { post } = await client.publish({ title: 'T', content: 'c', status: 'published' });
    const fresh = (await client.regenerateKey()).apiKey;
    await client.recover('ada@example.com');
    const { apiKey: unused } = await client.confirmRecovery(await instance.token('ada@example.com'));
    const door = await openDoor(instance, {
      engine: {
        ...instance.ctx().engine,
        write: () => Promise.reject(new AppError('storage_full', 'The disk is full.', { retryAfter: 5 })),
      },
    });
    t.after(() => door.close().then(() => instance.close()));
    for (const path of ['/api/posts', `/api/posts/${post.id}`, '/api/blogs', '/healthz', '/readyz'])
      assert.equal((await door.call('GET', path)).status, 200, path);
    for (const path of ['/api/me', '/api/posts', '/api/limits'])
      assertOk(await door.call('GET', path, undefined, { authorization: `Bearer ${unused}` }));
    for (const old of [key, fresh])
      assertProblem(
        await door.call('GET', '/api/me', undefined, { authorization: `Bearer ${old}` }),
        'unauthorized',
      );
    const refused = await door.call(
      'POST',
      '/api/publish',
      { title: 'T' },
      { authorization: `Bearer ${unused}` },
    );
    assert.equal(assertProblem(refused, 'storage_full').headers['retry-after'], '5');
  });

  test('by the operator’s wish answers 503 read_only to every change', async (t) => {
    const instance = await startInstance();
    t.after(() => instance.close());
    const { key, client } = await instance.agent('Ada');
    const { post } = await client.publish({ title: 'T', content: 'c', status: 'published' });
    await instance.restart({ READ_ONLY: 'on' });
    for (const [method, path, body] of [
      ['POST', '/api/register', { email: 'b@example.com', name: 'B', slug: 'bob' }],
      ['POST', '/api/publish', { title: 'T', content: 'new' }],
      ['PATCH', `/api/posts/${post.id}`, { title: 'N' }],
      ['DELETE', `/api/posts/${post.id}`, undefined],
      ['POST', `/api/posts/${post.id}/vote`, { vote: 1 }],
      ['POST', '/api/regenerate-key', undefined],
      ['POST', '/api/recover', { email: 'ada@example.com' }],
      ['DELETE', '/api/me', undefined],
    ] as const) {
      const answer = await instance.call(method, path, { key, ...(body ? { body } : {}) });
      assert.equal(assertProblem(answer, 'read_only').headers['retry-after'], '60');
    }
    assert.equal((await instance.client(key).getPost(post.id)).post.content, 'c');
    assert.equal((await instance.call('GET', '/readyz')).at('writable'), false);
    assertOk(
      await instance.call('POST', '/api/publish?dryRun=true', { key, body: { title: 'T', content: 'new' } }),
    );
  });
});

test('a call without a working key is refused before its body is read', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const { key } = await instance.agent('Ada');
  for (const [method, path] of [
    ['POST', '/api/publish'],
    ['PATCH', '/api/posts/x'],
    ['PATCH', '/api/me'],
    ['POST', '/api/posts/x/comments'],
  ] as const) {
    assertProblem(await instance.call(method, path, { body: '{' }), 'unauthorized');
    assertProblem(await instance.call(method, path, { body: '{', key }), 'invalid_json');
  }
});

test('an unforeseen failure is logged under the id that the answer has', async (t) => {
  const instance = await startInstance();
  const door = await openDoor(instance, {
    engine: { ...instance.ctx().engine, write: () => Promise.reject(new Error('unheard of')) },
  });
  t.after(() => door.close().then(() => instance.close()));
  const answer = await door.call('POST', '/api/recover', { email: 'a@example.com' });
  assertProblem(answer, 'internal_error');
  const line =
    instance
      .log()
      .split('\n')
      .find((text) => text.includes('unheard of')) ?? '';
  assert.ok(line.includes(`"requestId":"${String(answer.at('requestId'))}"`));
});

test('a request that is not HTTP is answered with a whole problem', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const answer = await rawRequest(instance.port, 'GET / HTTP/1.1\r\nno colon\r\n\r\n');
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\n/);
  const problem: { code: string; type: string; errors: unknown[]; requestId: string } = JSON.parse(body);
  assert.equal(problem.code, 'invalid_input');
  assert.match(problem.type, /\/problems\/invalid_input$/);
  assert.equal(problem.errors.length, 1);
  assert.ok(head.includes(`X-Request-Id: ${problem.requestId}`));
});

test('a connection whose request cannot be read is closed, though the client keeps its side open', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const socket = connect({ port: instance.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined).resume();
  socket.write('X\r\n\r\n');
  await once(socket, 'end');
  // Whatever is written to a connection that is gone is answered with a reset.
  const timer = setInterval(() => socket.write('more'), 20);
  await new Promise((resolve) => socket.on('close', resolve));
  clearInterval(timer);
});
