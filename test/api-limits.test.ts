import assert from 'node:assert/strict';
import { before, beforeEach, describe, test } from 'node:test';
import { Unconfirmed } from '../src/db/database.ts';
import { createRateLimiter } from '../src/services/limits/rate-limiter.ts';
import { countOnly, readWindow } from '../src/services/limits/rate-window.ts';
import { heartbeat, sweep } from '../src/services/upkeep/maintenance.ts';
import { rawRequest, type Answer } from './support/http.ts';
import { whileLocked } from './support/locked.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  engines,
  startInstance,
  type TestAgent,
} from './support/instance.ts';

/** What an answer's headers say of the limit that it counted against; both families must agree. */
function rate({ headers }: Answer) {
  const [, policy, quota] = /^"(\w+)";q=(\d+);w=3600$/.exec(String(headers['ratelimit-policy'])) ?? [];
  const [, same, remaining, reset] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(String(headers['ratelimit'])) ?? [];
  assert.equal(policy, same);
  assert.deepEqual(
    [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], headers['x-ratelimit-reset']],
    [quota, remaining, reset],
  );
  return { policy, quota: Number(quota), remaining: Number(remaining), reset: Number(reset) };
}

describeInstances('the published limits', { env: { LIMIT_REGISTER: '' } }, (the, variant) => {
  const expected =
    variant === 'subdomain'
      ? { register: 60, publish: 600, comment: 120, report: 10, api: 6000, anonymous: 6000 }
      : { register: 5, publish: 100, comment: 0, report: 10, api: 1000, anonymous: 6000 };

  test('count one after the other what several processes count at once', async () => {
    const ctx = the().ctx();
    // SQLite has one writer.
    if (ctx.config.database.engine !== 'postgres') return;
    const count = async () => {
      const ticket = { policy: 'publish', subject: 'raced', quota: 1, rate: null };
      the().clock.advance(1);
      return ctx.engine.write(countOnly, undefined, ticket).then(
        () => 'passed',
        () => 'refused',
      );
    };
    const statement = 'lock table rate_calls in share mode';
    const outcomes = await whileLocked(ctx, { statement, waiting: 2 }, () => [count(), count()]);
    assert.deepEqual(outcomes.toSorted(), ['passed', 'refused']);
  });

  test('stand in the headers of every kind of call', async () => {
    const { key } = await the().agent('Ada');
    const call = (method: string, path: string, body?: unknown, apiKey?: string) =>
      the().call(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(apiKey ? { key: apiKey } : {}),
      });
    for (const [policy, answer] of [
      ['register', await call('POST', '/api/register', {})],
      ['publish', await call('POST', '/api/publish', { title: 'T', content: 'c' }, key)],
      ['publish', await call('POST', '/api/publish', {}, key)],
      ['publish', await call('PATCH', '/api/posts/x', {}, key)],
      ['api', await call('POST', '/api/publish?dryRun=true', { title: 'T', content: 'c' }, key)],
      ['api', await call('GET', '/api/me', undefined, key)],
      ['api', await call('DELETE', '/api/posts/x', undefined, key)],
      ['api', await call('GET', '/api/nothing', undefined, key)],
      ['api', await call('PUT', '/api/me', {}, key)],
      ['anonymous', await call('POST', '/api/publish', {})],
      ['anonymous', await call('GET', '/api/posts', undefined, '3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04')],
      ['anonymous', await call('GET', '/api/verify?token=x')],
      ['anonymous', await call('POST', '/api/recover', '{')],
      ['anonymous', await call('GET', '/api/nothing')],
    ] as const) {
      const { policy: counted, quota } = rate(answer);
      assert.deepEqual([counted, quota], [policy, expected[policy]], answer.text);
    }
  });

  test('are counted on when a count fails for whatever reason', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ctx = the().ctx();
    const failed = new Error('not to be foreseen');
    const [debug, warn] = [t.mock.fn(() => assert.fail(failed)), t.mock.fn()];
    const write = () => Promise.reject(failed);
    const failing = { ...ctx, engine: { ...ctx.engine, write }, log: { ...ctx.log, debug, warn } };
    const limiter = createRateLimiter(failing, () => 1);
    const count = () => limiter.count('anonymous', 'failing', 1_000_000);
    await count();
    t.mock.timers.tick(1_000);
    while (warn.mock.callCount() === 0) await new Promise(setImmediate);
    assert.equal((await count()).remaining, 999_998);
    debug.mock.mockImplementation(() => undefined as never);
    await limiter.close();
  });

  test('leave the window an hour after they were counted, to the moment, where nothing can be written', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ctx = the().ctx();
    let now = ctx.now();
    const write = () => Promise.reject(new Error('read-only'));
    const limiter = createRateLimiter({ ...ctx, now: () => now, engine: { ...ctx.engine, write } }, () => 1);
    const count = async () => (await limiter.count('anonymous', 'unwritten', 1_000_000)).remaining;
    assert.equal(await count(), 999_999);
    now += 3_600_000 - 1;
    assert.equal(await count(), 999_998);
    now += 1;
    assert.equal(await count(), 999_999);
    await limiter.close();
  });

  test('count no call twice where the database may have stored it and did not say so', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ctx = the().ctx();
    const write: typeof ctx.engine.write = async (...call) => {
      await ctx.engine.write(...call);
      throw new Unconfirmed();
    };
    const limiter = createRateLimiter({ ...ctx, engine: { ...ctx.engine, write } }, () => 1);
    // Each is stored at once: one is a hundredth of the limit.
    for (let n = 0; n < 3; n++) await limiter.count('anonymous', 'unconfirmed', 100);
    await limiter.close();
    assert.equal((await readWindow(ctx, 'anonymous', 'unconfirmed')).used, 3);
  });

  test('have those too that come while others are written', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const ctx = the().ctx();
    const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const write: typeof ctx.engine.write = async (...call) => {
      begun.resolve();
      await goOn.promise;
      return ctx.engine.write(...call);
    };
    const limiter = createRateLimiter({ ...ctx, engine: { ...ctx.engine, write } }, () => 1);
    const count = () => limiter.count('anonymous', 'meanwhile', 1_000_000);
    await count();
    t.mock.timers.tick(1_000);
    await begun.promise;
    await count();
    goOn.resolve();
    await limiter.close();
    assert.equal((await readWindow(ctx, 'anonymous', 'meanwhile')).used, 2);
  });
});

