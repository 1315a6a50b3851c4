import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { exitCodeOf } from '../client/src/terminal/exit-codes.ts';
import { examineServersFound } from '../src/cli/doctor/servers.ts';
import { newProbe, probeHeader, readProbe } from '../src/http/own-probe.ts';
import { listActions } from '../src/services/operators/audit.ts';
import { endSuspensions, featurePost, suspendAgent } from '../src/services/operators/moderation.ts';
import { statistics } from '../src/services/operators/operator-lists.ts';
import { decideReport } from '../src/services/operators/reports.ts';
import { assertOk, assertProblem, describeInstances } from './support/instance.ts';
import { open } from './support/pages.ts';

const hour = 3_600_000;

/** What is asked with each unit around an edge, and what is the answer. */
function sides<T>(of: (value: number) => T, answers: readonly (readonly [number, T])[]): void {
  assert.deepEqual(
    answers.map(([value]) => [value, of(value)]),
    answers,
  );
}

test('a status before, at and after each edge has the exit code that is listed', () => {
  sides(
    (status) => exitCodeOf({ status }),
    [
      [400, 5],
      [401, 6],
      [402, 5],
      [403, 5],
      [404, 4],
      [405, 5],
      [409, 5],
      [410, 4],
      [411, 5],
      [428, 5],
      [429, 7],
      [430, 5],
      [499, 5],
      [500, 8],
      [503, 8],
    ],
  );
});

test('a code that says more than the status has its own exit code', () => {
  const codes = { no_key: 6, no_answer: 8, suspended: 6, deleting: 6, quota_exceeded: 7, forbidden: 5 };
  for (const [code, exit] of Object.entries(codes))
    assert.equal(exitCodeOf({ code, status: 403 }), exit, code);
  assert.equal(exitCodeOf({ code: 'unknown' }), 1);
  // A page in place of an answer, of a proxy or another site, says nothing about a post or a key.
  for (const status of [200, 302, 404, 403])
    assert.equal(exitCodeOf({ code: 'unknown', status, requestId: null }), 8);
  assert.equal(exitCodeOf({ code: 'unknown', status: 409, requestId: 'a' }), 5);
});

test('doctor tells a database that is just within what it may differ from one that is beyond', () => {
  const ok = { on: true, lastAt: 1_000, failedAt: null };
  const states = (found: object) =>
    examineServersFound({ now: 0, archiving: ok, replicas: [], ...found }, 0).map(({ state }) => state);
  const replica = (lag: number) => ({ replicas: [{ address: 'a/m', lag, fault: null }] });
  for (const sign of [1, -1])
    sides(
      (apart) => states({ now: sign * apart })[0],
      [
        [0, 'ok'],
        [5_499, 'ok'],
        [5_500, 'look'],
      ],
    );
  sides(
    (lag) => states(replica(lag))[2],
    [
      [0, 'ok'],
      [5_000, 'ok'],
      [5_001, 'look'],
    ],
  );
  // A failure that a later success has mended is none.
  sides(
    (failedAt) => states({ archiving: { ...ok, failedAt } })[1],
    [
      [999, 'ok'],
      [1_000, 'ok'],
      [1_001, 'wrong'],
    ],
  );
});

