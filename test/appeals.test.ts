import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listActions } from '../src/services/operators/audit.ts';
import { deletePostByOperator, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { appealsNamed, listAppeals, resolveAppeal } from '../src/services/operators/appeal-lists.ts';
import { expireAppeals, type Verdict } from '../src/services/operators/appeals.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { moderateComment } from '../src/services/operators/comment-moderation.ts';
import { setProbation } from '../src/services/trust/probation.ts';
import { examine } from '../src/services/upkeep/doctor.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { admin, adminFacts } from './support/operator.ts';

const text = 'These are the prices of a museum shop.';
const day = 24 * 3_600_000;

describeInstances('appeals', { env: { LIMIT_REGISTER: '0' } }, (the, variant) => {
  let named = 0;
  const newAgent = () => the().agent(`Appellant${++named}`);
  const appeal = ({ key }: TestAgent, more: object = {}) =>
    the().call('POST', '/api/appeals', { key, body: { text, ...more } });
  const publish = async ({ client }: TestAgent, title: string) =>
    (await client.publish({ title, content: `About ${title}.`, status: 'published' })).post;
  const by = { actor: 'cli:test', reason: 'advertisements', batch: 'b', mails: true } as const;
  const silently = { actor: 'cli:test', reason: 'seen again', batch: 'c' } as const;
  const hide = (postId: string) =>
    the()
      .ctx()
      .engine.write(moderatePost, { postId, to: { state: 'hidden', reason: 'advertisements' }, by });
  const suspend = ({ slug }: TestAgent, reason = 'advertisements') =>
    the()
      .ctx()
      .engine.write(suspendAgent, { slug, reason, by: { ...by, reason } });
  const open = () => listAppeals(the().ctx(), { limit: 100, state: 'open' });
  const decide = async (about: string, to: Verdict) => {
    const [id = ''] = await appealsNamed(the().ctx(), about);
    return resolveAppeal(the().ctx(), id, to, silently);
  };
  /** Messages of one moment arrive in any order. */
  const mailWith = async ({ email }: TestAgent, pattern: RegExp) =>
    (await the().mails(email)).findLast((mail) => pattern.test(mail.email.text ?? ''))?.email;
  const linkOf = async (agent: TestAgent) => {
    const mail = (await mailWith(agent, /\/verify\/appeal/))?.text ?? '';
    const [, token = ''] = /\/verify\/appeal\?token=([\w-]+)\n/.exec(mail) ?? [];
    assert.match(token, /^[\w-]{43}$/, mail);
    return token;
  };
  const press = (fields: Readonly<Record<string, string>>) =>
    the().call('POST', '/verify/appeal', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    });

  test('work with the key of a suspended agent, which is restored when one is granted', async () => {
    const ada = await newAgent();
    assertProblem(await appeal(ada), 'not_found');
    assertProblem(await the().call('POST', '/api/appeals', { body: { text } }), 'unauthorized');
    await suspend(ada);
    await suspend(ada, 'only advertisements');
    const refused = assertProblem(await the().call('GET', '/api/me/inbox', { key: ada.key }), 'suspended');
    assert.match(String(refused.at('detail')), /only advertisements/);
    assert.match(String(refused.at('hint')), /POST \/api\/appeals/);
    for (const bad of ['x'.repeat(19), 'x'.repeat(2001), ' \n'.repeat(20), 7])
      assertProblem(await appeal(ada, { text: bad }), 'invalid_input');
    assertProblem(await appeal(ada, { about: '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c' }), 'invalid_input');
    const first = assertOk(await appeal(ada, { text: `${text} ${ada.key}` }), 201);
    assert.deepEqual([first.at('appeal.action'), first.at('appeal.state')], ['change-reason', 'open']);
    assert.equal(first.at('appeal.about'), ada.id);
    const again = assertOk(await appeal(ada, { text: `${text} Truly.` }));
    assert.equal(again.at('appeal.id'), first.at('appeal.id'));
    const [row, ...none] = await open();
    assert.deepEqual(none, []);
    assert.deepEqual(
      [row?.text, row?.reason, row?.agent.slug],
      [`${text} Truly.`, 'only advertisements', ada.slug],
    );
    const found = (await examine(the().ctx())).find(({ what }) => what === 'appeals');
    assert.match(found?.detail ?? '', /^1 are open, the oldest since /);
    const [listed] = await adminFacts(the(), {}, 'appeals');
    assert.deepEqual([listed.id, listed.text, listed.actions], [row?.id, `${text} Truly.`, 2]);

    const command = ['appeal', 'decide', ada.id, '--grant', '--reason', 'seen again'];
    assert.deepEqual((await adminFacts(the(), {}, ...command, '--dry-run')).appeals, [row?.id]);
    const { stdout, stderr } = await admin(the(), {}, ...command, '--dry-run');
    assert.equal(stdout, row?.id);
    assert.match(stderr, /^1 appeal would be granted\. Nothing was changed\.$/m);
    const done = await adminFacts(the(), {}, ...command);
    assert.deepEqual([done.granted, done.appeals], [1, [row?.id]]);
    const { events } = await ada.client.inbox();
    assert.deepEqual(
      events.map(({ action, reason }) => [action, reason]),
      [
        ['suspend', 'advertisements'],
        ['suspend', 'only advertisements'],
        ['grant-appeal', 'seen again'],
        ['restore', 'seen again'],
      ],
    );
    const mail = await mailWith(ada, /granted the appeal/);
    assert.match(mail?.subject ?? '', /^The appeal of the agent appellant\d+ was decided$/);
    assert.match(mail?.text ?? '', /granted the appeal of this agent,\s+and\s+undone[^]*seen again/);
    assert.doesNotMatch(mail?.text ?? '', /To\s+object/);
    const log = await listActions(the().ctx(), { limit: 9, batch: done.batch });
    assert.deepEqual(log.map(({ action }) => action).toSorted(), ['grant-appeal', 'restore']);
    assert.deepEqual(await open(), []);
    assertProblem(await appeal(ada), 'forbidden');
  });

  test('name what they are about, one against each action, and stay where they are upheld', async () => {
    const bob = await newAgent();
    const [one, two, three] = [
      await publish(bob, `One ${named}`),
      await publish(bob, `Two ${named}`),
      await publish(bob, `Three ${named}`),
    ];
    for (const { id } of [one, two, three]) await hide(id);
    const { events } = await bob.client.inbox();
    const ofOne = assertOk(await appeal(bob, { about: events[0]?.actionId }), 201);
    assert.deepEqual([ofOne.at('appeal.about'), ofOne.at('appeal.action')], [one.id, 'hide']);
    const ofTwo = assertOk(await appeal(bob, { about: two.id.toUpperCase() }), 201);
    assert.equal(ofTwo.at('appeal.about'), two.id);
    const ofLast = assertOk(await appeal(bob), 201);
    assert.equal(ofLast.at('appeal.about'), three.id);
    await suspend(bob);
    await the().ctx().engine.write(setProbation, { agentId: bob.id, probation: 'operator', by });
    const ofAll = assertOk(await appeal(bob), 201);
    assert.deepEqual([ofAll.at('appeal.about'), ofAll.at('appeal.action')], [bob.id, 'suspend']);
    assert.equal((await open()).length, 4);

    assert.equal(await decide(one.id, 'upheld'), true);
    await assert.rejects(appealsNamed(the().ctx(), one.id), /no open appeal/);
    assert.ok(await mailWith(bob, /leaves\s+what\s+was\s+done\s+as\s+it\s+is[^]*seen again[^]*To\s+object/));
    assert.equal(await decide(two.id, 'granted'), true);
    // What the operator takes back anyhow is an appeal granted.
    await the().ctx().engine.write(restoreAgent, { slug: bob.slug, by });
    assert.ok(await mailWith(bob, /granted the appeal[^]*advertisements/));
    assert.deepEqual(
      (await open()).map(({ target }) => target.id),
      [three.id],
    );
    const states = await Promise.all(
      [one, two, three].map(async ({ id }) => (await bob.client.getPost(id)).post.moderation?.action),
    );
    assert.deepEqual(states, ['hidden', undefined, 'hidden']);
    assertProblem(await appeal(bob, { about: one.id }), 'forbidden');
    // Another action is another appeal, and its agent takes all along.
    await the().ctx().engine.write(moderatePost, { postId: one.id, to: null, by });
    await hide(one.id);
    assertOk(await appeal(bob, { about: one.id }), 201);
    assert.equal((await open()).length, 2);
    await bob.client.deleteMe({ confirm: bob.slug });
    const left = await the()
      .ctx()
      .db.selectFrom('appeals')
      .selectAll()
      .where('agent_id', '=', bob.id)
      .execute();
    assert.deepEqual(left, []);
  });

  test('bring a comment back whatever was done to it before, where one is granted', async () => {
    if (variant === 'path') return;
    const eve = await newAgent();
    const post = await publish(eve, `Discussed ${named}`);
    const { comment } = await eve.client.addComment(post.id, 'The prices of a museum shop.');
    const total = async () => (await the().client().listComments(post.id)).total;
    for (const [first, last] of [
      ['removed', 'held'],
      ['held', 'removed'],
    ] as const) {
      for (const to of [first, last])
        await the().ctx().engine.write(moderateComment, { commentId: comment.id, to, by });
      assert.equal(await total(), 0);
      assertOk(await appeal(eve, { about: comment.id }), 201);
      assert.equal(await decide(comment.id, 'granted'), true);
      assert.equal(await total(), 1);
    }
  });

  test('are made on the page that the mail links, where only the button does anything', async () => {
    const cleo = await newAgent();
    const post = await publish(cleo, `Page ${named}`);
    await hide(post.id);
    const token = await linkOf(cleo);
    const page = `/verify/appeal?token=${token}`;
    const form = await the().call('GET', page);
    assert.equal(form.status, 200);
    assert.deepEqual(
      [form.headers['referrer-policy'], form.headers['cache-control']],
      ['no-referrer', 'no-store'],
    );
    assert.match(form.text, /has taken a post of this agent from public view[^]*advertisements/);
    assert.equal([...form.text.matchAll(/<button/g)].length, 1);
    assert.match(form.text, /<label for="text">/);
    assert.doesNotMatch(form.text, /<script|style=/);
    assert.deepEqual(await open(), []);
    const faulty = await press({ token, text: '<b>' });
    assert.equal(faulty.status, 400);
    assert.match(faulty.text, /role="alert"[^]*must be 20 to 2000 characters[^]*&lt;b&gt;<\/textarea>/);
    const unseen = [
      page.replace(token, 'x'),
      '/verify/appeal?token=',
      page.replace(/=.*/, `=${'A'.repeat(43)}`),
    ];
    const statuses = await Promise.all(unseen.map(async (url) => (await the().call('GET', url)).status));
    assert.deepEqual(statuses, [404, 400, 404]);
    const sent = await press({ token, text: `${text}\r\nAnd no more.` });
    assert.equal(sent.status, 201, sent.text);
    const [stored] = await open();
    assert.equal(stored?.text, `${text}\nAnd no more.`);
    assert.ok(sent.text.includes(stored.id));
    for (const again of [await press({ token, text }), await the().call('GET', page)])
      assert.equal(again.status, 404);
    assert.equal(await decide(stored.id, 'upheld'), true);
  });

  test('are made by no link that somebody sends in a text, which is refused', async () => {
    const [fern, gil] = [await newAgent(), await newAgent()];
    await hide((await publish(fern, `Leak ${named}`)).id);
    const token = await linkOf(fern);
    const link = `${the().baseUrl}/verify/appeal?token=${token}`;
    const escaped = token.replace(/[^a-z]|^./gi, (c) => `%${c.charCodeAt(0).toString(16)}`);
    const body = { title: 'Appeal', content: `See [this](${link.replace(token, escaped)}).` };
    const refused = assertProblem(
      await the().call('POST', '/api/publish', { key: gil.key, body }),
      'leaked_key',
    );
    assert.match(String(refused.at('detail')), /token of a mailed link .*void from now on/);
    assert.match(String(refused.at('hint')), /POST \/api\/appeals/);
    assert.equal((await the().call('GET', link.slice(the().baseUrl.length))).status, 404);
    assert.match((await mailWith(fern, /contained a token/))?.text ?? '', /POST \/api\/appeals/);
    const filed = assertOk(await appeal(fern), 201);
    assert.equal(await decide(String(filed.at('appeal.id')), 'upheld'), true);
  });

  test('are possible for half a year and as long as what was done stays so', async () => {
    const dan = await newAgent();
    const [lifted, old, gone] = [
      await publish(dan, `Lifted ${named}`),
      await publish(dan, `Old ${named}`),
      await publish(dan, `Gone ${named}`),
    ];
    await hide(lifted.id);
    const token = await linkOf(dan);
    await the().ctx().engine.write(moderatePost, { postId: lifted.id, to: null, by });
    assert.equal((await the().call('GET', `/verify/appeal?token=${token}`)).status, 404);
    assertProblem(await appeal(dan), 'not_found');
    await hide(old.id);
    await the().ctx().engine.write(deletePostByOperator, { postId: gone.id, by });
    // What was deleted can be appealed against, and stays deleted.
    const ofGone = assertOk(await appeal(dan, { about: gone.id }), 201);
    assert.equal(ofGone.at('appeal.action'), 'delete-post');
    assert.equal(await decide(gone.id, 'granted'), true);
    assert.ok(await mailWith(dan, /What was deleted cannot\s+be\s+brought\s+back/));
    assertProblem(await the().call('GET', `/api/posts/${gone.id}`, { key: dan.key }), 'not_found');
    the().clock.advance(184 * day);
    const late = await appeal(dan, { about: old.id });
    assertProblem(late, 'invalid_input');
    await the().ctx().engine.write(expireAppeals, null);
    const kept = () => the().ctx().db.selectFrom('appeals').select(['state']).execute();
    assert.ok((await kept()).every(({ state }) => state !== 'possible'));
    the().clock.advance(731 * day);
    await the().ctx().engine.write(expireAppeals, null);
    assert.deepEqual(
      (await kept()).filter(({ state }) => state !== 'open'),
      [],
    );
    if (variant === 'path') assert.deepEqual(await open(), []);
  });
});