for (const engine of engines) {
  describe(`publishing 101 times in an hour (path, ${engine})`, () => {
    test('passes 100 times, then once after Retry-After, also across a restart', async (t) => {
      const instance = await startInstance({ engine, variant: 'path' });
      t.after(() => instance.close());
      const { clock } = instance;
      const { key, client } = await instance.agent('Ada');
      const publish = (content: string) =>
        instance.call('POST', '/api/publish', { key, body: { slug: 'p', title: 'P', content } });
      clock.freeze();
      for (let i = 1; i <= 100; i++) {
        const answer = await publish(`${i % 3}`);
        assert.ok(answer.status < 300, `call ${i}: ${answer.text}`);
        assert.deepEqual(rate(answer), {
          policy: 'publish',
          quota: 100,
          remaining: 100 - i,
          reset: 3600 - (i - 1),
        });
        clock.advance(1000);
      }
      const refused = assertProblem(await publish('x'), 'rate_limited');
      assert.equal(refused.headers['retry-after'], '3500');
      assert.deepEqual(rate(refused), { policy: 'publish', quota: 100, remaining: 0, reset: 3500 });

      await instance.restart();
      for (const [ms, seconds] of [
        [3500 * 1000 - 1_001, '2'],
        [1, '1'],
        [999, '1'],
      ] as const) {
        clock.advance(ms);
        assert.equal(assertProblem(await publish('x'), 'rate_limited').headers['retry-after'], seconds);
      }
      clock.advance(1);
      assertOk(await publish('after'));
      assert.equal(assertProblem(await publish('x'), 'rate_limited').headers['retry-after'], '1');
      assert.equal(
        (await client.getPost((await client.listPosts()).posts[0]?.id ?? '')).post.content,
        'after',
      );
    });
  });
}

