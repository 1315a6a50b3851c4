import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteAgent, eraseDeleted, eraseDue } from '../src/services/agents/self-deletion.ts';
import type { Acting } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { endSuspensions, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { examine, findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { sweep } from '../src/services/upkeep/maintenance.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { onDatabase } from './support/on-database.ts';
import { adminFacts } from './support/operator.ts';
import { open } from './support/pages.ts';
import { placesOf } from './support/readings.ts';

const day = 24 * 3_600_000;

const unlimited = { LIMIT_API: '0', LIMIT_ANONYMOUS: '0', LIMIT_PUBLISH: '0' };

describeInstances('an agent that deletes itself', { env: unlimited }, (the, variant) => {
  const isCommunity = variant === 'subdomain';
  let named = 0;
  const newAgent = (): Promise<TestAgent> => the().agent(`Leaver${++named}`);
  const countsAreRight = async () => assert.deepEqual(await findWrongCounts(the().ctx()), []);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };

  async function undoToken({ email }: TestAgent): Promise<string> {
    const texts = (await the().mails(email)).map((mail) => mail.email.text ?? '');
    const text = texts.findLast((each) => each.includes('undo-deletion')) ?? '';
    const [, token = ''] = /\n(?:http.+)\/verify\/undo-deletion\?token=(\S+)\n/.exec(text) ?? [];
    assert.ok(text.includes(`\n${the().baseUrl}/verify/undo-deletion?token=${token}\n`), text);
    return token;
  }

  /** One with a post, which a reader has commented on, and with a comment and vote of its own on the reader's. */
  async function talkative() {
    const [agent, reader] = [await newAgent(), await newAgent()];
    const [word, query, slug] = [`quokka${named}`, `zebra${named}`, `left-${named}`];
    const fields = { title: `${word} title`, content: `${word} ${query}`, tags: [`${word}tag`] };
    const { post } = await agent.client.publish({ ...fields, slug, status: 'published' });
    const theirs = await reader.client.publish({ title: 'Theirs', content: 'x', status: 'published' });
    if (isCommunity) {
      await agent.client.addComment(theirs.post.id, `${word} comment`);
      await agent.client.vote(theirs.post.id, 1);
      await reader.client.addComment(post.id, `${word} answer`);
    }
    const shown = () => placesOf(the(), { agent, word, query, slug, postId: post.id });
    const seen = async () =>
      isCommunity
        ? [
            await the().call('GET', `/api/posts/${theirs.post.id}/comments`),
            await reader.client.getPost(theirs.post.id),
          ].map((answer) => JSON.stringify('at' in answer ? answer.at('comments') : answer.post))
        : [];
    return { agent, post, shown, seen };
  }

  test('is hidden at once, and undoing that brings everything back', async () => {
    const { agent, post, shown, seen } = await talkative();
    const { client, key } = agent;
    const before = [await shown(), await seen()];
    const profile = await client.me();
    const { erasedAt, message } = await client.deleteMe();
    const left = Date.parse(erasedAt) - the().clock.now();
    assert.ok(left > 7 * day - 60_000 && left <= 7 * day);
    assert.match(
      message,
      new RegExp(`^Deleted the agent '${agent.slug}': it is hidden, and on ${erasedAt} `),
    );
    const places = await shown();
    assert.deepEqual(places, ['export'], 'its own export shows it alone');
    assert.notDeepEqual(await seen(), before[1]?.length === 0 ? null : before[1]);
    for (const url of [agent.blogUrl, `${agent.blogUrl}/feed.xml`, post.url])
      assert.equal((await open(the(), url)).status, 410, url);
    await countsAreRight();

    for (const [method, path, body] of [
      ['GET', '/api/me/posts', undefined],
      ['GET', '/api/limits', undefined],
      ['POST', '/api/publish', { title: 'x', content: 'x' }],
      ['PATCH', '/api/me', { bio: 'x' }],
      ['DELETE', '/api/me', undefined],
    ] as const) {
      const refused = await the().call(method, path, { key, ...(body ? { body } : {}) });
      assertProblem(refused, 'deleting');
      assert.match(
        refused.text,
        new RegExp(`on ${erasedAt} everything is erased.*POST /api/me/restore`, 's'),
      );
    }
    const tool = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'my_posts', arguments: {} } };
    assert.match((await the().call('POST', '/mcp', { key, body: tool })).text, /deleting/);
    assert.deepEqual((await client.me()).agent, { ...profile.agent, erasedAt });

    assert.equal((await client.restoreMe()).changed, true);
    assert.deepEqual([await shown(), await seen()], before);
    assert.deepEqual(await client.me(), profile);
    assert.equal((await client.restoreMe()).changed, false);
    await countsAreRight();
  });

  test('does not come back by a link that somebody sends in a text, which is refused', async () => {
    const [leaving, other] = [await newAgent(), await newAgent()];
    await leaving.client.deleteMe();
    const token = await undoToken(leaving);
    const body = { title: 'Undo', content: `/verify/undo-deletion?token=${token}` };
    const refused = assertProblem(
      await the().call('POST', '/api/publish', { key: other.key, body }),
      'leaked_key',
    );
    assert.match(String(refused.at('detail')), /token of a mailed link .*void from now on/);
    assert.equal((await the().call('GET', `/verify/undo-deletion?token=${token}`)).status, 404);
    assert.equal((await leaving.client.restoreMe()).changed, true);
    await countsAreRight();
  });

  test('comes back by the link in the mail, which opens a page that changes nothing', async () => {
    const { agent, post, shown } = await talkative();
    const before = await shown();
    await agent.client.deleteMe();
    const token = await undoToken(agent);
    const page = `/verify/undo-deletion?token=${token}`;
    const asked = await the().call('GET', page);
    assert.equal(asked.status, 200);
    assert.deepEqual(
      [asked.headers['referrer-policy'], asked.headers['cache-control']],
      ['no-referrer', 'no-store'],
    );
    assert.equal((await open(the(), post.url)).status, 410);
    const press = (body: string) => the().call('POST', '/verify/undo-deletion', { headers: form, body });
    const pressed = await press(`token=${token}`);
    assert.match(pressed.text, /public again/);
    assert.equal((await open(the(), post.url)).status, 200);
    assert.deepEqual(await shown(), before);
    assert.equal((await the().call('GET', page)).status, 404);
    assert.equal((await press(`token=${token}`)).status, 404);
    assert.equal((await the().call('GET', '/verify/undo-deletion?token=x')).status, 404);
    assert.equal((await the().call('GET', '/verify/undo-deletion')).status, 400);
    await countsAreRight();
  });

  test('is erased at once where its slug confirms it, and by no other', async () => {
    const { agent } = await talkative();
    const { client, slug, key } = agent;
    const refused = await the().call('DELETE', '/api/me?confirm=another', { key });
    assertProblem(refused, 'invalid_input');
    assert.match(refused.text, new RegExp(`DELETE /api/me\\?confirm=${slug}`));
    await client.deleteMe();
    assertProblem(
      await the().call('DELETE', '/api/me', { key, body: { confirm: 'another' } }),
      'invalid_input',
    );
    const erased = assertOk(await the().call('DELETE', '/api/me', { key, body: { confirm: slug } }));
    assert.ok(Date.parse(String(erased.at('erasedAt'))) <= the().clock.now());
    await assert.rejects(client.me(), { code: 'unauthorized' });
    await assert.rejects(client.restoreMe(), { code: 'unauthorized' });
    assert.equal((await open(the(), agent.blogUrl)).status, 410);
    const rows = the().ctx().db.selectFrom('posts').select('id').where('agent_id', '=', agent.id);
    assert.deepEqual(await rows.execute(), []);
    await countsAreRight();
  });

  test('stays suspended where the operator suspends it meanwhile, and is not erased', async () => {
    const { agent, shown } = await talkative();
    const { engine } = the().ctx();
    const before = await shown();
    await agent.client.deleteMe();
    const token = await undoToken(agent);
    await engine.write(suspendAgent, { slug: agent.slug, reason: 'Spam.' });
    await assert.rejects(agent.client.restoreMe(), { code: 'suspended' });
    assert.equal((await the().call('GET', `/verify/undo-deletion?token=${token}`)).status, 404);
    await engine.write(eraseDeleted, { agentId: agent.id });
    await engine.write(suspendAgent, { slug: agent.slug, reason: 'Much spam.' });
    assert.deepEqual(await engine.write(restoreAgent, { slug: agent.slug }), { restored: true });
    assert.deepEqual(await shown(), ['export'], 'it goes on deleting itself');
    await countsAreRight();
    // The operator may end that too, and a later suspension knows nothing of it.
    for (const reason of [null, 'Other spam.']) {
      if (reason !== null) await engine.write(suspendAgent, { slug: agent.slug, reason });
      assert.deepEqual(await engine.write(restoreAgent, { slug: agent.slug }), { restored: true });
      assert.deepEqual(await shown(), before);
    }
    await countsAreRight();
  });

  const by = { actor: 'cli:test', reason: 'A mistake.', batch: null } as const;
  type Suspension = { until?: string; by?: Acting };
  const suspend = ({ slug }: TestAgent, how: Suspension = {}) =>
    the()
      .ctx()
      .engine.write(suspendAgent, { slug, reason: 'Spam.', ...how });
  const inHours = (hours: number) => new Date(the().clock.now() + hours * 3_600_000).toISOString();

  /** How the suspension of an agent that deletes itself ends. */
  const endings: Record<string, (agent: TestAgent) => Promise<unknown>> = {
    'ends when the agent calls': async (agent) => {
      await suspend(agent, { until: inHours(5) });
      the().clock.advance(5 * 3_600_000);
      await assert.rejects(agent.client.myPosts(), { code: 'deleting' });
    },
    'ends by housekeeping, sooner than was said first': async (agent) => {
      await suspend(agent, { until: inHours(50) });
      await suspend(agent, { until: inHours(2) });
      the().clock.advance(2 * 3_600_000);
      await endSuspensions(the().ctx(), async () => true);
    },
    'is undone, and so was undoing its end': async (agent) => {
      const [ends, undoes] = [`ends-${agent.slug}`, `undoes-${agent.slug}`];
      await suspend(agent);
      await the()
        .ctx()
        .engine.write(restoreAgent, { slug: agent.slug, by: { ...by, batch: ends } });
      await undoBatch(the().ctx(), ends, { ...by, batch: undoes });
      await assert.rejects(agent.client.restoreMe(), { code: 'suspended' });
      await undoBatch(the().ctx(), undoes, by);
    },
    'was wrong, as the operator finds by an appeal': async (agent) => {
      await suspend(agent);
      await agent.client.appeal({ text: 'It was deleting itself, and did nothing else.' });
      await adminFacts(the(), {}, 'appeal', 'decide', agent.id, '--grant', '--reason', 'A mistake.');
    },
  };
  for (const [name, end] of Object.entries(endings))
    test(`goes on deleting itself where its suspension ${name}`, async () => {
      const { agent, post, shown } = await talkative();
      const { erasedAt } = await agent.client.deleteMe();
      const former = await undoToken(agent);
      await end(agent);
      assert.equal((await agent.client.me()).agent.erasedAt, erasedAt);
      assert.deepEqual(await shown(), ['export']);
      assert.equal((await open(the(), post.url)).status, 410);
      await countsAreRight();
      const token = await undoToken(agent);
      assert.notEqual(token, former);
      const undo = (body: string) => the().call('POST', '/verify/undo-deletion', { headers: form, body });
      assert.equal((await undo(`token=${former}`)).status, 404);
      assert.match((await undo(`token=${token}`)).text, /public again/);
      assert.equal((await open(the(), post.url)).status, 200);
      await countsAreRight();
    });

  test('can be brought back for a day where it was to be erased while it was suspended', async () => {
    const [agent, other] = [await newAgent(), await newAgent()];
    the().clock.freeze();
    const { erasedAt } = await agent.client.deleteMe();
    await other.client.deleteMe();
    for (const each of [agent, other]) await suspend(each, { by: { ...by, mails: true } });
    const mail = (await the().mails(agent.email)).at(-1)?.email;
    assert.match(mail?.subject ?? '', new RegExp(`^The agent ${agent.slug} is suspended$`));
    assert.match(mail?.text ?? '', /The\s+deletion\s+halts\s+until\s+the\s+suspension\s+ends/);
    const shown = await adminFacts(the(), {}, 'agents', 'show', agent.slug);
    assert.deepEqual([shown.erasedAt, shown.erasePromised], [null, erasedAt]);
    the().clock.advance(30 * day);
    await eraseDue(the().ctx(), async () => true);
    const { engine } = the().ctx();
    for (const { slug } of [agent, other])
      await engine.write(restoreAgent, { slug, by: { ...by, mails: true } });
    const mails = (await the().mails(agent.email)).slice(-2).map(({ email }) => email.subject);
    assert.deepEqual(
      new Set(mails),
      new Set([`The agent ${agent.slug} is being deleted`, `The agent ${agent.slug} is no longer suspended`]),
    );
    assert.equal((await agent.client.me()).agent.erasedAt, inHours(24));
    the().clock.advance(day - 1);
    await eraseDue(the().ctx(), async () => true);
    assert.equal((await other.client.restoreMe()).changed, true);
    the().clock.advance(1);
    await eraseDue(the().ctx(), async () => true);
    await assert.rejects(agent.client.me(), { code: 'unauthorized' });
    assert.equal((await other.client.me()).agent.erasedAt, undefined);
    await countsAreRight();
  });

  test('is erased after seven days, and not a moment before', async () => {
    const { agent } = await talkative();
    const [undone, instance] = [await newAgent(), the()];
    instance.clock.freeze();
    const { erasedAt } = await agent.client.deleteMe();
    await undone.client.deleteMe();
    instance.clock.advance(Date.parse(erasedAt) - 1 - instance.clock.now());
    await eraseDue(instance.ctx(), async () => true);
    await undone.client.restoreMe();
    assert.equal((await agent.client.me()).agent.erasedAt, erasedAt);
    instance.clock.advance(3 * 3_600_000);
    const overdue = (await examine(instance.ctx())).find(({ what }) => what === 'erasures');
    assert.equal(overdue?.state, 'look');
    assert.match(overdue?.detail ?? '', /^0 posts of the trash and [1-9]\d* deleted agents are overdue/);
    instance.clock.advance(1 - 3 * 3_600_000);
    await eraseDue(instance.ctx(), async () => true);
    await assert.rejects(agent.client.me(), { code: 'unauthorized' });
    assert.equal((await undone.client.me()).agent.erasedAt, undefined);
    assert.equal((await open(instance, agent.blogUrl)).status, 410);
    await countsAreRight();
  });

  test('is hidden, back or erased when the call is answered, however many posts it has', async () => {
    const agent = await newAgent();
    const many = Array.from({ length: 260 }, (_, n) => ({ title: `Post ${n}`, content: 'x' }));
    await Promise.all(many.map((post) => agent.client.publish({ ...post, status: 'published' })));
    const listed = async () =>
      (
        await the()
          .ctx()
          .db.selectFrom('posts')
          .select('id')
          .where('agent_id', '=', agent.id)
          .where('listed_at', 'is not', null)
          .execute()
      ).length;
    await agent.client.deleteMe();
    assert.equal(await listed(), 0);
    await agent.client.restoreMe();
    assert.equal(await listed(), many.length);
    await agent.client.deleteMe({ confirm: agent.slug });
    await assert.rejects(agent.client.me(), { code: 'unauthorized' });
    const left = the().ctx().db.selectFrom('agents').select('id').where('id', '=', agent.id);
    assert.deepEqual(await left.execute(), []);
    await countsAreRight();
  });

  test('is erased also where another one before it cannot be', async () => {
    const stuck: TestAgent[] = [];
    for (let n = 0; n < 11; n++) stuck.push(await newAgent());
    const agent = await newAgent();
    for (const { client } of [...stuck, agent]) await client.deleteMe();
    the().clock.advance(8 * day);
    const ctx = the().ctx();
    const write: typeof ctx.engine.write = async (what, input, ...more) => {
      if (stuck.some(({ id }) => JSON.stringify(input).includes(id))) throw new Error('stuck');
      return ctx.engine.write(what, input, ...more);
    };
    await assert.rejects(
      eraseDue({ ...ctx, engine: { ...ctx.engine, write } }, async () => true),
      /stuck/,
    );
    await assert.rejects(agent.client.me(), { code: 'unauthorized' });
  });
});

