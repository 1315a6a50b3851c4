import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { MastheadError } from '../client/src/errors.ts';
import { AppError } from '../src/errors.ts';
import { listActions } from '../src/services/operators/audit.ts';
import { runEach, undoBatch } from '../src/services/operators/batches.ts';
import { deleteComment } from '../src/services/community/comment-removal.ts';
import {
  deleteAgentByOperator,
  deletePostByOperator,
  featurePost,
  restoreAgent,
  suspendAgent,
} from '../src/services/operators/moderation.ts';
import {
  listAgents,
  listAllComments,
  listAllPosts,
  showAgent,
  statistics,
  type AgentFilter,
  type TextFilter,
} from '../src/services/operators/operator-lists.ts';
import { recordAttempt } from '../src/services/mail-delivery.ts';
import { agentNamed } from '../src/services/operators/named.ts';
import { expireActions } from '../src/services/upkeep/expiry.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type Instance,
  type TestAgent,
} from './support/instance.ts';
import { admin, adminFacts } from './support/operator.ts';

const env = {
  CONTACT_EMAIL: 'operator@masthead.example',
  ABUSE_EMAIL: 'abuse@masthead.example',
  LEGAL_URL: 'https://masthead.example/legal?a=1&b=2',
};

const facts = (instance: Instance, ...args: readonly string[]) => adminFacts(instance, env, ...args);

/** Publishes, again where the machine was too busy to render in time. */
async function publish({ client }: TestAgent, post: Parameters<TestAgent['client']['publish']>[0]) {
  for (;;)
    try {
      return await client.publish(post);
    } catch (error) {
      if (!(error instanceof MastheadError && error.code === 'unavailable')) throw error;
    }
}

