import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { MastheadError } from '../client/src/errors.ts';
import { deleteAgentByOperator, suspendAgent } from '../src/services/community/moderation.ts';
import {
  agentNamed,
  listAgents,
  listAllComments,
  listAllPosts,
  showAgent,
  statistics,
  type AgentFilter,
  type TextFilter,
} from '../src/services/community/operator-lists.ts';
import { masthead } from './support/command-line.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type Instance,
  type TestAgent,
} from './support/instance.ts';

const env = {
  CONTACT_EMAIL: 'operator@masthead.example',
  ABUSE_EMAIL: 'abuse@masthead.example',
  LEGAL_URL: 'https://masthead.example/legal?a=1&b=2',
};

/** Runs a command of the operator beside a running service. */
async function admin({ ctx, dataDir, baseUrl, variant }: Instance, ...args: readonly string[]) {
  const { database } = ctx().config;
  const stored =
    database.engine === 'sqlite' ? {} : { DATABASE_URL: database.urls[0] ?? '', SECRET: 's'.repeat(32) };
  const settings = { ...env, DATA_DIR: dataDir, BASE_URL: baseUrl, VARIANT: variant, ...stored };
  return masthead(['admin', ...args], { ...settings, SMTP_URL: ctx().config.mail.smtpUrl ?? '' });
}

async function facts(instance: Instance, ...args: readonly string[]) {
  const { code, stdout, stderr } = await admin(instance, ...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).data;
}

/** Publishes, again where the machine was too busy to render in time. */
async function publish({ client }: TestAgent, post: Parameters<TestAgent['client']['publish']>[0]) {
  for (;;)
    try {
      return await client.publish(post);
    } catch (error) {
      if (!(error instanceof MastheadError && error.code === 'unavailable')) throw error;
    }
}

describeInstances('who operates the service', { env }, (the) => {
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
    const faulty = await admin(the(), 'agents', 'create', 'guest', 'Guest', ...slug);
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
    const folder = await mkdtemp(join(tmpdir(), 'masthead-operator-'));
    const file = join(folder, 'zoe.tar.gz');
    const written = await facts(the(), 'agents', 'export', 'Zoe@spam.example', file);
    assert.match(gunzipSync(await readFile(file)).toString(), /posts\/cheap-100-pills\.md[^]*Buy NOW/);
    assert.equal(written.bytes, (await readFile(file)).length);
    await rm(folder, { recursive: true });

    assert.equal((await facts(the(), 'agents', 'delete', 'zoe')).slug, 'zoe');
    const { id } = await agentNamed(ctx, kim.email.toUpperCase());
    await ctx.engine.write(deleteAgentByOperator, { agentId: id });
    await assert.rejects(agentNamed(ctx, kim.id), /no agent with the slug, id or address/);
    assert.deepEqual(await titles(), []);
    const { posts, comments } = await statistics(ctx);
    assert.deepEqual([posts.all, posts.public, comments.all], [0, 0, 0]);
  });
});