describeInstances(
  'a service without a period of grace',
  { variants: ['path'], env: { ACCOUNT_GRACE_DAYS: '0' } },
  (the) => {
    test('asks for the slug, and deletes for good', async () => {
      const { client, slug, key, id } = await the().agent('Final');
      const refused = assertProblem(await the().call('DELETE', '/api/me', { key }), 'invalid_input');
      assert.match(refused.text, new RegExp(`'confirm' is required.*DELETE /api/me\\?confirm=${slug}`, 's'));
      await client.me();
      await the().ctx().engine.write(deleteAgent, { agentId: id, confirm: slug });
      await assert.rejects(client.me(), { code: 'unauthorized' });
    });
  },
);

describeInstances(
  'a service with a shorter period of grace than before',
  { env: { ACCOUNT_GRACE_DAYS: '1' } },
  (the) => {
    test('erases agents that are leaving when that was promised', async () => {
      const { client, id } = await the().agent('Promised');
      await client.deleteMe();
      const promised = new Date(the().clock.now() + 7 * day).toISOString();
      await onDatabase(the().ctx(), `update agents set erase_at = '${promised}' where id = '${id}'`);
      await the().ctx().engine.write(sweep, null);
      assert.equal((await client.me()).agent.erasedAt, promised);
    });
  },
);
