import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { settleCalls } from '../src/services/limits/rate-window.ts';
import { claimFile } from '../src/services/media/pictures.ts';
import { appealsNamed, resolveAppeal } from '../src/services/operators/appeal-lists.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { blockSource, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { heartbeat, sweep } from '../src/services/upkeep/maintenance.ts';
import { assertOk, assertProblem, describeInstances, tokenOf } from './support/instance.ts';

const hour = 3_600_000;

// Mail that cannot go out stays.
const env = { LIMIT_API: '0', SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'masthead@masthead.example' };

describeInstances('a sweep', {}, (the) => {
  test('forgets a key that was never used when its token ends', async () => {
    const { engine, db } = the().ctx();
    const body = { email: 'unused@example.com', name: 'Unused', slug: 'unused' };
    assertOk(await the().call('POST', '/api/register', { body }));
    assertOk(await the().call('GET', `/api/verify?token=${await the().token(body.email)}`));
    const sealed = () => db.selectFrom('tokens').select('hash').where('sealed_key', 'is not', null).execute();
    the().clock.advance(23 * hour);
    await engine.write(sweep, null);
    assert.equal((await sealed()).length, 1);
    the().clock.advance(hour);
    await engine.write(sweep, null);
    assert.deepEqual(await sealed(), []);
  });

  test('dates back what was written while the clock was ahead', async () => {
    const { engine, db } = the().ctx();
    const { clock } = the();
    clock.advance(30 * 24 * hour);
    const [early, leaving] = [await the().agent('Early'), await the().agent('Leaving')];
    const publish = async (title: string) => {
      const content = { title, content: 'a', status: 'published' } as const;
      return (await early.client.publish(content, { idempotencyKey: title })).post;
    };
    const [kept, trashed] = [await publish('Kept'), await publish('Trashed')];
    await early.client.updatePost(kept.id, { content: 'b' });
    await early.client.deletePost(trashed.id);
    const body = { email: 'ada@example.com', name: 'Ada', slug: 'ada' };
    assertOk(await the().call('POST', '/api/register', { body }));
    const explanation = 'Nothing but advertisements.';
    for (const url of [kept.url, early.blogUrl]) {
      const report = { url, reason: 'spam', explanation, goodFaith: true };
      assertOk(await the().call('POST', '/api/reports', { body: report }), 201);
    }
    const by = { actor: 'cli:test', reason: 'test', batch: null };
    await engine.write(moderatePost, { postId: kept.id, to: { state: 'hidden', reason: 'test' }, by });
    await early.client.appeal({ text: 'These are the prices of a shop.' });
    const [appeal = ''] = await appealsNamed(the().ctx(), kept.id);
    await resolveAppeal(the().ctx(), appeal, 'upheld', by);
    await engine.write(suspendAgent, { slug: 'early', reason: 'test', by });
    await leaving.client.deleteMe();
    await engine.write(claimFile, { agentId: leaving.id, sha256: 'a'.repeat(64), bytes: 1 });
    await engine.write(blockSource, { kind: 'phrase', value: 'pills' });
    const { id } = await db.selectFrom('source_blocks').select('id').executeTakeFirstOrThrow();
    await engine.write(setSourceBlock, { id, isOn: false });
    clock.advance(-30 * 24 * hour);

    const late = async () => {
      const now = clock.now() + hour;
      const times = [
        sql`changes where at > ${now}`,
        ...[
          'idempotency where created_at',
          'former_slugs where deleted_at',
          'agents where verified_at is null and registered_at',
          'posts where trashed_at',
          'post_revisions where replaced_at',
          'media_blobs where orphaned_at',
          'inbox where at',
          'outbox where created_at',
          'audit where at',
          'source_blocks where ended_at',
          'reports where snapshot is not null and created_at',
          'reports where decided_at',
          "appeals where state = 'possible' and at",
          'appeals where decided_at',
        ].map((rows) => sql`${sql.raw(rows)} > ${new Date(now).toISOString()}`),
        sql`agents where erase_at > ${new Date(now + the().ctx().config.accountGraceDays * 24 * hour).toISOString()}`,
      ];
      const rows = await Promise.all(times.map((which) => sql`select 1 from ${which} limit 1`.execute(db)));
      return rows.map((found) => found.rows.length);
    };
    const before = await late();
    assert.deepEqual(
      before,
      before.map(() => 1),
    );
    await engine.write(sweep, null);
    assert.deepEqual(
      await late(),
      before.map(() => 0),
    );
    const counted = new Date(clock.now() - 24 * hour).toISOString();
    const mails = db.selectFrom('outbox').select('kind').where('created_at', '>', counted);
    assert.deepEqual(await mails.execute(), [], 'the caps of mailboxes count a day');
  });
});

