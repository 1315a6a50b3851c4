import assert from 'node:assert/strict';
import { test } from 'node:test';

import { catalogue } from '../../src/errors.ts';
import type { ErrorCode as ServiceErrorCode } from '../../src/errors.ts';
import { retryAfterSeconds } from '../src/errors.ts';
import { createClient, errorCodes, MastheadConnectionError, MastheadError } from '../src/index.ts';
import type { ErrorCode, MastheadClient } from '../src/index.ts';
import { pause } from '../src/transport.ts';
import { begin, cut, drop, hang, problem, scripted } from './scripted-server.ts';
import type { Step } from './scripted-server.ts';

const id = '0198c0de-0000-7000-8000-000000000001';
const ok: Step = { json: { success: true, apiKey: 'key-2' } };

test('the codes are those of the service, in type and in value', () => {
  const same: [ErrorCode, ServiceErrorCode] extends [ServiceErrorCode, ErrorCode] ? true : false = true;
  assert(same);
  assert.deepEqual(new Set<string>(errorCodes), new Set(Object.keys(catalogue)));
});

test('a failure carries all that the service says of it', async (t) => {
  const errors = [{ field: 'slug', message: 'is taken' }];
  const { client } = await scripted(t, [
    problem(409, 'slug_taken', { errors: [...errors, 'nonsense', null], hint: 'Choose another.' }),
  ]);
  await assert.rejects(client.publish({ slug: 'x' }), (error) => {
    assert(error instanceof MastheadError);
    const { code, status, detail, message, hint, retryable, requestId, retryAfter, cause } = error;
    assert.deepEqual(
      { code, status, detail, message, errors: error.errors, hint, retryable, requestId, retryAfter, cause },
      {
        code: 'slug_taken',
        status: 409,
        detail: 'detail of slug_taken',
        message: 'detail of slug_taken',
        errors,
        hint: 'Choose another.',
        retryable: false,
        requestId: 'r-1',
        retryAfter: null,
        cause: undefined,
      },
    );
    return true;
  });
});

const foreign: readonly (readonly [string, Step, number])[] = [
  ["a proxy's page", { status: 403, text: '<h1>Forbidden</h1>', headers: { 'x-request-id': 'r-2' } }, 403],
  ["a portal's page in place of a success", { status: 200, text: '<h1>Log in</h1>' }, 200],
  ['a success that is no object', { status: 200, json: ['x'] }, 200],
  ['an empty failure', { status: 404, text: '' }, 404],
  ['a failure of a code that is not known here', problem(418, 'teapot'), 418],
  ['a redirect', { status: 308, headers: { location: 'http://127.0.0.1:1/' } }, 308],
];

for (const [name, step, status] of foreign) {
  test(`${name} is an error of code unknown, and not asked for again`, async (t) => {
    const { client, seen } = await scripted(t, [step]);
    await assert.rejects(client.me(), (error) => {
      assert(error instanceof MastheadError);
      assert.deepEqual([error.code, error.status, error.retryable], ['unknown', status, false]);
      assert.notEqual(error.message, '');
      return true;
    });
    assert.equal(seen.length, 1);
  });
}

test('a redirect is not followed, so the key stays with the base address', async (t) => {
  const elsewhere = await scripted(t, [ok]);
  const { client } = await scripted(t, [
    { status: 307, headers: { location: `${elsewhere.baseUrl}/api/me` } },
  ]);
  await assert.rejects(client.me(), { code: 'unknown', status: 307 });
  assert.deepEqual(elsewhere.seen, []);
});

type Case = {
  readonly name: string;
  readonly call: (client: MastheadClient) => Promise<unknown>;
  readonly afterLoss: boolean;
};

