import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { undoBatch } from '../src/services/operators/batches.ts';
import { featurePost, suspendAgent } from '../src/services/operators/moderation.ts';
import { settleCommunity } from '../src/services/community/settle.ts';
import { listActions } from '../src/services/operators/audit.ts';
import { decideReport } from '../src/services/operators/reports.ts';
import { endProbation, endProbations, probationEnd, setProbation } from '../src/services/trust/probation.ts';
import { adminFacts } from './support/operator.ts';
import { open } from './support/pages.ts';
import { describeInstances, type TestAgent } from './support/instance.ts';

const day = 24 * 3_600_000;

test('a probation ends so many days after the first post, later with open reports, never with an upheld one', () => {
  const facts = { firstPostAt: 1_000, hasOpenReport: false, hasUpheldReport: false };
  assert.equal(probationEnd(facts, 3), 1_000 + 3 * day);
  assert.equal(probationEnd({ ...facts, hasOpenReport: true }, 3), 1_000 + 7 * day);
  assert.equal(probationEnd({ ...facts, hasOpenReport: true }, 10), 1_000 + 10 * day);
  assert.equal(probationEnd({ ...facts, hasUpheldReport: true }, 3), null);
  assert.equal(probationEnd({ ...facts, firstPostAt: null }, 3), null);
});

const post = async ({ client }: TestAgent, title: string, tags: string[] = []) =>
  (await client.publish({ title, content: 'c', tags, status: 'published' })).post;

const env = { NEW_BLOGS: 'probation', TRUST_AFTER_DAYS: '3' };