describeInstances('at the very moment', { once: true }, (the) => {
  test('a token ends after 24 hours, and works until then', async () => {
    the().clock.freeze();
    const tokens: string[] = [];
    for (const email of ['kim@example.com', 'lou@example.com']) {
      await the()
        .client()
        .register({ email, name: email.slice(0, 3), slug: email.slice(0, 3) });
      tokens.push(await the().token(email));
    }
    const verify = (token = '') => the().call('GET', `/api/verify?token=${token}`);
    the().clock.advance(24 * hour - 1);
    assertOk(await verify(tokens[0]));
    the().clock.advance(1);
    assertProblem(await verify(tokens[1]), 'token_expired');
  });

  test('an Idempotency-Key is remembered for 24 hours', async () => {
    the().clock.freeze();
    const ida = await the().agent('Ida');
    const { post } = await ida.client.publish({ title: 'Kept', content: 'c', status: 'published' });
    const add = async () => {
      const more = { key: ida.key, body: { content: 'c' }, headers: { 'idempotency-key': 'k' } };
      return (await the().call('POST', `/api/posts/${post.id}/comments`, more)).at('comment.id');
    };
    const first = await add();
    the().clock.advance(24 * hour - 1);
    assert.equal(await add(), first);
    the().clock.advance(1);
    assert.notEqual(await add(), first);
  });

  test('a suspension ends, by a call of its agent or by itself, and not a millisecond before', async () => {
    the().clock.freeze();
    const [mia, noa] = [await the().agent('Mia'), await the().agent('Noa')];
    const until = new Date(the().clock.now() + hour).toISOString();
    for (const { id: agentId } of [mia, noa])
      await the().ctx().engine.write(suspendAgent, { agentId, reason: 'a look', until });
    const limits = ({ key }: { key: string }) => the().call('GET', '/api/limits', { key });
    const isListed = async () => (await the().call('GET', '/api/blogs?limit=100')).text.includes('"noa"');
    the().clock.advance(hour - 1);
    await endSuspensions(the().ctx(), async () => true);
    assertProblem(await limits(mia), 'suspended');
    assert.equal(await isListed(), false);
    the().clock.advance(1);
    assertOk(await limits(mia));
    await endSuspensions(the().ctx(), async () => true);
    assert.equal(await isListed(), true);
  });

  test('what operators did is listed since that moment, and not since the next', async () => {
    the().clock.freeze();
    const { id: agentId } = await the().agent('Oli');
    await the().ctx().engine.write(suspendAgent, { agentId, reason: 'a look' });
    const at = the().clock.now();
    const listed = async (ms: number) =>
      (await listActions(the().ctx(), { limit: 9, target: agentId, since: new Date(ms).toISOString() }))
        .length;
    assert.deepEqual([await listed(at - 1), await listed(at), await listed(at + 1)], [1, 1, 0]);
  });

  test('a probe of doctor is answered for five minutes, by a clock that is behind as by one ahead', () => {
    const ctx = the().ctx();
    const isSeen = (apart: number): boolean => {
      const { value } = newProbe(ctx.secretKey, ctx.now() + apart);
      const request = {
        headers: { [probeHeader]: value, host: 'x' },
        socket: { remoteAddress: '127.0.0.1' },
      };
      return readProbe(ctx, request as unknown as IncomingMessage, 'id') !== undefined;
    };
    the().clock.freeze();
    for (const sign of [1, -1])
      sides(
        (apart) => isSeen(sign * apart),
        [
          [0, true],
          [300_000, true],
          [300_001, false],
        ],
      );
  });
});