const writes: readonly Case[] = [
  { name: 'publish', call: (c) => c.publish({ slug: 'x' }), afterLoss: true },
  { name: 'publishMarkdown', call: (c) => c.publishMarkdown('# x'), afterLoss: true },
  { name: 'updatePost', call: (c) => c.updatePost(id, {}), afterLoss: true },
  { name: 'deletePost', call: (c) => c.deletePost(id), afterLoss: true },
  { name: 'vote', call: (c) => c.vote(id, 1), afterLoss: true },
  { name: 'register', call: (c) => c.register({ email: 'a@b.example', name: 'A' }), afterLoss: true },
  { name: 'addComment', call: (c) => c.addComment(id, 'x'), afterLoss: true },
  { name: 'verify', call: (c) => c.verify('t'), afterLoss: true },
  { name: 'confirmRecovery', call: (c) => c.confirmRecovery('t'), afterLoss: true },
  { name: 'recover', call: (c) => c.recover('a@b.example'), afterLoss: false },
  { name: 'regenerateKey', call: (c) => c.regenerateKey(), afterLoss: false },
  { name: 'deleteMe', call: (c) => c.deleteMe(), afterLoss: false },
  { name: 'restoreRevision', call: (c) => c.restoreRevision(id, 1), afterLoss: true },
  {
    name: 'restoreRevision with ifMatch',
    call: (c) => c.restoreRevision(id, 1, { ifMatch: '"1"' }),
    afterLoss: false,
  },
  { name: 'updateMe', call: (c) => c.updateMe({ bio: 'x' }), afterLoss: true },
  {
    name: 'updateMe with ifMatch',
    call: (c) => c.updateMe({ bio: 'x' }, { ifMatch: '"1"' }),
    afterLoss: false,
  },
];

const losses: readonly (readonly [string, Step])[] = [
  ['a dropped connection', drop],
  ['half an answer', cut],
  ["a gateway's 502", { status: 502, text: '<h1>Bad gateway</h1>' }],
  ['a body that arrives too late', { status: 408, text: '' }],
  ["a proxy's own 503", { status: 503, text: '<h1>Unavailable</h1>' }],
];

for (const { name, call, afterLoss } of writes) {
  for (const [loss, step] of losses) {
    test(`${name} is ${afterLoss ? 'repeated alike' : 'not repeated'} after ${loss}`, async (t) => {
      const { client, seen } = await scripted(t, [step, ok]);
      if (afterLoss) await call(client);
      else
        await assert.rejects(
          call(client),
          (error) => error instanceof Error && !(error instanceof TypeError),
        );
      assert.equal(seen.length, afterLoss ? 2 : 1);
      if (afterLoss) assert.equal(seen[1]?.body, seen[0]?.body);
    });
  }

  test(`${name} is repeated when the service says that it did nothing`, async (t) => {
    const { client, seen } = await scripted(t, [
      problem(429, 'rate_limited'),
      problem(503, 'unavailable'),
      ok,
    ]);
    await call(client);
    assert.equal(seen.length, 3);
  });
}

test('calls that add something carry one idempotency key through all attempts, and another the next time', async (t) => {
  const { client, seen } = await scripted(t, [drop, problem(409, 'in_progress'), ok, ok]);
  await client.addComment(id, 'x');
  await client.addComment(id, 'x');
  const keys = seen.map(({ headers }) => headers['idempotency-key']);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.deepEqual(keys.slice(0, 3), [keys[0], keys[0], keys[0]]);
  assert.notEqual(keys[3], keys[0]);
});

test('a refusal after a lost answer tells of the loss', async (t) => {
  const { client } = await scripted(t, [drop, problem(503, 'unavailable'), problem(404, 'not_found')]);
  await assert.rejects(
    client.deletePost(id),
    (error) =>
      error instanceof MastheadError &&
      error.code === 'not_found' &&
      error.cause instanceof MastheadConnectionError,
  );
});

const answers: readonly (readonly [number, string, boolean])[] = [
  [409, 'in_progress', true],
  [429, 'rate_limited', true],
  [503, 'unavailable', true],
  [503, 'read_only', true],
  [507, 'storage_full', true],
  [400, 'invalid_input', false],
  [401, 'unauthorized', false],
  [409, 'slug_taken', false],
  [412, 'precondition_failed', false],
  [500, 'internal_error', false],
];