describeInstances('a blog on probation', { env }, (the, variant) => {
  const isA = variant === 'subdomain';
  const endDue = () => endProbations(the().ctx(), async () => true);
  const probationOf = async ({ id }: TestAgent) =>
    (await the().ctx().db.selectFrom('agents').select('probation').where('id', '=', id).executeTakeFirst())
      ?.probation;
  const page = (url: string) => open(the(), url);
  test('is kept out of search engines, sitemaps and the home page, and is listed and found', async () => {
    await the().restart({ NEW_BLOGS: 'open' });
    const old = await the().agent('Old');
    await the().restart({ NEW_BLOGS: 'probation' });
    const ida = await the().agent('Ida');
    assert.deepEqual([await probationOf(old), await probationOf(ida)], [null, 'new']);
    const [theirs, own] = [await post(old, 'Of the old'), await post(ida, 'Of Ida', ['sea'])];
    await the().ctx().engine.write(featurePost, { postId: own.id, featured: true });

    const paths = ['', '/feed.xml', '/llms.txt', '/-/archive', '/tags/sea', '/of-ida', '/of-ida.md'];
    const shown = async (blogUrl: string, path: string) => {
      const { status, headers, text } = await page(`${blogUrl}${path}`);
      assert.equal(status, 200, path);
      return [headers['x-robots-tag'], /<meta name="robots" content="noindex"/.test(text)];
    };
    const state = async (agent: TestAgent) =>
      Promise.all(paths.map(async (path) => (await shown(agent.blogUrl, path)).join(' ')));
    const isPage = (path: string) => !/\.(?:xml|txt|md)$/.test(path);
    const kept = paths.map((path) => `noindex ${isPage(path)}`);
    assert.deepEqual(await state(ida), kept);
    const sitemaps = async (agent: TestAgent) => [
      (await page(`${agent.blogUrl}/sitemap.xml`)).status,
      (await the().call('GET', '/sitemap.xml')).text.includes(`${agent.blogUrl}/sitemap.xml`),
    ];
    assert.deepEqual([await sitemaps(ida), (await sitemaps(old))[0]], [[404, false], 200]);
    if (isA) {
      assert.doesNotMatch((await page(`${ida.blogUrl}/robots.txt`)).text, /Sitemap/);
      const home = (await the().call('GET', '/')).text;
      assert.deepEqual([home.includes(own.url), home.includes(ida.blogUrl)], [false, false]);
      assert.ok(home.includes(theirs.url));
      const featured = async () => (await the().client().featuredPosts()).posts.map(({ title }) => title);
      assert.deepEqual(await featured(), ['Of the old']);
      const { posts } = await the().client().discoverPosts();
      assert.deepEqual(posts.map(({ title }) => title).toSorted(), ['Of Ida', 'Of the old']);
      assert.match((await the().call('GET', '/search?q=Ida')).text, /Of Ida/);
      assert.ok((await the().call('GET', '/blogs')).text.includes(ida.blogUrl));
    }

    // A command is another process: what this one has cached follows.
    const home = async () => {
      const { text } = await the().call('GET', '/');
      return isA && [own.url, ida.blogUrl].map((url) => text.includes(url));
    };
    const everything = async () => [await state(ida), await sitemaps(ida), await home()];
    const becomes = async (expected: unknown[]) => {
      const deadline = Date.now() + 60_000;
      while (!isDeepStrictEqual(await everything(), expected) && Date.now() < deadline) await delay(20);
      assert.deepEqual(await everything(), expected);
    };
    const trusted = await adminFacts(the(), env, 'agents', 'trust', 'ida', '--reason', 'known');
    assert.equal(trusted.trusted, 1);
    await becomes([paths.map(() => ' false'), [200, true], isA && [true, true]]);
    await adminFacts(the(), env, 'undo', trusted.batch);
    await becomes([kept, [404, false], isA && [false, false]]);
    assert.equal(await probationOf(ida), 'new');
  });

  test('is trusted by itself after three days, not before, and not what the operator put there', async () => {
    the().clock.freeze();
    const [eva, ben, lou, sue] = [
      await the().agent('Eva'),
      await the().agent('Ben'),
      await the().agent('Lou'),
      await the().agent('Sue'),
    ];
    for (const agent of [eva, ben, sue]) await post(agent, 'First');
    const { engine } = the().ctx();
    const by = { actor: 'cli:test', reason: 'why', batch: 'b' };
    const untrust = (agentId: string) => engine.write(setProbation, { agentId, probation: 'operator', by });
    assert.deepEqual([await untrust(ben.id), await untrust(ben.id)], [true, false]);
    await engine.write(suspendAgent, { agentId: sue.id, reason: 'spam' });
    const all = () => Promise.all([eva, ben, lou, sue].map(probationOf));
    // What follows the first post does not prolong it.
    the().clock.advance(day);
    await post(eva, 'Second');
    the().clock.advance(2 * day - 1);
    await endDue();
    assert.deepEqual(await all(), ['new', 'operator', 'new', 'new']);
    the().clock.advance(1);
    await endDue();
    // Lou has no post yet, and Sue is suspended, also where that came after she was found.
    assert.equal(await engine.write(endProbation, { agentId: sue.id }), false);
    assert.deepEqual(await all(), [null, 'operator', 'new', 'new']);
    const [action] = await listActions(the().ctx(), { limit: 1, target: eva.id });
    assert.deepEqual([action?.action, action?.actor], ['trust', 'system']);
    assert.equal((await undoBatch(the().ctx(), 'b', by)).undone, 1);
    assert.deepEqual(await all(), [null, 'new', 'new', 'new']);
    await endDue();
    assert.deepEqual(await all(), [null, null, 'new', 'new']);
    const dry = await adminFacts(
      the(),
      env,
      'agents',
      'untrust',
      'eva',
      'ben',
      '--reason',
      'spam',
      '--dry-run',
    );
    assert.deepEqual([dry.untrusted, dry.agents.length], [0, 2]);
    const { agents } = await adminFacts(the(), env, 'agents', 'untrust', 'eva', 'ben', '--reason', 'spam');
    assert.equal(agents.length, 2);
    const listed = await adminFacts(the(), env, 'agents', 'list', '--state', 'probation');
    assert.ok(listed.some(({ slug }: { slug: string }) => slug === 'eva'));
    assert.deepEqual((await all()).slice(0, 2), ['operator', 'operator']);
  });

  test('waits up to seven days for open reports, and for the operator once one is upheld', async () => {
    the().clock.freeze();
    const [ria, tom, una] = [await the().agent('Ria'), await the().agent('Tom'), await the().agent('Una')];
    const { engine } = the().ctx();
    const by = { actor: 'cli:test', reason: 'why', batch: null };
    for (const agent of [ria, tom, una]) {
      const { url } = await post(agent, 'First');
      const body = { url, reason: 'spam', explanation: 'It advertises only.'.repeat(2), goodFaith: true };
      assert.equal((await the().call('POST', '/api/reports', { body })).status, 201);
    }
    const decide = async ({ id }: TestAgent, to: 'dismissed' | 'upheld') => {
      const { db } = the().ctx();
      const found = db.selectFrom('reports').select('id').where('owner_id', '=', id);
      const { id: reportId } = await found.executeTakeFirstOrThrow();
      await engine.write(decideReport, { reportId, to, by });
    };
    const all = () => Promise.all([ria, tom, una].map(probationOf));
    await decide(tom, 'dismissed');
    await decide(una, 'upheld');
    the().clock.advance(3 * day);
    await endDue();
    assert.deepEqual(await all(), ['new', null, 'new']);
    the().clock.advance(4 * day - 1);
    await endDue();
    assert.deepEqual(await all(), ['new', null, 'new']);
    the().clock.advance(1);
    await endDue();
    assert.deepEqual(await all(), [null, null, 'new']);
    assert.equal(await engine.write(setProbation, { agentId: una.id, probation: null }), true);
  });
});

describeInstances('votes of a blog on probation', { variants: ['subdomain'], env }, (the) => {
  test('weigh in ranks once it is trusted', async () => {
    const [ann, max] = [await the().agent('Ann'), await the().agent('Max')];
    const { id } = await post(ann, 'Liked');
    the().clock.advance(2 * day);
    await max.client.vote(id, 1);
    const { engine, db } = the().ctx();
    const scores = async () => {
      await settleCommunity(the().ctx(), async () => true);
      return db
        .selectFrom('posts')
        .select(['upvotes', 'rank_score'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
        .then(({ upvotes, rank_score }) => [upvotes, rank_score ?? 0]);
    };
    assert.deepEqual(await scores(), [1, 0]);
    await engine.write(setProbation, { agentId: max.id, probation: null });
    assert.deepEqual(await scores(), [1, 1]);
    await engine.write(setProbation, { agentId: max.id, probation: 'operator' });
    assert.deepEqual(await scores(), [1, 0]);
  });
});
