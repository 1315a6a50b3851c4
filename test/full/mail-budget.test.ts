import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { assertOk, assertProblem, engines, startInstance } from '../support/instance.ts';

const hour = 3_600_000;

for (const engine of engines) {
  describe(`MAIL_BUDGET (${engine})`, () => {
    test('bounds mail to unverified addresses an hour; what waits goes fairly by network', async (t) => {
      const { instance, register, delivered } = await setUp(t, { MAIL_BUDGET: '3' });
      const ada = await instance.agent('Ada');
      const known = await delivered(2);
      // One of the hour went to Ada before she verified.
      for (const [at, sentence] of [
        /24 hours\.$/,
        /24 hours\.$/,
        /up to an hour/,
        /up to an hour/,
      ].entries()) {
        const answer = assertOk(await register(`many-${at}`, `198.51.100.${at}`));
        assert.match(String(answer.at('message')), sentence);
      }
      assert.deepEqual(await delivered(4), [...known, 'many-0', 'many-1']);
      await ada.client.regenerateKey();
      await ada.client.recover(ada.email);
      assert.deepEqual(await delivered(6), [...known, 'ada', 'ada', 'many-0', 'many-1'].toSorted());

      for (let n = 4; n < 8; n++) assertOk(await register(`many-${n}`, `198.51.100.${n}`));
      // The same /48 twice, and another.
      for (const [slug, from] of [
        ['one', '2001:db8:1:2::3'],
        ['two', '2001:db8:1:f::4'],
        ['three', '2001:db8:2::5'],
      ] as const)
        assertOk(await register(slug, from));
      instance.clock.advance(hour + 1);
      await ada.client.recover(ada.email);
      assert.deepEqual(
        (await delivered(10)).filter((name) => name !== 'ada'),
        ['many-0', 'many-1', 'many-2', 'one', 'three'],
      );
      await instance.restart({ MAIL_BUDGET: '0' });
      assert.equal((await delivered(16)).filter((name) => name === 'two').length, 1, 'nothing is lost');
    });

    test('lets a network wait that has had some within the hour', async (t) => {
      const { instance, register, delivered } = await setUp(t, { MAIL_BUDGET: '3' });
      assertOk(await register('first', '203.0.113.1'));
      await delivered(1);
      instance.clock.advance(hour / 2);
      for (const n of [0, 1]) assertOk(await register(`many-${n}`, `198.51.100.${n}`));
      await delivered(3);
      assertOk(await register('many-2', '198.51.100.2'));
      assertOk(await register('other', '192.0.2.1'));
      instance.clock.advance(hour / 2 + 1);
      assert.deepEqual(await delivered(4), ['first', 'many-0', 'many-1', 'other']);
      await instance.restart({ MAIL_BUDGET: '0' });
    });

    test('answers 503 to a network that has some waiting when more than a day’s waits, and stores nothing', async (t) => {
      const { instance, register } = await setUp(t, { MAIL_BUDGET: '1' });
      for (let n = 0; n <= 24; n++) assertOk(await register(`r-${n}`, '192.0.2.1'));
      const refused = assertProblem(await register('too-many', '192.0.2.9'), 'unavailable');
      assert.equal(refused.headers['retry-after'], '3600');
      const agents = await instance.ctx().db.selectFrom('agents').select('id').execute();
      assert.equal(agents.length, 25);
      assertOk(await instance.call('GET', '/api/limits'));
      assertOk(await register('other', '203.0.113.9'));
      assertProblem(await register('other-two', '203.0.113.9'), 'unavailable');
      await instance.restart({ MAIL_BUDGET: '0' });
    });

    test('lets no more than twice a day’s wait, whoever asks, also for a recovery or the receipt of a report', async (t) => {
      const { instance, register, delivered } = await setUp(t, { MAIL_BUDGET: '1' });
      const ada = await instance.agent('Ada');
      const { post } = await ada.client.publish({ title: 'One', content: 'x', status: 'published' });
      // The hour's message was hers.
      await delivered(2);
      const waiting = async () => {
        const rows = instance.ctx().db.selectFrom('outbox').select('id').where('network', 'is not', null);
        return (await rows.where('due_at', 'is not', null).execute()).length;
      };
      for (let n = 0; n < 24; n++) assertOk(await register(`r-${n}`, '192.0.2.1'));
      const from = (network: number) => ({ 'x-forwarded-for': `198.51.${network}.1` });
      const recover = async (slug: string, network: number) => {
        const body = { email: `${slug}@example.com` };
        assertOk(await instance.call('POST', '/api/recover', { body, headers: from(network) }));
      };
      const report = async (network: number) => {
        const email = `reporter-${network}@example.com`;
        const body = {
          url: post.url,
          reason: 'spam',
          explanation: 'It praises pills in every line.',
          goodFaith: true,
          email,
        };
        assertOk(await instance.call('POST', '/api/reports', { body, headers: from(network) }), 201);
      };
      /** Waits until requests are answered, each in the transaction that queues its mail. */
      const answered = async () => {
        const left = instance
          .ctx()
          .db.selectFrom('outbox')
          .select('id')
          .where('kind', '=', 'recovery-request');
        while ((await left.execute()).length > 0) await delay(5);
      };
      // One after the other: what two processes answer at once may both find room.
      for (let n = 0; n < 2; n++) {
        await recover(`r-${n}`, 1);
        await answered();
      }
      assert.equal(await waiting(), 25);
      await report(1);
      assert.equal(await waiting(), 25);
      for (let n = 2; n < 24; n++) assertOk(await register(`s-${n}`, `198.51.${n}.1`));
      await report(24);
      assert.equal(await waiting(), 48);
      assertProblem(await register('too-many', '198.51.25.1'), 'unavailable');
      await report(26);
      await recover('r-3', 27);
      await answered();
      assert.equal(await waiting(), 48);
      await instance.restart({ MAIL_BUDGET: '0' });
    });
  });
}

async function setUp(t: TestContext, env: Readonly<Record<string, string>>) {
  const engine = engines.find((name) => t.fullName.includes(name)) ?? 'sqlite';
  const instance = await startInstance({ engine, env: { TRUST_PROXY: 'loopback', ...env } });
  t.after(() => instance.close());
  instance.clock.freeze();
  const register = (slug: string, from: string) =>
    instance.call('POST', '/api/register', {
      body: { email: `${slug}@example.com`, name: slug, slug },
      headers: { 'x-forwarded-for': from },
    });
  /** Slugs of those who were sent so many messages, once no more are claimed. */
  async function delivered(count: number): Promise<string[]> {
    const { db } = instance.ctx();
    const sent = db
      .selectFrom('outbox')
      .innerJoin('agents', 'agents.id', 'outbox.agent_id')
      .select('agents.slug')
      .where('outbox.delivered_at', 'is not', null);
    for (;;) {
      const rows = await sent.execute();
      if (rows.length >= count) return rows.map(({ slug }) => String(slug)).toSorted();
      await delay(5);
    }
  }
  return { instance, register, delivered };
}