for (const [status, code, repeated] of answers) {
  test(`${status} ${code} is ${repeated ? 'repeated' : 'thrown at once'}`, async (t) => {
    const { client, seen } = await scripted(t, [problem(status, code), ok]);
    if (repeated) await client.me();
    else await assert.rejects(client.me(), { code });
    assert.equal(seen.length, repeated ? 2 : 1);
  });
}

test('it gives up after the attempts that are set, with the last failure', async (t) => {
  const { client, seen, pauses } = await scripted(
    t,
    [drop, drop, problem(503, 'read_only'), problem(503, 'unavailable')],
    { retry: { attempts: 3 } },
  );
  await assert.rejects(client.me(), { code: 'read_only' });
  assert.equal(seen.length, 3);
  assert.equal(pauses.length, 2);
});

test('health and ready say what is so now, and are not repeated', async (t) => {
  const { client, seen } = await scripted(t, [problem(503, 'unavailable'), problem(503, 'unavailable')]);
  await assert.rejects(client.health(), { code: 'unavailable' });
  await assert.rejects(client.ready(), { code: 'unavailable' });
  assert.equal(seen.length, 2);
});

test('pauses grow to their bound, and lie anywhere in the upper half below it', async (t) => {
  t.mock.method(Math, 'random', () => 0.5);
  const { client, pauses } = await scripted(t, [drop, drop, drop, drop, ok], {
    retry: { attempts: 5, baseDelay: 100, maxDelay: 350 },
  });
  await client.me();
  assert.deepEqual(pauses, [75, 150, 262.5, 262.5]);
});

test('the usual attempts outlast a restart of half a minute at most, and of 15 seconds at least', async (t) => {
  for (const [random, total] of [
    [0, 15_750],
    [1, 31_500],
  ] as const) {
    t.mock.method(Math, 'random', () => random);
    const { client, pauses } = await scripted(t, [drop, drop, drop, drop, drop, drop, ok]);
    await client.me();
    assert.equal(
      pauses.reduce((sum, each) => sum + each, 0),
      total,
    );
  }
});

test('Retry-After is waited for, with a little more so that not all come back at once', async (t) => {
  t.mock.method(Math, 'random', () => 0.5);
  const { client, pauses } = await scripted(t, [
    { status: 429, headers: { 'retry-after': '7' }, json: { code: 'rate_limited' } },
    { status: 503, headers: { 'retry-after': '0' }, json: { code: 'unavailable' } },
    ok,
  ]);
  await client.me();
  assert.deepEqual(pauses, [7250, 250]);
});

test('a Retry-After beyond the longest wait is thrown at once', async (t) => {
  const { client, seen } = await scripted(
    t,
    [{ status: 429, headers: { 'retry-after': '61' }, json: { code: 'rate_limited', error: 'Wait.' } }],
    { retry: { maxWait: 60_000 } },
  );
  await assert.rejects(client.me(), { code: 'rate_limited', retryAfter: 61, message: 'Wait.' });
  assert.equal(seen.length, 1);
});

test('Retry-After is read as seconds or as a date', () => {
  const now = Date.parse('2026-01-01T00:00:00.500Z');
  assert.equal(retryAfterSeconds('120', now), 120);
  assert.equal(retryAfterSeconds('Thu, 01 Jan 2026 00:01:00 GMT', now), 60);
  assert.equal(retryAfterSeconds('Thu, 01 Jan 2015 00:00:00 GMT', now), 0);
  assert.equal(retryAfterSeconds('-1x', now), null);
  assert.equal(retryAfterSeconds('soon', now), null);
  assert.equal(retryAfterSeconds(null, now), null);
});