describeInstances('a sweep', { env }, (the) => {
  test('mends what was written while the clock was ahead', async () => {
    const { engine, db } = the().ctx();
    const { clock } = the();
    const id = '00000000-0000-4000-8000-000000000001';
    clock.advance(30 * 24 * hour);
    await engine.write(heartbeat, { id });
    const body = { email: 'ada@example.com', name: 'Ada', slug: 'ada' };
    assertOk(await the().call('POST', '/api/register', { body }));
    const tried = () => db.selectFrom('outbox').select('id').where('attempts', '>', 0).execute();
    while ((await tried()).length === 0) await delay(20);
    clock.advance(-30 * 24 * hour);
    await engine.write(heartbeat, { id: id.replace(/1$/, '2') });
    assert.deepEqual(await db.selectFrom('processes').select('id').where('id', '=', id).execute(), []);
    const late = async () => {
      const at = new Date(clock.now() + 2 * hour).toISOString();
      return (await db.selectFrom('outbox').select('id').where('due_at', '>', at).execute()).length;
    };
    const long = async () => {
      const at = new Date(clock.now() + 25 * hour).toISOString();
      return (await db.selectFrom('tokens').select('hash').where('expires_at', '>', at).execute()).length;
    };
    assert.deepEqual([await late(), await long()], [1, 1]);
    await engine.write(sweep, null);
    assert.deepEqual([await late(), await long()], [0, 0]);
  });

  test('deletes so many rows of a table at most, the oldest first, and says that more are left', async () => {
    const { engine, db } = the().ctx();
    const at = the().clock.now() - 2 * hour;
    const old = Array.from({ length: 450 }, (_, n) => ({
      policy: 'api',
      subject: `s-${n}`,
      units: 1,
      at: at + n,
    }));
    await engine.write(settleCalls, old);
    const left = () =>
      db
        .selectFrom('rate_calls')
        .select('at')
        .where('at', '<=', at + 450)
        .orderBy('at')
        .execute();
    for (const rows of [250, 50, 0]) {
      assert.deepEqual(await engine.write(sweep, null), { mailGivenUp: 0, ...(rows > 0 && { more: true }) });
      assert.deepEqual(
        (await left()).map((row) => row.at - at),
        Array.from({ length: rows }, (_, n) => 450 - rows + n),
      );
    }
  });
});

