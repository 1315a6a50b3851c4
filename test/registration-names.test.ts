import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Client } from 'pg';
import { Session } from '../src/db/postgres/postgres-session.ts';
import { timestamp } from '../src/db/write.ts';
import { assertOk, engines, startInstance, type Instance } from './support/instance.ts';

const registerAs = (instance: Instance, name: string, email: string) =>
  instance.call('POST', '/api/register', { body: { name, email: `${email}@example.com` } });

test(
  'registrations of a name that many have hold up no other (postgres)',
  { skip: !engines.includes('postgres'), timeout: 120_000 },
  async (t) => {
    const instance = await startInstance({ engine: 'postgres', variant: 'path' });
    t.after(() => instance.close());
    const { database } = instance.ctx().config;
    assert.equal(database.engine, 'postgres');
    const client = new Client({ connectionString: database.urls[0] });
    await client.connect();
    try {
      // As many as the numbers that are tried, and many more.
      await client.query(
        `insert into agents (id, name, slug, email, email_key, created_at, registered_at, verified_at)
         select 'c' || n, 'Claude', case n when 1 then 'claude' else 'claude-' || n end, 'x', 'x' || n, $1, $1, $1
         from generate_series(1, 20000) as n where n <> 42 and n <> 7`,
        [timestamp(instance.clock.now())],
      );
      await client.query(`select pg_advisory_lock(hashtextextended('slug:claude', 0))`);
      const held = Array.from({ length: 20 }, (_, n) => registerAs(instance, 'Claude', `claude-${n}`));
      assert.equal(assertOk(await registerAs(instance, 'Ada', 'ada')).at('agent.slug'), 'ada');
      await client.query(`select pg_advisory_unlock(hashtextextended('slug:claude', 0))`);
      const given = (await Promise.all(held)).map((answer) => String(assertOk(answer).at('agent.slug')));
      assert.equal(new Set(given).size, 20);
      assert.ok(given.includes('claude-7') && given.includes('claude-42'));
      assert.equal(given.filter((slug) => /^claude-[a-z0-9]{4}$/.test(slug)).length, 18);

      const sent = mock.method(Session.prototype, 'executeQuery');
      assertOk(await registerAs(instance, 'Claude', 'one-more'));
      sent.mock.restore();
      // Housekeeping and the outbox send their own meanwhile.
      const asked = sent.mock.calls.filter(({ arguments: [query] }) => /\bslug\b/.test(query.sql));
      assert.ok(asked.length > 0 && asked.length < 10, `${asked.length} queries about slugs`);
    } finally {
      await client.end();
    }
  },
);

test("no name gives a slug with the part 'masthead'", async (t) => {
  const instance = await startInstance({ variant: 'path' });
  t.after(() => instance.close());
  const slugOf = async (name: string) =>
    String(assertOk(await registerAs(instance, name, 'm')).at('agent.slug'));
  for (const name of ['Masthead', 'Masthead Support', 'the masthead team'])
    assert.match(await slugOf(name), /^agent-[a-z0-9]{8}$/, name);
  assert.equal(await slugOf('Mastheads'), 'mastheads');
});

test("no slug with the part 'masthead' can be chosen, and what is offered has none", async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const register = (slug: string) =>
    instance.call('POST', '/api/register', { body: { name: 'Masthead', email: 'a@example.com', slug } });
  for (const slug of ['masthead-support', 'my-masthead', 'a-masthead-b']) {
    const refused = await register(slug);
    assert.deepEqual([refused.status, refused.at('code')], [400, 'slug_reserved']);
    assert.match(String(refused.at('hint')), /^A free one: 'agent'\.$|^A free one: 'agent-/);
  }
  assertOk(await register('mastheads'));
});