describeInstances(
  'a clock that was ahead or is put back',
  {
    env: {
      LIMIT_PUBLISH: '3',
      LIMIT_API: '9',
      LIMIT_ANONYMOUS: '4',
      LIMIT_REGISTER: '2',
      TRUST_PROXY: 'loopback',
    },
  },
  (the) => {
    const day = 24 * 3_600_000;
    /** Calls of every policy, and how many of each pass. */
    const calls = (key: string, from: string): readonly (readonly [number, () => Promise<Answer>])[] => {
      const headers = { 'x-forwarded-for': from };
      return [
        [3, () => the().call('POST', '/api/publish', { key, body: {}, headers })],
        [9, () => the().call('GET', '/api/me', { key, headers })],
        [4, () => the().call('GET', '/api/verify?token=x', { headers })],
        [2, () => the().call('POST', '/api/register', { body: {}, headers })],
      ];
    };
    /** Asserts that as many calls pass as the limit allows, and that Retry-After then says when the next will. */
    const assertWhole = async (key: string, from: string) => {
      for (const [most, call] of calls(key, from)) {
        for (let n = 1; n <= most; n++) {
          const answer = await call();
          assert.notEqual(answer.status, 429, `call ${n} of ${most}`);
          assert.ok(rate(answer).reset <= 3600);
        }
        const wait = Number(assertProblem(await call(), 'rate_limited').headers['retry-after']);
        assert.ok(wait > 0 && wait <= 3600, `${wait} s`);
        assert.equal(rate(await call()).reset, wait);
      }
    };

    for (const [name, ahead] of [
      ['two minutes', 120_000],
      ['two days', 2 * day],
      ['a year', 365 * day],
    ] as const) {
      test(`by ${name} locks nobody out, however often`, async () => {
        const { clock } = the();
        const { key } = await the().agent(`Clock-${ahead}`);
        const from = `203.0.113.${ahead % 251}`;
        clock.advance(day);
        clock.freeze();
        for (let round = 0; round < 2; round++) {
          clock.advance(ahead);
          await assertWhole(key, from);
          clock.advance(-ahead);
          await assertWhole(key, from);
          clock.advance(3_600_000);
        }
        const late = the()
          .ctx()
          .db.selectFrom('rate_calls')
          .select('subject')
          .where('at', '>', clock.now() + 60_000);
        await the().ctx().engine.write(sweep, null);
        assert.deepEqual(await late.execute(), []);
      });
    }

    test('by a day locks nobody out, though nothing was stored since', async () => {
      const { clock } = the();
      const { key } = await the().agent('Idle');
      const [publish] = calls(key, '203.0.113.8');
      assert.ok(publish);
      const isRefused = async () => (await publish[1]()).status === 429;
      clock.advance(day);
      while (!(await isRefused()));
      // What was counted has been read once more since the last of it was stored.
      assert.ok(await isRefused());
      clock.advance(-day);
      assert.equal(await isRefused(), false);
      clock.advance(day);
    });

    test('by a day forgets of one limit what was counted ahead, and of another nothing', async () => {
      const { clock } = the();
      const ctx = the().ctx();
      const count = (policy: string) =>
        ctx.engine.write(countOnly, undefined, { policy, subject: 'both', quota: 5, rate: null });
      clock.advance(day);
      await count('publish');
      await count('comment');
      clock.advance(-day);
      await count('publish');
      clock.advance(day);
      const used = async (policy: string) => (await readWindow(ctx, policy, 'both')).used;
      assert.deepEqual([await used('publish'), await used('comment')], [0, 1]);
    });

    test('by seconds forgets no call', async () => {
      const { clock } = the();
      const { key } = await the().agent('Slewed');
      clock.advance(day);
      await assertWhole(key, '203.0.113.9');
      clock.advance(-30_000);
      for (const [, call] of calls(key, '203.0.113.9')) {
        const wait = Number(assertProblem(await call(), 'rate_limited').headers['retry-after']);
        assert.ok(wait > 3590 && wait <= 3600, `${wait} s`);
      }
    });
  },
);