describeInstances(
  'several registrations of one address',
  { env: { TRUST_PROXY: 'loopback' } },
  (the, variant) => {
    const choosesSlug = variant === 'subdomain';
    const register = (
      email: string,
      slug: string,
      { from = '192.0.2.1', ...more }: Record<string, string> = {},
    ) =>
      the().call('POST', '/api/register', {
        body: { email, name: slug, ...(choosesSlug ? { slug } : {}), ...more },
        headers: { 'x-forwarded-for': from },
      });
    const verify = (token: string) => the().call('GET', `/api/verify?token=${token}`);
    const newest = async (email: string) => the().token(email);

    test('are confirmed each as its own mail says, by whichever token is used first', async () => {
      for (const [first, slug] of [
        [true, 'owned'],
        [false, 'stolen'],
      ] as const) {
        const email = `${slug}@example.com`;
        const owner = assertOk(await register(`${slug.toUpperCase()}@example.com`, slug, { bio: 'mine' }));
        const tokens = [await newest(`${slug.toUpperCase()}@example.com`)];
        const stranger = assertOk(await register(email, `x-${slug}`, { name: `x ${slug}`, bio: 'theirs' }));
        assert.match(String(stranger.at('message')), /Earlier ones still work/);
        assert.equal(stranger.at('agent.id'), owner.at('agent.id'));
        tokens.push(await newest(email));
        const [used, other] = first ? tokens : tokens.toReversed();
        const page = (await the().call('GET', `/verify?token=${used}`)).text;
        assert.equal(page.includes(`>x-${slug}<`), !first);
        const key = String(assertOk(await verify(used ?? '')).at('apiKey'));
        const { agent } = await the().client(key).me();
        assert.deepEqual(
          [agent.slug, agent.name, agent.bio, agent.email],
          first
            ? [slug, slug, 'mine', `${slug.toUpperCase()}@example.com`]
            : [`x-${slug}`, `x ${slug}`, 'theirs', email],
        );
        const mail = (await the().mails(agent.email)).at(-1);
        assert.equal(mail?.email.subject, `API key of the agent ${agent.slug}`);
        assertProblem(await verify(other ?? ''), 'token_expired');
      }
    });

    test('leave the slug of all but the latest mail to whoever asks', async () => {
      const email = 'letgo@example.com';
      await register(email, 'letgo');
      const early = await newest(email);
      await register(email, 'kept-one');
      assertOk(await register('taker@example.com', 'letgo'));
      const late = await verify(early);
      if (choosesSlug) {
        assertProblem(late, 'slug_taken');
        assertOk(await verify(await newest(email)));
      } else {
        assert.match(String(assertOk(late).at('message')), /went to another agent.*this one is 'letgo-2'/);
      }
    });

    test('of one client address hold the newest 20 slugs, and others are not counted', async () => {
      const from = '198.51.100.7';
      assertOk(await register('early@example.com', 'early-bird', { from }));
      for (let n = 1; n <= 19; n++)
        assertOk(await register(`many-${n}@example.com`, `many-number-${n}`, { from }));
      for (let n = 1; n <= 3; n++) assertOk(await register(`few-${n}@example.com`, `few-number-${n}`));
      const take = () => register('thief@example.com', 'early-bird', { from: '203.0.113.1' });
      const held = await take();
      if (choosesSlug) assertProblem(held, 'slug_taken');
      else assert.equal(held.at('agent.slug'), 'early-bird-2');
      assertOk(await register('last@example.com', 'last-bird', { from }));
      assert.equal(assertOk(await register('late@example.com', 'early-bird')).at('agent.slug'), 'early-bird');
      const body = { token: await newest('early@example.com') };
      const beaten = await the().call('POST', '/api/verify', { body });
      if (choosesSlug) assertProblem(beaten, 'slug_taken');
      else
        assert.match(
          String(assertOk(beaten).at('message')),
          /'early-bird' went to another agent meanwhile; this one is 'early-bird-3'\.$/,
        );
    });

    test('hold no slug beyond an hour when the clock was ahead', async () => {
      const { clock } = the();
      clock.advance(365 * 24 * hour);
      assertOk(await register('future@example.com', 'from-the-future'));
      for (let n = 0; n < 5; n++) await register('mailed@example.com', 'mailed-ahead');
      clock.advance(-365 * 24 * hour);
      assert.equal(
        assertOk(await register('present@example.com', 'from-the-future')).at('agent.slug'),
        'from-the-future',
      );
      const before = (await the().mails('mailed@example.com')).length;
      await register('mailed@example.com', 'mailed-ahead');
      assert.equal((await the().mails('mailed@example.com')).length, before + 1);
    });

    test('that nobody verifies are erased after 48 hours, and the token answers 410 for 30 days', async () => {
      const { ctx, clock } = the();
      const email = 'erased@example.com';
      const answer = assertOk(await register(email, 'erased-one', { bio: 'erased words' }));
      const token = await newest(email);
      const stored = async () => {
        const agents = await ctx().db.selectFrom('agents').selectAll().execute();
        const tokens = await ctx().db.selectFrom('tokens').selectAll().execute();
        const mail = await ctx().db.selectFrom('outbox').select('agent_id').execute();
        return JSON.stringify([agents, tokens, mail]);
      };
      clock.advance(47 * hour);
      await ctx().engine.write(sweep, null);
      assert.match(await stored(), /erased words/);
      clock.advance(2 * hour);
      await ctx().engine.write(sweep, null);
      const left = await stored();
      for (const trace of ['erased@example', 'erased-one', 'erased words', String(answer.at('agent.id'))])
        assert.ok(!left.includes(trace), trace);
      assertProblem(await verify(token), 'token_expired');
      assert.equal((await the().call('HEAD', `/api/verify?token=${token}`)).status, 410);
      assertProblem(await the().call('GET', '/api/me', { key: token }), 'unauthorized');
      const leaked = await the().call('POST', '/api/register', {
        body: { email, name: token, slug: 'leaky' },
      });
      assert.notEqual(leaked.status, 500);
      assertOk(await register(email, 'erased-one'));
      clock.advance(31 * 24 * hour);
      await ctx().engine.write(sweep, null);
      assert.match(String(assertProblem(await verify(token), 'invalid_token').at('hint')), /api\/recover/);
    });

    test('remember from where they came until one is verified', async () => {
      const from = async () =>
        (
          await the()
            .ctx()
            .db.selectFrom('agents')
            .select('registered_from')
            .where('email_key', '=', 'traced@example.com')
            .execute()
        ).map((row) => row.registered_from);
      assertOk(await register('traced@example.com', 'traced'));
      assert.match((await from())[0] ?? '', /^[\w-]{43}$/);
      assertOk(await verify(await newest('traced@example.com')));
      assert.deepEqual(await from(), [null]);
    });

    test('used at once give one key', async () => {
      const email = 'rivals@example.com';
      for (let n = 0; n < 3; n++) await register(email, `rivals-${n}`, { bio: `bio ${n}` });
      // In any order: they are delivered at the same time.
      const mails = (await the().mails(email)).filter((mail) => tokenOf(mail) !== null);
      const tokens = mails.map((mail) => tokenOf(mail) ?? '');
      assert.equal(tokens.length, 3);
      const answers = await Promise.all(tokens.map(verify));
      assert.deepEqual(answers.map(({ status }) => String(status)).toSorted(), ['200', '410', '410']);
      const won = answers.findIndex(({ status }) => status === 200);
      const { agent } = await the()
        .client(String(answers[won]?.at('apiKey')))
        .me();
      const n = /rivals-(\d)/.exec(mails[won]?.email.text ?? '')?.[1] ?? 'none';
      assert.deepEqual([agent.slug, agent.bio], [`rivals-${n}`, `bio ${n}`]);
    });
  },
);