test('an attempt may take longer than timers can wait', async (t) => {
  const { client } = await scripted(t, [ok]);
  const set = t.mock.method(globalThis, 'setTimeout');
  await client.me({ timeout: 2 ** 40 });
  const waits = set.mock.calls.map(({ arguments: [, milliseconds] }) => milliseconds ?? 0);
  assert.equal(Math.max(...waits), 2 ** 31 - 1);
});

test('an attempt that takes too long is lost, and repeated', async (t) => {
  const { client, seen } = await scripted(t, [hang, ok, ok]);
  await client.me({ timeout: 500 });
  // On a busy machine the second may take too long as well.
  assert.ok(seen.length >= 2);
});

test('an attempt whose body never ends is lost too, and says so without the token', async (t) => {
  const { client } = await scripted(t, [begin], { timeout: 20, retry: { attempts: 1 } });
  await assert.rejects(client.verify('secret-token'), (error) => {
    assert(error instanceof MastheadConnectionError);
    assert.equal(error.message, 'GET /api/verify got no answer: not complete within 20 ms');
    assert(error.cause instanceof DOMException);
    return true;
  });
});

test('an aborted call is not sent; one aborted under way or between attempts ends with the reason', async (t) => {
  const reason = new Error('enough');
  const before = await scripted(t, [ok]);
  await assert.rejects(before.client.me({ signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(before.seen, []);

  const during = new AbortController();
  const hanging = await scripted(t, [() => during.abort(reason), ok]);
  await assert.rejects(hanging.client.me({ signal: during.signal }), reason);
  assert.equal(hanging.seen.length, 1);

  const between = new AbortController();
  const pausing = await scripted(t, [problem(503, 'unavailable'), ok], {
    sleep: async (_, signal) => {
      const hour = pause(3_600_000, signal);
      between.abort(reason);
      return hour;
    },
  });
  await assert.rejects(pausing.client.me({ signal: between.signal }), reason);
  assert.equal(pausing.seen.length, 1);
});

test('a pause ends by itself when nothing aborts it, and does not begin when aborted before', async () => {
  await pause(1, new AbortController().signal);
  const reason = new Error('enough');
  await assert.rejects(pause(3_600_000, AbortSignal.abort(reason)), reason);
});

test('an export is a stream that outlives the timeout of an attempt, and ends with the signal', async (t) => {
  const controller = new AbortController();
  const { client } = await scripted(t, [problem(503, 'unavailable'), begin]);
  const reader = (await client.exportMe({ signal: controller.signal })).body?.getReader();
  assert(reader);
  assert.equal(new TextDecoder().decode((await reader.read()).value), 'begun');
  const rest = reader.read();
  controller.abort(new Error('enough'));
  await assert.rejects(rest);
});

test('a header that cannot be sent is the caller’s fault, and not taken for a lost answer', async (t) => {
  const { client, seen } = await scripted(t, [ok]);
  await assert.rejects(client.publish({ slug: 'x' }, { ifMatch: '"a"\r\nx: y' }), TypeError);
  assert.deepEqual(seen, []);
});

test('the base address is an origin', () => {
  for (const baseUrl of ['https://masthead.example', 'https://masthead.example/', 'http://localhost:3000']) {
    assert(createClient({ baseUrl }));
  }
  for (const baseUrl of [
    'masthead.example',
    'ftp://masthead.example',
    'https://masthead.example/api',
    'https://masthead.example/?x',
    'https://user:secret@masthead.example',
  ]) {
    assert.throws(() => createClient({ baseUrl }), TypeError);
  }
});

test('a fetch of one’s own is used, and gets no more than the platform’s would', async () => {
  const urls: string[] = [];
  const client = createClient({
    baseUrl: 'https://masthead.example',
    userAgent: 'ada/1',
    fetch: async (url, init) => {
      urls.push(url);
      assert.equal(init.redirect, 'manual');
      assert.equal(new Headers(init.headers).get('user-agent'), 'ada/1');
      return Response.json({ success: true });
    },
  });
  await client.health();
  assert.deepEqual(urls, ['https://masthead.example/healthz']);
});
