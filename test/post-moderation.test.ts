import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listActions } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { adminFacts } from './support/operator.ts';

const by = { actor: 'cli:test', reason: null, batch: null };
const hidden = (reason: string): PostState => ({ state: 'hidden', reason });
const held: PostState = { state: 'held', reason: null };

describeInstances('a post that the operator keeps from the public', {}, (the, variant) => {
  const isA = variant === 'subdomain';
  const moderate = (postId: string, to: PostState, batch: string | null = null) =>
    the()
      .ctx()
      .engine.write(moderatePost, { postId, to, by: { ...by, batch } });
  const page = (url: string, headers = {}) => {
    const { host, pathname } = new URL(url);
    return the().call('GET', pathname, { host, headers });
  };
  const read = (id: string, { key }: Partial<TestAgent> = {}, headers = {}) =>
    the().call('GET', `/api/posts/${id}`, { ...(key === undefined ? {} : { key }), headers });
  const publish = ({ client }: TestAgent, title: string, more: object = {}) =>
    client.publish({ title, content: `About ${title}.`, status: 'published', tags: ['engines'], ...more });

  test('is gone from all that others read, says why, and comes back', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    await publish(ada, 'Other');
    const { post } = await publish(ada, 'Zanzibar');
    if (isA) {
      await bob.client.addComment(post.id, 'Well said.');
      await bob.client.vote(post.id, 1);
    }
    const blog = (path: string) => page(`${ada.blogUrl}${path}`);
    const lists = async () => {
      const paths = ['', '/tags/engines', '/feed.xml', '/feed.json', '/sitemap.xml', '/llms.txt', '/other'];
      const pages = await Promise.all(paths.map(blog));
      const ofAll = ['/', '/api/posts?since=2020-01-01', '/api/search?q=zanzibar', '/api/posts?agent=ada'];
      if (isA) pages.push(...(await Promise.all(ofAll.map((path) => the().call('GET', path)))));
      return pages.map(({ text }) => /Zanzibar|\/(?:zanzibar|moved)</.test(text));
    };
    assert.deepEqual((await lists()).includes(false), false);
    assert.equal((await page(post.url)).status, 200);
    const before = await read(post.id, ada);
    const tag = String(before.headers['etag']);

    const done = await adminFacts(the(), {}, 'hide', post.url, '--reason', 'sells <b>papers</b>');
    assert.equal(done.hidden, 1);
    // By another process: this one learns of it from the list of changes.
    const until = Date.now() + 20_000;
    while ((await lists()).includes(true)) assert.ok(Date.now() < until, 'it is in lists for good');
    let shown = await page(post.url);
    while (shown.status === 200 && Date.now() < until) shown = await page(post.url);
    assert.match(shown.text, /Removed by the operator of this site: sells &lt;b&gt;papers&lt;\/b&gt;/);
    for (const [path, accept] of [
      [`${post.url}.md`, '*/*'],
      [post.url, 'text/markdown'],
      [post.url, 'application/json'],
    ] as const) {
      const other = await page(path, { accept });
      assert.match(other.text, /Removed by the operator of this site: sells <b>papers<\/b>/, accept);
      if (accept.endsWith('json'))
        assert.deepEqual([other.at('code'), other.at('status')], ['withheld', 410]);
    }
    assert.doesNotMatch(shown.text, /Zanzibar/);
    assert.deepEqual([shown.status, (await page(`${post.url}.md`)).status], [410, 410]);
    for (const who of [{}, bob]) {
      const refused = assertProblem(await read(post.id, who), 'withheld');
      assert.equal(refused.at('detail'), 'Removed by the operator of this site: sells <b>papers</b>');
    }
    const lookup = `/api/posts/lookup?url=${encodeURIComponent(post.url)}`;
    assertProblem(await the().call('GET', lookup), 'withheld');
    assertOk(await the().call('GET', lookup, { key: ada.key }));
    if (isA) {
      const on = (path: string, method: string, body?: unknown, key = bob.key) =>
        the().call(method, `/api/posts/${post.id}/${path}`, { key, ...(body ? { body } : {}) });
      for (const key of [ada.key, bob.key]) {
        assertProblem(await on('comments', 'GET', undefined, key), 'not_found');
        assertProblem(await on('comments', 'POST', { content: 'c' }, key), 'not_found');
        assertProblem(await on('vote', 'POST', { vote: 1 }, key), 'not_found');
      }
    }
    const { events } = await ada.client.inbox();
    assert.deepEqual(
      events.map(({ kind, action, reason, post: about }) => [kind, action, reason, about?.id]),
      [['moderated', 'hide', 'sells <b>papers</b>', post.id]],
    );
    const own = assertOk(await read(post.id, ada, { 'if-none-match': tag }));
    assert.deepEqual(
      [own.at('post.moderation.action'), own.at('post.moderation.reason')],
      ['hidden', 'sells <b>papers</b>'],
    );
    const ownTag = String(own.headers['etag']);
    assert.equal((await read(post.id, ada, { 'if-none-match': ownTag })).status, 304);
    const { posts, total } = await ada.client.myPosts();
    assert.deepEqual([posts.map(({ moderation }) => moderation?.action), total], [['hidden', undefined], 2]);

    // Whatever its agent does, it stays hidden.
    await ada.client.updatePost(post.id, { status: 'draft' }, { ifMatch: ownTag });
    assertProblem(await read(post.id), 'not_found');
    assert.equal((await page(post.url)).status, 404);
    const again = await ada.client.updatePost(post.id, { status: 'published', slug: 'moved' });
    assert.match(again.message, /The operator keeps it hidden all the same\.$/);
    assert.equal(again.post.moderation?.action, 'hidden');
    await ada.client.deletePost(post.id);
    assert.equal((await page(again.post.url)).status, 410);
    await ada.client.restorePost(post.id);
    for (const url of [post.url, again.post.url])
      assert.match((await page(url)).text, /Removed by the operator/);
    await the().ctx().engine.write(suspendAgent, { slug: 'ada', reason: 'x' });
    await the().ctx().engine.write(restoreAgent, { slug: 'ada' });
    assertProblem(await read(post.id), 'withheld');
    assert.deepEqual((await lists()).includes(true), false);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);

    const undone = await undoBatch(the().ctx(), done.batch, by);
    assert.deepEqual([undone.undone, undone.left], [1, []]);
    assert.deepEqual((await lists()).includes(false), false);
    assertOk(await read(post.id));
    assert.equal('moderation' in (await ada.client.getPost(post.id)).post, false);
    if (isA) assert.equal((await bob.client.listComments(post.id)).comments.length, 1);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
    const sent = (await the().mails(ada.email)).flatMap(({ email }) => email.subject ?? []);
    assert.ok(sent.includes('A post of the agent ada was hidden'), String(sent));
  });

  test('is named by the address that it had, also from the trash', async () => {
    const eve = await the().agent('Trasher');
    const { post } = await publish(eve, 'Thrown away');
    await eve.client.deletePost(post.id);
    assert.equal((await adminFacts(the(), {}, 'hide', post.id, '--reason', 'sells papers')).hidden, 1);
    const mail = (await the().mails(eve.email)).find(({ email }) => email.subject?.includes('was hidden'));
    assert.ok(mail?.email.text?.includes(post.url), mail?.email.text);
    await eve.client.deletePost(post.id, { permanent: true });
  });

  test("is nobody else's to see while it is held, and published when it is released", async () => {
    const [cleo, dan] = [await the().agent('Cleo'), await the().agent('Dan')];
    const { post } = await publish(cleo, 'Quokka', { status: 'draft' });
    await moderate(post.id, held, 'hold');
    const {
      post: sent,
      warningCodes,
      created,
    } = await cleo.client.publish({
      slug: post.slug,
      status: 'published',
    });
    assert.deepEqual(
      [sent.status, sent.publishedAt, sent.moderation?.action, warningCodes, created],
      ['published', null, 'held', ['held'], false],
    );
    for (const who of [{}, dan]) assertProblem(await read(post.id, who), 'not_found');
    for (const method of ['PATCH', 'DELETE'])
      assertProblem(
        await the().call(method, `/api/posts/${post.id}`, { key: dan.key, body: { title: 't' } }),
        'not_found',
      );
    assert.equal((await page(sent.url)).status, 404);
    assertProblem(
      await the().call('GET', `/api/posts/lookup?url=${encodeURIComponent(sent.url)}`),
      'not_found',
    );
    assert.deepEqual(await findWrongCounts(the().ctx()), []);

    the().clock.advance(60_000);
    await moderate(post.id, null, 'release');
    const released = assertOk(await read(post.id));
    assert.ok(String(released.at('post.publishedAt')) > sent.updatedAt);
    assert.equal((await page(sent.url)).status, 200);
    if (isA) {
      const { text } = await the().call('GET', '/api/search?q=quokka');
      assert.match(text, /Quokka/);
    }
    // Undone and done again, it is in the state that it was in.
    const states = async () => (await cleo.client.getPost(post.id)).post.moderation?.action ?? null;
    await moderate(post.id, hidden('a'), 'a');
    assert.equal((await page(sent.url)).status, 410);
    await moderate(post.id, hidden('b'), 'b');
    assert.equal((await undoBatch(the().ctx(), 'a', by)).undone, 0);
    await undoBatch(the().ctx(), 'b', { ...by, batch: 'c' });
    assert.equal((await cleo.client.getPost(post.id)).post.moderation?.reason, 'a');
    await moderate(post.id, null);
    await undoBatch(the().ctx(), 'c', by);
    assert.equal(await states(), null);
    await undoBatch(the().ctx(), 'release', by);
    assert.equal(await states(), null);
    await moderate(post.id, held, 'again');
    await undoBatch(the().ctx(), 'again', by);
    assert.equal(await states(), null);
    const { id } = post;
    const actions = (await listActions(the().ctx(), { limit: 100, target: id })).map(({ action }) => action);
    const done = ['unhide', 'hold', 'unhide', 'hide', 'hide', 'hide', 'unhide', 'hold'];
    assert.deepEqual(actions, done);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('is found by options or listed, shown first, and hidden with many at once', async () => {
    const eve = await the().agent('Eve', { email: 'eve@spam.example' });
    const fay = await the().agent('Fay');
    const made = [await publish(eve, 'Pills one'), await publish(eve, 'Pills two')];
    const { post: fine } = await publish(fay, 'Pills three');
    const command = ['hide', '--domain', 'spam.example', '--text', 'PILLS', '--reason', 'spam'];
    const dry = await adminFacts(the(), {}, ...command, '--dry-run');
    assert.deepEqual([dry.batch, dry.hidden, dry.posts.length], [null, 0, 2]);
    const first = await adminFacts(the(), {}, ...command);
    assert.equal(first.hidden, 2);
    assert.equal((await adminFacts(the(), {}, ...command)).hidden, 0);
    assert.equal((await read(fine.id)).status, 200);
    const listed = await adminFacts(the(), {}, 'posts', 'list', '--state', 'hidden');
    const ids = made.map(({ post }) => post.id);
    assert.deepEqual(listed.map(({ id }: { id: string }) => id).toSorted(), ids.toSorted());
    const undone = await adminFacts(the(), {}, 'undo', first.batch, '--reason', 'a mistake');
    assert.equal(undone.undone, 2);
    for (const id of ids) assertOk(await read(id));
    await adminFacts(the(), {}, 'hide', ...ids, '--reason', 'spam');
    const shown = await adminFacts(the(), {}, 'unhide', '--domain', 'spam.example', '--reason', 'a mistake');
    assert.equal(shown.shown, 2);
    const sent = (await the().mails(eve.email)).flatMap(({ email }) => email.subject ?? []);
    assert.equal(sent.filter((subject) => / (?:hidden|again)$/.test(subject)).length, 0);
  });

  test('leaves the time of the last post right, also where it happens to a suspended agent', async () => {
    const wes = await the().agent('Wes');
    const posts: string[] = [];
    for (const title of ['First', 'Second', 'Third']) posts.push((await publish(wes, title)).post.id);
    const [, second = '', third = ''] = posts;
    const last = async () =>
      (
        await the()
          .ctx()
          .db.selectFrom('agents')
          .select('last_published_at')
          .where('slug', '=', 'wes')
          .executeTakeFirst()
      )?.last_published_at;
    const times = (await wes.client.myPosts()).posts.map(({ publishedAt }) => publishedAt);
    const whileSuspended = async (run: () => Promise<unknown>) => {
      await the().ctx().engine.write(suspendAgent, { slug: 'wes', reason: 'x' });
      await run();
      await the().ctx().engine.write(restoreAgent, { slug: 'wes' });
      assert.deepEqual(await findWrongCounts(the().ctx()), []);
    };
    await whileSuspended(() => moderate(second, hidden('x')));
    assert.equal(await last(), times[0]);
    await whileSuspended(() => moderate(third, hidden('x')));
    assert.equal(await last(), times[2]);
    await whileSuspended(() => moderate(third, null));
    assert.equal(await last(), times[0]);
  });
});