describeInstances(
  'counting',
  {
    env: {
      LIMIT_PUBLISH: '10',
      LIMIT_API: '20',
      LIMIT_ANONYMOUS: '20',
      LIMIT_REGISTER: '4',
      TRUST_PROXY: 'loopback',
    },
  },
  (the, variant) => {
    let ada: TestAgent;
    before(async () => {
      ada = await the().agent('Ada');
    });
    beforeEach(() => the().clock.advance(3_600_001));
    const publish = (body: unknown) => the().call('POST', '/api/publish', { key: ada.key, body });
    const anonymous = (forwarded: string, path = '/api/verify?token=x') =>
      the().call('GET', path, { headers: { 'x-forwarded-for': forwarded } });

    test('takes in malformed calls, not refused ones', async () => {
      for (const body of [{}, '{', { title: 'T' }, 'x'.repeat(5 * 1024 * 1024)])
        assert.ok((await publish(body)).status >= 400);
      assert.equal(rate(await publish({ title: 'T', content: 'c' })).remaining, 5);
      for (let i = 0; i < 5; i++) await publish({ slug: 't' });
      for (let i = 0; i < 3; i++) assertProblem(await publish({ slug: 't' }), 'rate_limited');
      const limits = (await ada.client.limits()).limits;
      assert.equal(limits.find(({ policy }) => policy === 'publish')?.remaining, 0);
    });

    test('of dry runs goes on when nothing more may be published, however they are asked for', async () => {
      const { post } = await ada.client.publish({ title: 'Last', content: 'c' });
      for (let i = 0; i < 9; i++) assertOk(await publish({ slug: 'last' }));
      const ask = async (method: string, path: string, body: unknown, type = 'application/json') =>
        the().call(method, path, { key: ada.key, body, headers: { 'content-type': type } });
      const one = `/api/posts/${post.id}`;
      const note = (field: string) => `---\ntitle: Noted\n${field}\n---\n\nText.`;
      const dryRuns: readonly Parameters<typeof ask>[] = [
        ['POST', '/api/publish?dryRun=true', { slug: 'last' }],
        ['POST', '/api/publish', { slug: 'last', dryRun: true }],
        ['POST', '/api/posts', { slug: 'last', dry_run: true }],
        ['PATCH', one, { title: 'Other', dryRun: true }],
        ['PATCH', one, { append: 'more', 'dry-run': true }],
        ['POST', '/api/publish', note('dryRun: true'), 'text/markdown'],
        ['PATCH', `${one}?dryRun=true`, note('status: published'), 'text/markdown'],
      ];
      for (const dryRun of dryRuns) {
        const answer = assertOk(await ask(...dryRun));
        assert.deepEqual([answer.at('dryRun'), rate(answer).policy], [true, 'api'], dryRun[1]);
      }
      const faulty: readonly Parameters<typeof ask>[] = [
        ['POST', '/api/publish', { title: '', content: 'c', dryRun: true }],
        ['PATCH', one, { title: 7, dry_run: true }],
        ['POST', '/api/publish', note('lang: 7\ndryRun: true'), 'text/markdown'],
      ];
      for (const call of faulty) {
        const answer = assertProblem(await ask(...call), 'invalid_input');
        assert.equal(rate(answer).policy, 'api', JSON.stringify(call));
      }
      const large = 'x'.repeat(64 * 1024);
      const refused: readonly Parameters<typeof ask>[] = [
        ['POST', '/api/publish', { slug: 'last' }],
        ['POST', '/api/publish', { slug: 'last', dryRun: false }],
        ['POST', '/api/publish?dryRun=false', { slug: 'last', dryRun: true }],
        ['POST', '/api/publish', { slug: 'last', content: large }],
        ['POST', '/api/publish', { slug: 'last', content: large, dryRun: true }],
        ['PATCH', one, { nothing: 'known' }],
        ['PATCH', one, undefined],
        ['POST', '/api/publish', '{'],
        ['POST', '/api/publish', 'a=b', 'application/x-www-form-urlencoded'],
        ['POST', '/api/publish', note('status: published'), 'text/markdown'],
        ['POST', `${one}/restore`, undefined],
      ];
      for (const call of refused) {
        const answer = assertProblem(await ask(...call), 'rate_limited');
        assert.equal(rate(answer).policy, 'publish', JSON.stringify(call).slice(0, 99));
      }
      assert.deepEqual([(await ada.client.getPost(post.id)).post.title, dryRuns.length], ['Last', 7]);
      const left = rate(assertOk(await ask('GET', one, undefined))).remaining;
      assert.equal(left, 20 - dryRuns.length - faulty.length - 2);
      for (let i = 0; i < left; i++) assertOk(await ask('GET', one, undefined));
      for (const [method, path, ...sent] of [...dryRuns, ...faulty])
        assertProblem(await ask(method, path, ...sent), 'rate_limited');
    });

    test('takes in calls that cannot be routed', async () => {
      const { port } = the();
      const from = 'X-Forwarded-For: 203.0.113.77';
      const hosts = `Host: localhost:${port}\r\nHost: localhost:${port}`;
      const left = async () => rate(await anonymous('203.0.113.77')).remaining;
      const atFirst = await left();
      for (const [line, expected] of [
        [`GET /api/posts/%zz HTTP/1.1\r\nHost: localhost:${port}`, 400],
        [`GET /api/posts/${'x'.repeat(501)} HTTP/1.1\r\nHost: localhost:${port}`, 404],
        [`GET /api/limits HTTP/1.1\r\n${hosts}`, 400],
        ['GET /api/limits HTTP/1.1\r\nHost: a b', 400],
      ] as const) {
        const answer = await rawRequest(port, `${line}\r\n${from}\r\nConnection: close\r\n\r\n`);
        assert.ok(answer.startsWith(`HTTP/1.1 ${expected} `), answer);
        assert.match(answer, /^ratelimit: "anonymous"/im);
      }
      assert.equal(await left(), atFirst - 5);
    });

    test('is exact when calls come at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 25 }, (_, i) => publish({ title: `T ${i}`, content: 'c' })),
      );
      const passed = answers.filter(({ status }) => status === 201);
      assert.equal(passed.length, 10);
      assert.deepEqual(
        passed.map((answer) => rate(answer).remaining).toSorted((a, b) => a - b),
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      );
      for (const answer of answers) if (answer.status !== 201) assertProblem(answer, 'rate_limited');
    });

    test('has one count for publishing and changing, and another for dry runs and the rest', async () => {
      const { post } = await ada.client.publish({ title: 'Counted', content: 'c' });
      await ada.client.updatePost(post.id, { title: 'Again' });
      assert.equal(rate(await publish({ slug: 'counted' })).remaining, 7);
      // A repeat is another write, which looks for the earlier answer.
      const edit = { key: ada.key, body: { append: 'd' }, headers: { 'idempotency-key': 'edit' } };
      for (const remaining of [6, 5])
        assert.equal(
          rate(assertOk(await the().call('PATCH', `/api/posts/${post.id}`, edit))).remaining,
          remaining,
        );
      assert.equal(rate(await publish({ slug: 'counted' })).remaining, 4);
      const dry = await the().call('POST', '/api/publish?dryRun=true', {
        key: ada.key,
        body: { slug: 'counted' },
      });
      assert.deepEqual([rate(dry).policy, dry.at('limit.remaining')], ['api', 4]);
    });

    test('passes 20 of 21 calls with a key, and other keys are not in the way', async () => {
      const bob = await the().agent(`Bob${Math.floor(the().clock.now() / 1000)}`);
      const me = (key: string) => the().call('GET', '/api/me', { key });
      for (let i = 0; i < 20; i++) assert.equal(rate(assertOk(await me(ada.key))).remaining, 19 - i);
      const refused = assertProblem(await me(ada.key), 'rate_limited');
      assert.equal(Number(refused.headers['retry-after']), rate(refused).reset);
      assertOk(await me(bob.key));
      the().clock.advance(3_600_000);
      assertOk(await me(ada.key));
    });

    test('counts IPv4 by address, IPv6 by /64, and mapped IPv4 as IPv4', async () => {
      const left = async (address: string) => rate(await anonymous(address)).remaining;
      assert.equal(await left('192.0.2.1'), 19);
      assert.equal(await left('192.0.2.2'), 19);
      assert.equal(await left('::ffff:192.0.2.1'), 18);
      assert.equal(await left('2001:db8:1:2:3::4'), 19);
      assert.equal(await left('2001:db8:1:2:ffff::'), 18);
      assert.equal(await left('2001:db8:1:3::4'), 19);
      // What the client itself wrote stands left of what the proxy saw.
      assert.equal(await left('198.51.100.9, 192.0.2.1'), 17);
    });

    test('leaves out preflights, probes and other hosts', async () => {
      const probe = () => anonymous('203.0.113.5');
      assert.equal(rate(await probe()).remaining, 19);
      for (const [method, path, host] of [
        ['OPTIONS', '/api/publish', undefined],
        ['GET', '/healthz', undefined],
        ['GET', '/readyz', undefined],
        ['GET', '/api/posts', 'elsewhere.example'],
      ] as const) {
        const answer = await the().call(method, path, {
          headers: { 'x-forwarded-for': '203.0.113.5' },
          ...(host ? { host } : {}),
        });
        assert.equal(answer.headers['ratelimit'], undefined, path);
      }
      assert.equal(rate(await probe()).remaining, 18);
    });

    test('of registrations goes by client address; a replayed one counts', async () => {
      const register = (address: string, body: unknown = {}) =>
        the().call('POST', '/api/register', {
          body,
          headers: { 'x-forwarded-for': address, 'idempotency-key': 'same' },
        });
      const body = {
        email: 'reg@example.com',
        name: 'Reg',
        ...(variant === 'subdomain' ? { slug: 'reg' } : {}),
      };
      assertOk(await register('192.0.2.7', body));
      assert.equal(assertOk(await register('192.0.2.7', body)).headers['idempotent-replayed'], 'true');
      assertProblem(await register('192.0.2.7'), 'invalid_input');
      assertProblem(await register('192.0.2.7', '{'), 'invalid_json');
      assertProblem(await register('192.0.2.7', body), 'rate_limited');
      assertProblem(await register('192.0.2.8'), 'invalid_input');
    });
  },
);