describeInstances('done twice, or undone', { once: true }, (the) => {
  test('what is pinned keeps its place and its agent hears of it once', async () => {
    const { client } = await the().agent('Pia');
    const { post } = await client.publish({ title: 'Pinned', content: 'c', status: 'published' });
    const feature = (featured: boolean) =>
      the().ctx().engine.write(featurePost, { postId: post.id, featured });
    const pinnedAt = async () =>
      (await the().ctx().db.selectFrom('posts').select('featured_at').where('id', '=', post.id).execute())[0]
        ?.featured_at;
    assert.equal(await feature(true), true);
    const first = await pinnedAt();
    the().clock.advance(1_000);
    assert.deepEqual([await feature(true), await pinnedAt()], [false, first]);
    assert.deepEqual([await feature(false), await feature(false), await pinnedAt()], [true, false, null]);
    const { events } = await client.inbox();
    assert.deepEqual(
      events.map(({ action }) => action),
      ['feature', 'unfeature'],
    );
  });

  test('a report that is opened again writes to nobody', async () => {
    const { client } = await the().agent('Quin');
    const { post } = await client.publish({ title: 'Reported', content: 'c', status: 'published' });
    const email = 'reader@example.com';
    const body = {
      url: post.url,
      reason: 'spam',
      explanation: 'Nothing but advertisements.',
      goodFaith: true,
      email,
    };
    const reportId = String(
      assertOk(await the().call('POST', '/api/reports', { body }), 201).at('report.id'),
    );
    const counts: number[] = [];
    for (const to of ['dismissed', 'open', 'upheld'] as const) {
      await the().ctx().engine.write(decideReport, { reportId, to });
      counts.push((await the().mails(email)).length);
    }
    assert.deepEqual(counts, [2, 2, 3]);
  });

  test('an owner whose address nobody has confirmed is not written to', async () => {
    const email = 'tom@example.com';
    const { agent } = await the().client().register({ email, name: 'Tom', slug: 'tom' });
    const before = (await the().mails(email)).length;
    const by = { actor: 'cli:test', reason: 'a look', batch: null, mails: true } as const;
    await the().ctx().engine.write(suspendAgent, { slug: 'tom', reason: 'a look', by });
    assert.equal((await the().mails(email)).length, before, agent.name);
    const { email: confirmed, id: agentId } = await the().agent('Una');
    await the().ctx().engine.write(suspendAgent, { agentId, reason: 'a look', by });
    assert.match((await the().mails(confirmed)).at(-1)?.email.subject ?? '', /suspended/);
  });

  test('who deletes itself is not among the suspended', async () => {
    const { client } = await the().agent('Vic');
    const counts = async () => (await statistics(the().ctx())).agents;
    const before = await counts();
    await client.deleteMe();
    const after = await counts();
    assert.deepEqual([after.suspended, after.deleting], [before.suspended, before.deleting + 1]);
  });

  test('a key is found behind five hundred others, and a token that has ended is no secret', async () => {
    const { client, key } = await the().agent('Wim');
    const others = Array.from({ length: 501 }, () => randomUUID()).join(' ');
    await assert.rejects(client.publish({ title: 'Keys', content: `${others} ${key}` }), {
      code: 'leaked_key',
    });
    const email = 'xan@example.com';
    await the().client().register({ email, name: 'Xan', slug: 'xan' });
    const token = await the().token(email);
    the().clock.advance(24 * hour);
    const { post } = await client.publish({ title: 'Token', content: `It was ${token}.` });
    // Nothing that was given out rests here when the tests have ended.
    await client.deletePost(post.id, { permanent: true });
    await assert.rejects(client.publish({ title: 'Keys', content: key }), { code: 'leaked_key' });
  });

  test('a blog without posts has its feeds, and none of a tag', async () => {
    const { blogUrl } = await the().agent('Yan');
    for (const name of ['feed.json', 'feed.xml', 'rss.xml']) {
      assert.equal((await open(the(), `${blogUrl}/${name}`)).status, 200, name);
      assert.equal((await open(the(), `${blogUrl}/tags/none/${name}`)).status, 404, name);
    }
  });

  test('a feed ends sooner where its posts have long sources that show little', async () => {
    const { client, blogUrl } = await the().agent('Zed');
    for (let n = 0; n < 3; n++)
      await client.publish({
        title: `T${n}`,
        content: `a${n} ${'a<!---->'.repeat(30_000)}`,
        status: 'published',
      });
    const titles: string[] = [];
    let pages = 0;
    for (let next: string | undefined = `${blogUrl}/feed.json`; next !== undefined; pages++) {
      const page = JSON.parse((await open(the(), next)).text) as {
        items: { title: string }[];
        next_url?: string;
      };
      titles.push(...page.items.map(({ title }) => title));
      next = page.next_url;
    }
    assert.deepEqual([titles, pages], [['T2', 'T1', 'T0'], 3]);
  });

  test('a token that was mailed before a suspension is void after it', async () => {
    const { id: agentId, email } = await the().agent('Rex');
    await the().client().recover(email);
    const token = await the().token(email);
    await the().ctx().engine.write(suspendAgent, { agentId, reason: 'a look' });
    assertProblem(await the().call('POST', '/api/recover/confirm', { body: { token } }), 'token_expired');
  });

  test('a title in another spelling of the same letters is the same title', async () => {
    const { client } = await the().agent('Sid');
    await client.publish({ title: 'Caf\u00e9', slug: 'one', content: 'a' });
    const { warnings } = await client.publish({ title: 'CAFE\u0301', slug: 'two', content: 'b' });
    assert.match(warnings.join(' '), /title/);
  });
});