describeInstances('who operates the service', { env, once: true }, (the) => {
  test('is named in pages, mail and security.txt', async () => {
    await the().agent('Named');
    const page = await the().call('GET', '/docs');
    assert.match(page.text, /<a href="mailto:operator@masthead.example">operator@masthead.example<\/a>/);
    assert.match(page.text, /Complaints: <a href="mailto:abuse@masthead.example">/);
    assert.match(page.text, /<a href="https:\/\/masthead.example\/legal\?a=1&amp;b=2">Legal notice<\/a>/);
    const security = (await the().call('GET', '/.well-known/security.txt')).text;
    assert.match(security, /^# Legal notice: https:\/\/masthead\.example\/legal\?a=1&b=2$/m);
    assert.deepEqual(security.match(/^Contact: .*$/gm), [
      'Contact: mailto:operator@masthead.example',
      'Contact: mailto:abuse@masthead.example',
    ]);
    const [mail] = await the().mails('named@example.com');
    for (const form of [mail?.email.text, mail?.email.html])
      assert.match(
        form?.replaceAll(/\s+/g, ' ') ?? '',
        /Its operator: operator@masthead\.example\. Complaints: abuse@masthead\.example\. Legal notice: https:/,
      );
  });
});

describeInstances('registration', { env }, (the, variant) => {
  const body = (email: string, name: string) => ({
    email,
    name,
    ...(variant === 'subdomain' ? { slug: name.toLowerCase() } : {}),
  });
  const register = (email: string, name: string) =>
    the().call('POST', '/api/register', { body: body(email, name) });

  test('is refused beyond the domains, or for all, and an invitation is not', async () => {
    await register('early@example.com', 'Early');
    const early = await the().token('early@example.com');
    await the().restart({
      REGISTRATION: 'domains',
      REGISTRATION_DOMAINS: 'Masthead.example,b\u00fccher.example',
    });
    for (const other of ['eve@example.com', 'eve@sub.masthead.example', 'masthead.example@evil.example'])
      assertProblem(await register(other, 'Eve'), 'forbidden');
    assertOk(await register('Ada@MASTHEAD.example', 'Ada'));
    assertOk(await register('ida@xn--bcher-kva.example', 'Ida'));

    await the().restart({ REGISTRATION: 'closed', REGISTRATION_DOMAINS: '' });
    const refused = assertProblem(await register('bob@masthead.example', 'Bob'), 'forbidden');
    assert.match(String(refused.at('hint')), /write to the operator: operator@masthead\.example\./);
    assert.equal((await the().mails('bob@masthead.example')).length, 0);
    // What was registered before is verified all the same.
    assertOk(await the().call('GET', `/api/verify?token=${early}`));

    const slug = variant === 'subdomain' ? ['guest'] : [];
    const { agent } = await facts(the(), 'agents', 'create', 'guest@example.com', 'Guest', ...slug);
    assert.equal(agent.slug, 'guest');
    assertOk(await the().call('GET', `/api/verify?token=${await the().token('guest@example.com')}`));
    const faulty = await admin(the(), env, 'agents', 'create', 'guest', 'Guest', ...slug);
    assert.deepEqual([faulty.code, /^masthead: email /m.test(faulty.stderr)], [2, true], faulty.stderr);
    await the().restart({ REGISTRATION: 'open' });
  });

  test('a suspended agent reads why, exports and deletes itself', async () => {
    const mia = await the().agent('Mia');
    await publish(mia, { title: 'Kept', content: 'c', status: 'published' });
    await the().ctx().engine.write(suspendAgent, { slug: mia.slug, reason: 'Only advertisements.' });
    const refused = assertProblem(
      await the().call('POST', '/api/publish', { key: mia.key, body: { title: 't', content: 'c' } }),
      'suspended',
    );
    assert.match(
      String(refused.at('hint')),
      /operator@masthead\.example\. GET \/api\/me, GET \/api\/me\/export/,
    );
    const { agent } = await mia.client.me();
    assert.equal(agent.suspended?.reason, 'Only advertisements.');
    assert.ok(agent.suspended?.since);
    assertProblem(await the().call('PATCH', '/api/me', { key: mia.key, body: { bio: 'b' } }), 'suspended');
    const exported = await the().call('GET', '/api/me/export', { key: mia.key });
    assert.equal(exported.status, 200);
    const stats = await statistics(the().ctx());
    assertProblem(await the().call('DELETE', '/api/me', { key: mia.key }), 'invalid_input');
    assertProblem(await the().call('POST', '/api/me/restore', { key: mia.key }), 'suspended');
    assertOk(await the().call('DELETE', '/api/me?confirm=mia', { key: mia.key }));
    const after = await statistics(the().ctx());
    assert.deepEqual(
      [after.agents.suspended, after.agents.all, after.posts.public],
      [stats.agents.suspended - 1, stats.agents.all - 1, stats.posts.public],
    );
    assertProblem(await the().call('GET', '/api/me', { key: mia.key }), 'unauthorized');
  });

  test('the operator finds, exports and deletes agents, also suspended ones', async () => {
    const zoe = await the().agent('Zoe', { email: 'zoe@spam.example' });
    const kim = await the().agent('Kim', { email: 'kim@fine.example' });
    const { post } = await publish(zoe, {
      title: 'Cheap 100% pills',
      content: 'Buy NOW',
      status: 'published',
    });
    await publish(kim, { title: 'Weather', content: 'Rain, no Ärger.', status: 'draft' });
    const isA = variant === 'subdomain';
    if (isA) {
      await kim.client.addComment(post.id, 'No thanks_all');
      await kim.client.vote(post.id, 1);
    }
    const ctx = the().ctx();
    const slugs = async (filter: Partial<AgentFilter>) =>
      (await listAgents(ctx, { limit: 100, ...filter })).map(({ slug }) => slug);
    assert.deepEqual(await slugs({ domain: 'SPAM.example' }), ['zoe']);
    assert.deepEqual(await slugs({ domain: 'pam.example' }), []);
    assert.equal((await slugs({ sort: 'posts' }))[0], 'zoe');
    assert.deepEqual(await slugs({ sort: 'oldest' }), (await slugs({ sort: 'newest' })).toReversed());
    const domains = (await listAgents(ctx, { limit: 100, sort: 'domain' })).map(({ email }) =>
      email.toLowerCase().replace(/^.*@/, ''),
    );
    assert.deepEqual(domains, domains.toSorted());
    assert.ok(new Set(domains).size > 2);
    assert.deepEqual(await slugs({ counts: { posts: [1, 1] }, domain: 'spam.example' }), ['zoe']);
    assert.deepEqual(await slugs({ counts: { posts: [0, 0] }, domain: 'spam.example' }), []);
    assert.deepEqual(await slugs({ counts: { posts: [2, 9] } }), []);
    if (isA) {
      assert.deepEqual(await slugs({ counts: { posts: [0, 0], votes: [1, 9], comments: [1, 1] } }), ['kim']);
      assert.deepEqual(await slugs({ counts: { votes: [0, 0] }, domain: 'fine.example' }), []);
    }
    if (isA) assert.equal((await slugs({ sort: 'comments' }))[0], 'kim');
    assert.deepEqual(await slugs({ since: '2999-01-01T00:00:00.000Z' }), []);

    const titles = async (filter: Partial<TextFilter> = {}) =>
      (await listAllPosts(ctx, { limit: 100, ...filter })).map(({ title }) => title);
    assert.deepEqual((await titles()).slice(0, 2), ['Weather', 'Cheap 100% pills']);
    assert.deepEqual(await titles({ text: 'buy now' }), ['Cheap 100% pills']);
    assert.deepEqual(await titles({ text: '0% P' }), ['Cheap 100% pills']);
    assert.deepEqual(await titles({ text: 'r_in' }), []);
    assert.deepEqual(await titles({ text: 'Ärger' }), ['Weather']);
    assert.deepEqual(await titles({ agentId: kim.id }), ['Weather']);
    if (isA) {
      const [comment] = await listAllComments(ctx, { limit: 1, text: 'THANKS_' });
      assert.deepEqual([comment?.postId, comment?.agent], [post.id, 'kim']);
      const { comments, votes } = await showAgent(ctx, kim.id);
      assert.deepEqual([comments, votes], [1, 1]);
    }

    await the().ctx().engine.write(suspendAgent, { slug: 'zoe', reason: 'spam' });
    assert.deepEqual(await slugs({ state: 'suspended' }), ['zoe']);
    assert.equal((await slugs({ sort: 'state' })).at(-1), 'zoe');
    const { posts: all } = await statistics(ctx);
    assert.deepEqual([all.all, all.public], [2, 0]);
    const folder = await mkdtemp(join(tmpdir(), 'masthead-operator-'));
    const file = join(folder, 'zoe.tar.gz');
    const written = await facts(the(), 'agents', 'export', 'Zoe@spam.example', file);
    assert.match(gunzipSync(await readFile(file)).toString(), /posts\/cheap-100-pills\.md[^]*Buy NOW/);
    assert.equal(written.bytes, (await readFile(file)).length);
    await rm(folder, { recursive: true });

    const dry = await facts(the(), 'agents', 'delete', 'zoe', '--dry-run', '--reason', 'spam');
    assert.deepEqual([dry.deleted, dry.agents.length], [0, 1]);
    assert.equal((await facts(the(), 'agents', 'delete', 'zoe', '--reason', 'spam')).deleted, 1);
    const { id } = await agentNamed(ctx, kim.email.toUpperCase());
    await ctx.engine.write(deleteAgentByOperator, { agentId: id });
    await assert.rejects(agentNamed(ctx, kim.id), /no agent with the slug, id or address/);
    assert.deepEqual(await titles(), []);
    const { posts, comments } = await statistics(ctx);
    assert.deepEqual([posts.all, posts.public, comments.all], [0, 0, 0]);
  });
});

describeInstances('what operators do', { env }, (the, variant) => {
  /** A wave of agents at one domain, each with a post. */
  const wave = (names: readonly string[], domain: string) =>
    Promise.all(
      names.map(async (name) => {
        const agent = await the().agent(name, { email: `${name}@${domain}` });
        await publish(agent, { title: `By ${name}`, content: 'c', status: 'published' });
        return agent;
      }),
    );
  const suspended = async () =>
    (await listAgents(the().ctx(), { limit: 100, state: 'suspended' }))
      .map(({ slug, suspendedReason }) => `${slug}: ${suspendedReason}`)
      .toSorted();
  const by = { actor: 'cli:test', reason: null, batch: null };
  const inBatch = (batch: string) => ({ ...by, batch });

  test('to a wave of agents is found, done, undone and done again, and stands in the log', async () => {
    const [w1, w2, good] = await wave(['wave1', 'wave2', 'good'], 'wave.example');
    await wave(['other'], 'sub.wave.example');
    assert.ok(w1 && w2 && good);
    const { ctx } = the();
    await ctx().engine.write(suspendAgent, { slug: 'good', reason: 'something else' });
    const command = ['agents', 'suspend', '--domain', 'wave.example', '--text', 'BY ', '--reason', 'spam'];
    const dry = await facts(the(), ...command, '--dry-run');
    assert.deepEqual([dry.batch, dry.suspended, dry.agents.length], [null, 0, 2]);
    assert.deepEqual(await suspended(), ['good: something else']);
    const first = await facts(the(), ...command);
    assert.equal(first.suspended, 2);
    const all = ['good: something else', 'wave1: spam', 'wave2: spam'];
    assert.deepEqual(await suspended(), all);

    const undone = await facts(the(), 'undo', first.batch, '--reason', 'a mistake');
    assert.deepEqual([undone.undone, undone.left, undone.final], [2, [], 0]);
    assert.deepEqual(await suspended(), ['good: something else']);
    // Done again by two at once, it is done once.
    const twice = await Promise.all([1, 2].map(() => undoBatch(ctx(), undone.batch, inBatch('again'))));
    assert.deepEqual(
      [twice.reduce((sum, done) => sum + done.undone, 0), twice.flatMap(({ left }) => left).length],
      [2, 2],
    );
    assert.deepEqual(await suspended(), all);

    // What was changed later is left alone, and so is what was deleted.
    await ctx().engine.write(restoreAgent, { slug: 'wave1' });
    await ctx().engine.write(deleteAgentByOperator, { agentId: w2.id, by: { ...by, reason: 'for good' } });
    const late = await undoBatch(ctx(), 'again', by);
    assert.deepEqual([late.undone, late.left.toSorted()], [0, [w1.id, w2.id].toSorted()]);
    assert.deepEqual(await suspended(), ['good: something else']);
    await assert.rejects(undoBatch(ctx(), first.batch.replaceAll(/\d/g, '0'), by), /There is no batch/);

    const log = await facts(the(), 'log', '--batch', undone.batch);
    for (const { actor, action, reason, target } of log) {
      assert.match(actor, /^cli:\S+$/);
      assert.deepEqual([action, reason, target.kind], ['restore', 'a mistake', 'agent']);
    }
    const actions = await listActions(ctx(), { limit: 100 });
    assert.deepEqual(
      [log.length, actions.filter(({ target_id }) => target_id === w2.id).map(({ action }) => action)],
      [2, ['delete-agent', 'suspend', 'restore', 'suspend']],
    );
    assert.doesNotMatch(JSON.stringify(actions), /@|By wave1/);
    assert.equal((await listActions(ctx(), { limit: 100, target: good.id })).length, 1);
    await ctx().engine.write(restoreAgent, { slug: 'good' });
    the().clock.advance(731 * 24 * 3_600_000);
    assert.equal(await ctx().engine.write(expireActions, null), false);
    assert.deepEqual(await listActions(ctx(), { limit: 100 }), []);
  });

  test('goes on after a moment in which the database is busy', async () => {
    let calls = 0;
    const done = await runEach(['a', 'b'], async (id) => {
      calls += 1;
      if (id === 'a' && calls < 4) throw new AppError('unavailable', 'busy');
    });
    assert.deepEqual([done, calls], [{ done: 2, left: [] }, 4]);
  });

  test('stands in the log, every action of it, and what can be undone is', async () => {
    const ada = await the().agent('Ada');
    const { post } = await publish(ada, { title: 'One', content: 'c', status: 'published' });
    const { engine } = the().ctx();
    const pinned = async () =>
      (await the().ctx().db.selectFrom('posts').select('featured_at').execute()).some(
        ({ featured_at }) => featured_at !== null,
      );
    const states: unknown[] = [];
    await engine.write(featurePost, { postId: post.id, featured: true, by: inBatch('f') });
    states.push(await pinned());
    await undoBatch(the().ctx(), 'f', inBatch('u'));
    states.push(await pinned());
    await undoBatch(the().ctx(), 'u', by);
    states.push(await pinned());
    assert.deepEqual(states, [true, false, true]);

    await engine.write(suspendAgent, { agentId: ada.id, reason: 'first', by: inBatch('s') });
    await engine.write(suspendAgent, { agentId: ada.id, reason: 'second', by: inBatch('r') });
    // The suspension was given another reason later, which is taken back first.
    assert.equal((await undoBatch(the().ctx(), 's', by)).undone, 0);
    assert.equal((await undoBatch(the().ctx(), 'r', by)).undone, 1);
    assert.deepEqual(await suspended(), ['ada: first']);
    await engine.write(restoreAgent, { agentId: ada.id, by });
    await engine.write(deletePostByOperator, { postId: post.id, by: inBatch('d') });
    assert.deepEqual(await undoBatch(the().ctx(), 'd', by), { undone: 0, left: [], final: 1 });
    const listed = await listActions(the().ctx(), { limit: 100 });
    assert.deepEqual(
      listed.map(({ action }) => action),
      [
        'delete-post',
        'restore',
        'change-reason',
        'change-reason',
        'suspend',
        'feature',
        'unfeature',
        'feature',
      ],
    );
  });

  test('about addresses that take no mail releases them, and is undone', async () => {
    const iris = await the().agent('Iris', { email: 'iris@refusing.example' });
    const { engine } = the().ctx();
    const answer = 'the mail server answered 550 5.1.1 at RCPT TO';
    const attempt = { id: 'none', owner: 'nobody', retryAt: null, error: answer };
    await engine.write(recordAttempt, { ...attempt, refusedBy: iris.id });
    const refused = async () =>
      (await facts(the(), 'mail', 'refused')).map((agent: { slug: string; answer: string }) => [
        agent.slug,
        agent.answer,
      ]);
    assert.deepEqual(await refused(), [['iris', answer]]);
    assert.match(
      (await admin(the(), env, 'agents', 'show', 'iris')).stdout,
      /^mail +none is sent since .*5\.1\.1/m,
    );
    // The key is replaced, and its mail is not sent.
    await iris.client.regenerateKey();
    const kinds = await the()
      .ctx()
      .db.selectFrom('outbox')
      .select('last_error')
      .where('kind', '=', 'key-replaced')
      .execute();
    assert.deepEqual(
      kinds.map(({ last_error }) => last_error),
      [answer],
    );
    const released = await facts(the(), 'mail', 'release', '--domain', 'refusing.example');
    assert.deepEqual([released.released, await refused()], [1, []]);
    await facts(the(), 'undo', released.batch);
    assert.deepEqual(await refused(), [['iris', answer]]);
    assert.equal((await facts(the(), 'mail', 'release', iris.email)).released, 1);
    assert.equal((await facts(the(), 'mail', 'release', 'iris')).batch, null);
  });

  test('is mailed to the owner, with the reason and whom to write to', async () => {
    const [eva, finn] = [await the().agent('Eva'), await the().agent('Finn')];
    const { engine } = the().ctx();
    const { post } = await publish(eva, {
      title: 'Shameful',
      slug: 'one',
      content: 'c',
      status: 'published',
    });
    const acting = (reason: string, batch: string | null = null) =>
      ({ ...by, batch, reason, mails: true }) as const;
    if (variant === 'subdomain') {
      const { comment } = await finn.client.addComment(post.id, 'c');
      const deletion = { agentId: eva.id, postId: post.id, commentId: comment.id };
      await engine.write(deleteComment, { ...deletion, by: acting('Off topic.') });
    }
    await engine.write(deletePostByOperator, {
      postId: post.id,
      by: acting('Rule 3: https://masthead.example/rules#3'),
    });
    await engine.write(suspendAgent, {
      agentId: eva.id,
      reason: 'Nur Werbung f\u00fcr X.',
      by: acting('', 'alone'),
    });
    await undoBatch(the().ctx(), 'alone', { ...by, reason: 'A mistake.' });
    const sent = async (address: string) =>
      (await the().mails(address))
        .map(({ email: { subject = '', text = '' } }) => ({ subject, text: text.replaceAll(/\s+/g, ' ') }))
        .filter(({ subject }) => / (?:deleted|suspended|restored)$/.test(subject))
        .toSorted((a, b) => a.subject.localeCompare(b.subject));
    const mails = await sent(eva.email);
    assert.deepEqual(
      mails.map(({ subject }) => subject),
      ['A post of the agent eva was deleted', 'The agent eva is restored', 'The agent eva is suspended'],
    );
    const reasons = ['Rule 3: https://masthead.example/rules#3', 'A mistake.', 'Nur Werbung f\\u00fcr X.'];
    for (const [at, { text }] of mails.entries()) {
      assert.ok(text.includes(reasons[at] ?? '-'), text);
      // What gives something back is not appealed against.
      const way =
        at === 1
          ? /To object, write to the operator: operator@/
          : /To appeal, open this page .*\/verify\/appeal\?token=/;
      assert.match(text, way);
      assert.doesNotMatch(text, /Shameful/);
    }
    assert.ok(mails[0]?.text.includes(post.url));
    assert.deepEqual(
      (await sent(finn.email)).map(({ subject }) => subject),
      variant === 'subdomain' ? ['A comment of the agent finn was deleted'] : [],
    );
    // Many are not written to, and never an address that nobody has verified.
    await engine.write(suspendAgent, { agentId: finn.id, reason: 'x', by });
    const body = {
      email: 'gil@example.com',
      name: 'Gil',
      ...(variant === 'subdomain' ? { slug: 'gil' } : {}),
    };
    assertOk(await the().call('POST', '/api/register', { body }));
    await engine.write(suspendAgent, { slug: 'gil', reason: 'x', by: acting('x') });
    assert.equal((await sent(finn.email)).length, variant === 'subdomain' ? 1 : 0);
    assert.deepEqual(await sent('gil@example.com'), []);
  });
});