const plenty = { LIMIT_REGISTER: '1000', LIMIT_PUBLISH: '1000', LIMIT_COMMENT: '1000', LIMIT_REPORT: '1000' };

describeInstances('exact limits', { env: plenty }, (the, variant) => {
  test('are counted by the call itself, so that all processes know at once', async () => {
    const { key } = await the().agent('Ada');
    const stored = async (policy: string) => {
      const rows = the().ctx().db.selectFrom('rate_calls').select('units').where('policy', '=', policy);
      return (await rows.execute()).reduce((sum, { units }) => sum + units, 0);
    };
    for (const [policy, path] of [
      ['register', '/api/register'],
      ['publish', '/api/publish'],
      ['report', '/api/reports'],
      ...(variant === 'subdomain' ? [['comment', '/api/posts/none/comments'] as const] : []),
    ] as const) {
      const earlier = await stored(policy);
      assert.equal(rate(await the().call('POST', path, { key, body: {} })).policy, policy);
      assert.equal(await stored(policy), earlier + 1, policy);
    }
  });

  // The last one: what it stores of other processes stays, and with them everything is counted at once.
  test('let no process keep to itself what it counted where many serve the same database', async () => {
    const { key } = await the().agent('Shared');
    the().clock.freeze();
    // With all of these, a call is more than its process may hold.
    for (let i = 0; i < 100; i++)
      await the()
        .ctx()
        .engine.write(heartbeat, { id: `other-${i}` });
    await the().restart();
    const stored = async () => {
      const rows = the().ctx().db.selectFrom('rate_calls').select('units').where('policy', '=', 'api');
      return (await rows.execute()).reduce((sum, { units }) => sum + units, 0);
    };
    const earlier = await stored();
    assertOk(await the().call('GET', '/api/me', { key }));
    assert.equal(await stored(), earlier + 1);
  });
});