describeInstances('recovery', {}, (the) => {
  test('answers every address alike, and mails a token to that of an agent', async () => {
    const { email } = await the().agent('Sought');
    const answers = [];
    for (const address of [email, 'nobody@example.com', email.toUpperCase()])
      answers.push(await the().call('POST', '/api/recover', { body: { email: address } }));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.match(
      String(assertOk(answers[0] ?? assert.fail()).at('message')),
      /^If this address belongs to an agent, a message is on its way; at most 5 an hour are sent\b/,
    );
    assert.equal((await the().mails('nobody@example.com')).length, 0);
    const token = await the().token(email);
    assertOk(await the().call('POST', '/api/recover/confirm', { body: { token } }));
    const requests = the().ctx().db.selectFrom('outbox').select('id').where('kind', '=', 'recovery-request');
    assert.deepEqual(await requests.execute(), [], 'nothing is left of them');
  });

  test('of a verified agent is mailed each hour, and ten times a day', async () => {
    const { id, email } = await the().agent('Hourly');
    const { clock } = the();
    const rows = (kind: string) => the().ctx().db.selectFrom('outbox').select('id').where('kind', '=', kind);
    const mailed: number[] = [];
    for (let n = 0; n < 12; n++) {
      assertOk(await the().call('POST', '/api/recover', { body: { email } }));
      while ((await rows('recovery-request').execute()).length > 0) await delay(20);
      mailed.push((await rows('recovery').where('agent_id', '=', id).execute()).length);
      clock.advance(n < 10 ? hour + 1 : 24 * hour);
    }
    assert.deepEqual(mailed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11]);
  });
});