describeInstances('commenting', { env: { LIMIT_COMMENT: '4', LIMIT_API: '10' } }, (the, variant) => {
  let ada: TestAgent;
  let post: string;
  before(async () => {
    ada = await the().agent('Ada');
    post = (await ada.client.publish({ title: 'T', content: 'c', status: 'published' })).post.id;
  });
  const comment = (key: string, body: unknown, headers = {}) =>
    the().call('POST', `/api/posts/${post}/comments`, { key, body, headers });
  const listed = async (key: string) => {
    const { limits } = await the().client(key).limits();
    return limits.find(({ policy }) => policy === 'comment');
  };

  if (variant === 'path') {
    test('has no limit of its own where there are no comments', async () => {
      assert.equal(await listed(ada.key), undefined);
      assert.equal(rate(await comment(ada.key, { content: 'c' })).policy, 'api');
      const { text } = await the().call('GET', '/api/openapi.json');
      assert.ok(!/"policy":"comment"/.test(text));
    });
    return;
  }

  test('counts malformed and repeated calls, each key by itself, over every interface', async () => {
    const bob = await the().agent('Bob');
    the().clock.freeze();
    assert.deepEqual(await listed(bob.key), {
      policy: 'comment',
      limit: 4,
      window: 3600,
      remaining: 4,
      reset: 0,
    });
    assertProblem(await comment(bob.key, {}), 'invalid_input');
    const repeated = { 'idempotency-key': 'k' };
    const first = assertOk(await comment(bob.key, { content: 'one' }, repeated), 201);
    assert.deepEqual(rate(first), { policy: 'comment', quota: 4, remaining: 2, reset: 3600 });
    assert.equal(rate(await comment(bob.key, { content: 'one' }, repeated)).remaining, 1);
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'add_comment', arguments: { post: post, content: 'two' } },
    };
    const mcp = await the().call('POST', '/mcp', {
      key: bob.key,
      body: call,
      headers: { accept: 'application/json, text/event-stream' },
    });
    assert.equal(mcp.headers['ratelimit-policy'], '"comment";q=4;w=3600', mcp.text);
    const refused = assertProblem(await comment(bob.key, { content: 'three' }), 'rate_limited');
    assert.equal(refused.headers['retry-after'], '3600');
    // Reading, deleting and voting go on, and so does everybody else.
    assertOk(await the().call('GET', `/api/posts/${post}/comments`, { key: bob.key }));
    const id = String(first.at('comment.id'));
    assertOk(await the().call('DELETE', `/api/posts/${post}/comments/${id}`, { key: bob.key }));
    assertOk(await the().call('POST', `/api/posts/${post}/vote`, { key: bob.key, body: { vote: 1 } }));
    assertOk(await comment(ada.key, { content: 'mine' }), 201);
    assert.equal(rate(await comment(ada.key, { content: 'mine' })).remaining, 2);
  });

  test('is exact when calls come at once', async () => {
    const carol = await the().agent('Carol');
    const answers = await Promise.all(Array.from({ length: 9 }, () => comment(carol.key, { content: 'c' })));
    const passed = answers.filter(({ status }) => status === 201);
    assert.equal(passed.length, 4);
    for (const answer of answers) if (!passed.includes(answer)) assertProblem(answer, 'rate_limited');
  });
});

describeInstances(
  'limits that are off',
  {
    env: {
      LIMIT_PUBLISH: '0',
      LIMIT_COMMENT: '0',
      LIMIT_REPORT: '0',
      LIMIT_API: '0',
      LIMIT_ANONYMOUS: '0',
    },
  },
  (the) => {
    test('leave no header and no row', async () => {
      const { key, client } = await the().agent('Ada');
      for (const [method, path] of [
        ['GET', '/api/me'],
        ['POST', '/api/publish'],
        ['GET', '/api/verify'],
      ] as const) {
        assert.equal((await the().call(method, path, { key })).headers['ratelimit'], undefined);
      }
      assert.deepEqual((await client.limits()).limits, []);
      assert.equal((await client.publish({ title: 'T', content: 'c' }, { dryRun: true })).limit, null);
      await client.publish({ title: 'T', content: 'c' });
      assert.deepEqual(await the().ctx().db.selectFrom('rate_calls').selectAll().execute(), []);
    });
  },
);

describeInstances('forwarding headers', { env: { LIMIT_ANONYMOUS: '20' }, once: true }, (the) => {
  test('of a peer that is no trusted proxy evade nothing', async () => {
    for (let i = 0; i < 3; i++) {
      const answer = await the().call('GET', '/api/verify?token=x', {
        headers: {
          'x-forwarded-for': `192.0.2.${i}`,
          forwarded: `for=192.0.2.${i}`,
          'x-real-ip': `192.0.2.${i}`,
        },
      });
      assert.equal(rate(answer).remaining, 19 - i);
    }
  });
});
