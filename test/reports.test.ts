import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller } from '../src/services/agents/callers.ts';
import { listActions } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { listReports } from '../src/services/operators/report-lists.ts';
import { decideReport, expireReports, fileReport, type Decision } from '../src/services/operators/reports.ts';
import { moderateComment } from '../src/services/operators/comment-moderation.ts';
import { examine } from '../src/services/upkeep/doctor.ts';
import { ageOutRevisions } from '../src/services/upkeep/expiry.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { whileLocked } from './support/locked.ts';
import { admin, adminFacts } from './support/operator.ts';

const by = { actor: 'cli:test', reason: null, batch: null };
const explanation = 'Nothing but advertisements for pills.';
const objection = 'These are the prices of a museum shop.';

describeInstances('reports', { env: { LIMIT_REPORT: '0' } }, (the, variant) => {
  const isA = variant === 'subdomain';
  const report = (url: string, more: object = {}, options: { key?: string } = {}) =>
    the().call('POST', '/api/reports', {
      ...options,
      body: { url, reason: 'spam', explanation, goodFaith: true, ...more },
    });
  const publish = ({ client }: TestAgent, title: string, more: object = {}) =>
    client.publish({ title, content: `About ${title}.`, status: 'published', ...more });
  const open = () => listReports(the().ctx(), { limit: 100, state: 'open' });
  const subjects = async (address: string) =>
    (await the().mails(address)).flatMap(({ email }) => email.subject ?? []);

  test('are grouped by what they are about, changed while open, and answered', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { post } = await publish(ada, 'Pills');
    const email = 'eve@example.com';
    const first = assertOk(await report(post.url, { email }), 201);
    const again = assertOk(await report(`${post.url}.md`, { email, reason: 'malware' }));
    assert.equal(again.at('report.id'), first.at('report.id'));
    assertOk(await report(post.url, {}, { key: bob.key }), 201);
    const other = assertOk(await report(ada.blogUrl, { reason: 'impersonation' }), 201);
    assert.equal(other.at('report.state'), 'open');

    const [ofPost, ofBlog, ...none] = await open();
    assert.deepEqual(none, []);
    assert.deepEqual(
      [ofPost?.target, ofPost?.count, ofPost?.reasons, ofPost?.reported, ofPost?.agent?.slug],
      [{ kind: 'post', id: post.id, url: post.url }, 2, ['malware', 'spam'], 'Pills\n\nAbout Pills.', 'ada'],
    );
    assert.deepEqual(
      ofPost?.reports.map((each) => each.by),
      [email, bob.id],
    );
    // What was done to another post of the agent counts, what was done for the agent does not.
    const { post: former } = await publish(ada, 'Former');
    await adminFacts(the(), {}, 'hide', former.id, '--reason', 'A copy of a book.');
    await adminFacts(the(), {}, 'posts', 'feature', post.id, '--reason', 'good');
    const { stdout: queue } = await admin(the(), {}, 'reports');
    const shown = queue.split('\n\n').find((entry) => entry.includes(`${post.id}\n`)) ?? '';
    assert.match(shown, new RegExp(`^post +${post.url}\nid +${post.id}\nagent +ada, since `));
    assert.match(shown, /; posts: 1, comments: 0, earlier actions against it: 1\n/);
    assert.match(shown, /^says +Pills About Pills\.$/m);
    assert.match(shown, new RegExp(`^malware +\\d{4}-\\d\\d-\\d\\d, ${email}: ${explanation}$`, 'm'));
    await adminFacts(the(), {}, 'posts', 'delete', former.id, '--reason', 'test');
    await adminFacts(the(), {}, 'posts', 'unfeature', post.id, '--reason', 'test');
    assert.deepEqual([ofBlog?.target.kind, ofBlog?.target.url], ['agent', ada.blogUrl]);
    const state = (await examine(the().ctx())).find(({ what }) => what === 'reports');
    assert.match(state?.detail ?? '', /^3 are open, the oldest since /);
    assert.deepEqual(await subjects(email), ['Your report was received']);

    // A copy of what it said outlives the post until there is a decision.
    await ada.client.updatePost(post.id, { content: 'Innocent.' });
    const { message } = await ada.client.deletePost(post.id, { permanent: true });
    assert.match(message, /It was reported to the operator, who has a copy until that is decided/);
    assert.deepEqual(
      (await open()).map(({ reported, present }) => [reported, present]),
      [
        ['Pills\n\nAbout Pills.', null],
        ['Ada', 'Ada'],
      ],
    );
    const command = ['report', 'decide', post.id, '--dismiss', '--reason', 'Deleted by its agent.'];
    const tried = await admin(the(), {}, ...command, '--dry-run');
    assert.match(tried.stderr, /^2 reports would be dismissed\. Nothing was changed\.$/m);
    const decided = await adminFacts(the(), {}, ...command);
    assert.equal(decided.dismissed, 2);
    assert.deepEqual(tried.stdout.split('\n'), decided.reports);
    assert.equal((await open()).length, 1);
    const [, mail] = await the().mails(email);
    assert.equal(mail?.email.subject, 'Your report was decided');
    assert.match(mail?.email.text ?? '', /Deleted by its agent\./);
    await undoBatch(the().ctx(), decided.batch, { ...by, batch: 'again' });
    assert.equal((await open()).length, 2);
    await undoBatch(the().ctx(), 'again', by);
    const log = await listActions(the().ctx(), { limit: 100, target: String(first.at('report.id')) });
    assert.deepEqual(
      log.map(({ action }) => action),
      ['dismiss-report', 'reopen-report', 'dismiss-report'],
    );
    const stored = () => the().ctx().db.selectFrom('reports').selectAll().orderBy('id').execute();
    await the().ctx().engine.write(expireReports, null);
    assert.deepEqual(
      (await stored()).map(({ snapshot }) => snapshot),
      [null, null, 'Ada'],
    );
    the().clock.advance(31 * 24 * 3_600_000);
    await the().ctx().engine.write(expireReports, null);
    assert.deepEqual(
      (await stored()).map((row) => [row.email, row.snapshot, row.state]),
      [
        [null, null, 'dismissed'],
        [null, null, 'dismissed'],
        [null, null, 'open'],
      ],
    );
    the().clock.advance(731 * 24 * 3_600_000);
    await the().ctx().engine.write(expireReports, null);
    assert.equal((await stored()).length, 1);
  });

  test('keep the name and address of whoever changes them, and confirm a new address', async () => {
    const [gus, hal] = [await the().agent('Gus'), await the().agent('Hal')];
    const { post } = await publish(gus, 'Watches');
    const said = async () => {
      const found = (await open()).find(({ target }) => target.id === post.id);
      return found?.reports.map(({ name, reason }) => [name, reason]);
    };
    const send = async (more: object) => assertOk(await report(post.url, more, { key: hal.key }));
    assertOk(await report(post.url, {}, { key: hal.key }), 201);
    const email = 'hal.reports@example.com';
    await send({ name: 'Hal', email });
    await send({ name: 'Hal', email });
    await send({ reason: 'malware' });
    assert.deepEqual(await said(), [['Hal', 'malware']]);
    await adminFacts(the(), {}, 'report', 'decide', post.id, '--dismiss', '--reason', 'None of that.');
    assert.deepEqual((await subjects(email)).toSorted(), [
      'Your report was decided',
      'Your report was received',
    ]);
  });

  test('name what is public here, and who reports where the law is meant', async () => {
    const [cleo, dan] = [await the().agent('Cleo'), await the().agent('Dan')];
    const { post } = await publish(cleo, 'Stolen');
    const { post: draft } = await publish(cleo, 'Draft', { status: 'draft' });
    const nowhere = [
      'https://other.example/a',
      `${the().baseUrl}/docs`,
      draft.url,
      `${post.url}#comment-${draft.id}`,
    ];
    for (const url of [...nowhere, 'no address']) assertProblem(await report(url), 'not_found');
    for (const faulty of [
      { explanation: 'short' },
      { goodFaith: false },
      { reason: 'dislike' },
      { email: 'x' },
    ])
      assertProblem(await report(post.url, faulty), 'invalid_input');
    const unnamed = assertProblem(await report(post.url, { reason: 'copyright' }), 'invalid_input');
    assert.deepEqual([unnamed.at('errors.0.field'), unnamed.at('errors.1.field')], ['name', 'email']);
    assertOk(await report(post.url, { reason: 'copyright' }, { key: dan.key }), 201);
    const secret = `It shows the key ${dan.key} to everybody.`;
    assertOk(await report(post.url, { explanation: secret, name: 'Eve' }), 201);
    const [found] = (await open()).filter(({ target }) => target.id === post.id);
    assert.deepEqual(
      found?.reports.map((each) => [each.by, each.explanation]),
      [
        [dan.id, explanation],
        ['Eve', 'It shows the key (a key or token) to everybody.'],
      ],
    );
    if (isA) {
      const { comment } = await dan.client.addComment(post.id, 'Buy pills!');
      const first = assertOk(await report(comment.url), 201);
      // From the page of all comments too, which is no blog.
      const onPage = `${cleo.blogUrl}/-/comments/${post.slug}#comment-${comment.id}`;
      assert.equal(assertOk(await report(onPage)).at('report.id'), first.at('report.id'));
      const [ofComment] = (await open()).filter(({ target }) => target.id === comment.id);
      assert.deepEqual([ofComment?.agent?.slug, ofComment?.reported], ['dan', 'Buy pills!']);
      await the().ctx().engine.write(moderateComment, { commentId: comment.id, to: 'held' });
      assertProblem(await report(comment.url), 'not_found');
      await the().ctx().engine.write(moderateComment, { commentId: comment.id, to: null });
    }

    // What is done about it upholds them, and a hidden post can not be reported again.
    await adminFacts(the(), {}, 'hide', post.id, '--reason', 'A copy of a book.');
    assert.equal(
      (await open()).some(({ target }) => target.id === post.id),
      false,
    );
    assert.ok((await subjects(dan.email)).includes('Your report was decided'));
    assertProblem(await report(post.url), 'not_found');
    assertOk(await report(cleo.blogUrl), 201);
    await the().ctx().engine.write(suspendAgent, { slug: 'cleo', reason: 'Only copies.' });
    assertProblem(await report(cleo.blogUrl), 'not_found');
    const upheld = await listReports(the().ctx(), { limit: 100, state: 'upheld' });
    assert.deepEqual(
      upheld.map(({ reports }) => reports.map(({ decision }) => decision)),
      [['A copy of a book.', 'A copy of a book.'], ['Only copies.']],
    );
    await the().ctx().engine.write(restoreAgent, { slug: 'cleo' });
    // Who reported is forgotten with the agent.
    await dan.client.deleteMe({ confirm: 'dan' });
    const rows = await the().ctx().db.selectFrom('reports').selectAll().execute();
    assert.doesNotMatch(
      JSON.stringify(rows.map((row) => ({ ...row, owner_id: '' }))),
      new RegExp(`${dan.id}|dan@`),
    );
  });
});

describeInstances(
  'what a report shows',
  { env: { LIMIT_REPORT: '0', REVISION_DAYS: '7' } },
  (the, variant) => {
    let reporters = 0;
    const report = async (url: string) => {
      const email = `reader${++reporters}@example.com`;
      const body = { url, reason: 'spam', explanation, goodFaith: true, email };
      return String(assertOk(await the().call('POST', '/api/reports', { body }), 201).at('report.id'));
    };
    const dismiss = (reportId: string) =>
      the().ctx().engine.write(decideReport, { reportId, to: 'dismissed', by });
    const shown = async (...ids: string[]) => {
      await the().ctx().engine.write(ageOutRevisions, null);
      await the().ctx().engine.write(expireReports, null);
      const { db } = the().ctx();
      const rows = await db.selectFrom('reports').select(['id', 'snapshot']).where('id', 'in', ids).execute();
      return ids.map((id) => rows.find((row) => row.id === id)?.snapshot ?? null);
    };
    const copied = / It was reported to the operator, who has a copy until that is decided/;

    test('goes with the revision that it is of, once the report is decided', async () => {
      const { client } = await the().agent('Ada');
      const { post } = await client.publish({ title: 'One', content: 'first', status: 'published' });
      const first = await report(post.url);
      await client.updatePost(post.id, { content: 'second' });
      const second = await report(post.url);
      await client.updatePost(post.id, { title: 'Three', content: 'third' });
      const third = await report(post.url);

      // The second is no longer present, but kept.
      for (const id of [first, second]) await dismiss(id);
      assert.deepEqual(await shown(first, second, third), [
        'One\n\nfirst',
        'One\n\nsecond',
        'Three\n\nthird',
      ]);
      const said = async (revision: number) => (await client.eraseRevision(post.id, revision)).message;
      assert.match(await said(1), /^Erased the texts of one revision\.$/);
      assert.deepEqual(await shown(first, second, third), [null, 'One\n\nsecond', 'Three\n\nthird']);
      await client.updatePost(post.id, { content: 'fourth' });
      assert.match(await said(3), copied);
      assert.deepEqual(await shown(second, third), ['One\n\nsecond', 'Three\n\nthird']);
      await dismiss(third);
      assert.deepEqual(await shown(second, third), ['One\n\nsecond', null]);

      the().clock.advance(8 * 24 * 3_600_000);
      assert.deepEqual(await shown(second), [null]);
    });

    test('is kept of a report that is made again when the copy of the first has ended', async () => {
      const [{ client }, { key }] = [await the().agent('Ivy'), await the().agent('Jon')];
      const { post } = await client.publish({ title: 'Old', content: 'mild', status: 'published' });
      const body = { url: post.url, reason: 'spam', explanation, goodFaith: true };
      const first = assertOk(await the().call('POST', '/api/reports', { key, body }), 201);
      the().clock.advance(31 * 24 * 3_600_000);
      assert.deepEqual(await shown(String(first.at('report.id'))), [null]);
      await client.updatePost(post.id, { content: 'bad' });
      assertOk(await the().call('POST', '/api/reports', { key, body }));
      const { db } = the().ctx();
      const all = await db.selectFrom('reports').select('id').where('target_id', '=', post.id).execute();
      const texts = await shown(...all.map((row) => row.id));
      assert.deepEqual(
        texts.filter((text) => text !== null),
        ['Old\n\nbad'],
      );
    });

    test('is each text that was reported, whoever reported what came before', async () => {
      const [gus, hal] = [await the().agent('Gus'), await the().agent('Hal')];
      const send = async (url: string, key?: string) => {
        const body = { url, reason: 'spam', explanation, goodFaith: true };
        return the().call('POST', '/api/reports', { ...(key === undefined ? {} : { key }), body });
      };
      const texts = async (id: string) => {
        const entries: { target: { id: string }; texts: string[]; count: number }[] = await adminFacts(
          the(),
          {},
          'reports',
        );
        const found = entries.find(({ target }) => target.id === id);
        return [found?.texts, found?.count];
      };
      const { post } = await gus.client.publish({ title: 'Tea', content: 'mild', status: 'published' });
      assertOk(await send(post.url), 201);
      await gus.client.updatePost(post.id, { content: 'bad' });
      const first = assertOk(await send(post.url, hal.key), 201);
      assertOk(await send(post.url, hal.key));
      assert.deepEqual(await texts(post.id), [['Tea\n\nmild', 'Tea\n\nbad'], 2]);
      await gus.client.updatePost(post.id, { content: 'worse' });
      // What the same reporter saw before is not lost for it.
      for (const _ of [1, 2]) {
        const again = assertOk(await send(post.url, hal.key));
        assert.equal(again.at('report.id'), first.at('report.id'));
      }
      const all = ['Tea\n\nmild', 'Tea\n\nbad', 'Tea\n\nworse'];
      assert.deepEqual(await texts(post.id), [all, 3]);
      await gus.client.deletePost(post.id, { permanent: true });
      assert.deepEqual(await texts(post.id), [all, 3]);
      const { stdout } = await admin(the(), {}, 'reports');
      assert.match(stdout, /^said then +Tea mild\nsaid then +Tea bad\nsaid then +Tea worse$/m);

      // Comments and profiles have no revisions.
      assertOk(await send(gus.blogUrl), 201);
      await gus.client.updateMe({ bio: 'bad' });
      assertOk(await send(gus.blogUrl));
      assertOk(await send(gus.blogUrl, hal.key), 201);
      assert.deepEqual(await texts(gus.id), [['Gus', 'Gus\n\nbad'], 3]);
      if (variant !== 'subdomain') return;
      const { post: at } = await hal.client.publish({ title: 'At', content: 'text', status: 'published' });
      const { comment } = await gus.client.addComment(at.id, 'mild');
      assertOk(await send(comment.url), 201);
      await gus.client.editComment(at.id, comment.id, 'bad');
      assertOk(await send(comment.url, hal.key), 201);
      assert.deepEqual(await texts(comment.id), [['mild', 'bad'], 2]);
    });

    test('goes with a comment, also where that is kept for its answers', async () => {
      if (variant !== 'subdomain') return;
      const [bob, cleo] = [await the().agent('Bob'), await the().agent('Cleo')];
      const { post } = await bob.client.publish({ title: 'Two', content: 'text', status: 'published' });
      const { comment } = await cleo.client.addComment(post.id, 'Buy pills!');
      await bob.client.addComment(post.id, 'Please do not.', { parentId: comment.id });
      const id = await report(comment.url);
      await dismiss(id);
      assert.deepEqual(await shown(id), ['Buy pills!']);
      await cleo.client.deleteComment(post.id, comment.id);
      const { db } = the().ctx();
      const left = await db.selectFrom('comments').select('content').where('id', '=', comment.id).execute();
      assert.deepEqual(
        left.map(({ content }) => content),
        [''],
      );
      assert.deepEqual(await shown(id), [null]);
    });
  },
);

describeInstances('reports of one moment', {}, (the) => {
  test('have one copy of what they are about', async () => {
    const ctx = the().ctx();
    // SQLite has one writer.
    if (ctx.config.database.engine !== 'postgres') return;
    const ada = await the().agent('Ada');
    const { post } = await ada.client.publish({ title: 'Pills', content: 'Buy.', status: 'published' });
    const report = (address: string) =>
      fileReport(
        ctx,
        { url: post.url, reason: 'spam', explanation },
        { caller: null, address, network: address },
      );
    await whileLocked(ctx, { statement: 'lock table reports in share mode', waiting: 2 }, () =>
      ['203.0.113.1', '203.0.113.2'].map(report),
    );
    const rows = await ctx.db.selectFrom('reports').select('snapshot').execute();
    const texts = rows.map(({ snapshot }) => snapshot ?? 'none').toSorted();
    assert.deepEqual(texts, ['Pills\n\nBuy.', 'none']);
  });
});

describeInstances('a report', {}, (the) => {
  const reportOf = (url: string, email: string) =>
    fileReport(
      the().ctx(),
      { url, reason: 'spam', explanation, email },
      { caller: null, address: '203.0.113.1', network: 'n' },
    );
  const decide = (reportId: string, to: Decision) =>
    the()
      .ctx()
      .engine.write(decideReport, { reportId, to, by: { ...by, batch: reportId } });
  const states = async () => {
    const rows = await the().ctx().db.selectFrom('reports').select('state').orderBy('id').execute();
    return rows.map(({ state }) => state);
  };

  test('that was made again after its decision stays decided', async () => {
    const ctx = the().ctx();
    const ada = await the().agent('Ada');
    const { report: former } = await reportOf(ada.blogUrl, 'eve@example.com');
    await decide(former.id, 'dismissed');
    assert.equal((await reportOf(ada.blogUrl, 'eve@example.com')).created, true);
    assert.deepEqual(await undoBatch(ctx, former.id, by), { undone: 0, left: [former.id], final: 0 });
    const reopened = await adminFacts(the(), {}, 'report', 'decide', former.id, '--reopen', '--reason', 'x');
    assert.deepEqual([reopened.open, reopened.batch], [0, null]);
    assert.deepEqual(await states(), ['dismissed', 'open']);

    // SQLite has one writer.
    if (ctx.config.database.engine !== 'postgres') return;
    const bob = await the().agent('Bob');
    const { report: first } = await reportOf(bob.blogUrl, 'eve@example.com');
    await decide(first.id, 'upheld');
    await whileLocked<unknown>(ctx, { statement: 'lock table reports in share mode', waiting: 2 }, () => [
      decide(first.id, 'open'),
      reportOf(bob.blogUrl, 'eve@example.com'),
    ]);
    const open = await listReports(ctx, { limit: 100, state: 'open' });
    assert.deepEqual(
      open.map(({ count }) => count),
      [1, 1],
    );
  });

  test('has one decision of two at once', async () => {
    const ctx = the().ctx();
    if (ctx.config.database.engine !== 'postgres') return;
    const cleo = await the().agent('Cleo');
    const { report } = await reportOf(cleo.blogUrl, 'dan@example.com');
    const done = await whileLocked(ctx, { statement: 'lock table reports in share mode', waiting: 2 }, () => [
      decide(report.id, 'dismissed'),
      decide(report.id, 'upheld'),
    ]);
    assert.equal(done.filter(Boolean).length, 1);
    assert.equal((await listActions(ctx, { limit: 100, target: report.id })).length, 1);
    const mails = await the().mails('dan@example.com');
    assert.deepEqual(
      mails.map(({ email }) => email.subject),
      ['Your report was received', 'Your report was decided'],
    );
  });
});

describeInstances('an agent of which something was reported', {}, (the) => {
  test('is told that the operator has a copy, when it erases itself', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { post } = await ada.client.publish({ title: 'Pills', content: 'Buy.', status: 'published' });
    const body = { url: post.url, reason: 'spam', explanation, goodFaith: true };
    assertOk(await the().call('POST', '/api/reports', { body }), 201);
    const erase = async ({ key, slug }: TestAgent) =>
      String(assertOk(await the().call('DELETE', `/api/me?confirm=${slug}`, { key })).at('message'));
    assert.match(await erase(ada), / Something of it was reported to the operator, who has a copy until/);
    assert.match(await erase(bob), /and everything that belonged to it\.$/);
    const [kept] = await listReports(the().ctx(), { limit: 1, state: 'open' });
    assert.equal(kept?.reported, 'Pills\n\nBuy.');
  });
});

describeInstances('what an agent has reported', {}, (the) => {
  test('names it no more once it is erased, nor in mail that waits', async () => {
    const ctx = the().ctx();
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { post } = await ada.client.publish({ title: 'Pills', content: 'Buy.', status: 'published' });
    const caller = { id: bob.id, slug: bob.slug } as Caller;
    const report = () =>
      fileReport(
        ctx,
        { url: post.url, reason: 'copyright', explanation, name: 'Bob', email: bob.email },
        { caller, address: '203.0.113.1', network: 'n' },
      );
    await report();
    const waits = () =>
      ctx.db.selectFrom('outbox').select('id').where('kind', '=', 'report-received').execute();
    assert.equal((await waits()).length, 1);
    assertOk(await the().call('DELETE', `/api/me?confirm=${bob.slug}`, { key: bob.key }));
    assert.deepEqual(await waits(), []);
    await assert.rejects(report(), { code: 'unauthorized' });
    const rows = await ctx.db.selectFrom('reports').select(['agent_id', 'name', 'email']).execute();
    assert.deepEqual(
      rows.map((row) => Object.values(row)),
      [[null, null, null]],
    );
  });
});

describeInstances('the limit on reports', { env: { LIMIT_REPORT: '2' } }, (the) => {
  test('counts those of an address, and those of an agent', async () => {
    const ada = await the().agent('Ada');
    const send = (key?: string) =>
      the().call('POST', '/api/reports', {
        ...(key === undefined ? {} : { key }),
        body: { url: ada.blogUrl, reason: 'other', explanation, goodFaith: true },
      });
    for (const key of [undefined, ada.key]) {
      assertOk(await send(key), 201);
      assertOk(await send(key));
      assert.match(
        String(assertProblem(await send(key), 'rate_limited').at('detail')),
        /'report' calls an hour/,
      );
    }
  });
});

describeInstances(
  'the report page',
  { env: { LIMIT_REPORT: '4', ABUSE_EMAIL: 'abuse@masthead.example' } },
  (the) => {
    const send = (fields: Readonly<Record<string, string>>) =>
      the().call('POST', '/-/report', {
        body: new URLSearchParams(fields).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });

    test('is linked from blogs and posts, and works without a script', async () => {
      const ada = await the().agent('Ada');
      const { post } = await ada.client.publish({ title: 'A & B', content: 'c', status: 'published' });
      for (const address of [post.url, ada.blogUrl]) {
        const { host, pathname } = new URL(address);
        const { text } = await the().call('GET', pathname, { host });
        const [, href = ''] = /<a rel="nofollow" href="([^"]*)">Report<\/a>/.exec(text) ?? [];
        assert.equal(new URL(href.replaceAll('&amp;', '&')).searchParams.get('url'), address);
        assert.ok(href.startsWith(`${the().baseUrl}/-/report?url=`), href);
      }
      const asked = `"><script>${post.url}`;
      const form = await the().call('GET', `/-/report?url=${encodeURIComponent(asked)}`);
      assert.equal(form.status, 200);
      assert.match(form.text, /value="&quot;&gt;&lt;script&gt;http/);
      assert.match(form.text, /You can also write to abuse@masthead\.example\./);
      assert.match(String(form.headers['content-security-policy']), /form-action 'self'/);
      const ids = [...form.text.matchAll(/<(?:input|select|textarea) id="(\w+)"/g)].map(([, id]) => id);
      assert.deepEqual(ids, ['url', 'reason', 'explanation', 'name', 'email']);
      for (const id of ids) assert.ok(form.text.includes(`<label for="${id}">`), id);
      assert.doesNotMatch(form.text, /<script|style=/);

      const fields = {
        url: post.url,
        reason: 'copyright',
        explanation,
        name: '',
        email: '',
        goodFaith: 'true',
      };
      const faulty = await send({ ...fields, goodFaith: '', explanation: '<b>' });
      assert.equal(faulty.status, 400);
      assert.match(faulty.text, /role="alert"/);
      assert.match(faulty.text, /The explanation must be 20 to 2000 characters, is 3/);
      assert.match(faulty.text, /<option value="copyright" selected>/);
      assert.match(faulty.text, />\s*&lt;b&gt;<\/textarea>/);
      const unnamed = await send(fields);
      assert.match(unnamed.text, /Your e-mail address is required where the reason is/);
      const done = await send({ ...fields, name: 'Eve', email: 'eve@example.com' });
      assert.equal(done.status, 201, done.text);
      const [stored] = await listReports(the().ctx(), { limit: 1, state: 'open' });
      assert.equal(stored?.reports[0]?.by, 'eve@example.com');
      assert.ok(done.text.includes(stored.reports[0].id));
      assert.equal((await the().mails('eve@example.com')).length, 1);
      assert.equal((await send({ ...fields, url: `${post.url}-none` })).status, 404);
      assert.equal((await send(fields)).status, 429);
    });
  },
);

describeInstances('what a complaint names', {}, (the, variant) => {
  const isA = variant === 'subdomain';

  test('is found by its address, a former one too, wherever an operator names it', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { post } = await ada.client.publish({ title: 'Old', content: 'c', status: 'published' });
    await ada.client.updatePost(post.id, { slug: 'new' });
    const run = (...args: readonly string[]) => adminFacts(the(), {}, ...args);
    const why = ['--reason', 'test'];
    const about = async (url: string, more: object = {}) =>
      assertOk(
        await the().call('POST', '/api/reports', {
          body: { url, reason: 'spam', explanation, goodFaith: true, ...more },
        }),
        201,
      );
    const log = async (target: string) =>
      (await run('log', '--target', target)).map(({ action }: { action: string }) => action);

    await about(post.url, { reason: 'illegal', name: 'Eve Carter', email: 'eve@example.com' });
    const { stdout: queue } = await admin(the(), {}, 'reports');
    assert.match(queue, /^illegal +\S+, Eve Carter, eve@example\.com: /m);
    assert.equal((await run('report', 'decide', post.url, '--dismiss', ...why)).dismissed, 1);
    assert.equal((await run('hide', `${post.url}.md`, ...why)).hidden, 1);
    await ada.client.appeal({ text: objection });
    assert.equal((await run('appeal', 'decide', post.url, '--grant', ...why)).granted, 1);
    assert.deepEqual(await log(post.url), ['unhide', 'hide']);

    await about(bob.blogUrl);
    // What was decided either way can be decided again.
    for (const [choice, to] of [
      ['--uphold', 'upheld'],
      ['--reopen', 'open'],
      ['--dismiss', 'dismissed'],
      ['--reopen', 'open'],
      ['--uphold', 'upheld'],
    ] as const)
      assert.equal((await run('report', 'decide', 'bob', choice, ...why))[to], 1, choice);
    // A post is not its agent: with the address of one, nothing is done to all others.
    const { code, stderr } = await admin(the(), {}, 'agents', 'suspend', post.url, ...why);
    assert.deepEqual([code === 0, /There is no agent with/.test(stderr)], [false, true]);
    assert.equal((await run('agents', 'suspend', `${bob.blogUrl}/`, ...why)).suspended, 1);
    assert.equal((await run('agents', 'show', bob.blogUrl)).slug, 'bob');
    assert.deepEqual(await log('BOB@example.com'), ['suspend']);
    await bob.client.appeal({ text: objection });
    assert.equal((await run('appeal', 'decide', 'bob', '--uphold', ...why)).upheld, 1);

    if (isA) {
      const { comment } = await ada.client.addComment(post.id, 'Pills!');
      assert.equal((await run('comments', 'remove', comment.url, ...why)).removed, 1);
      assert.deepEqual(await log(comment.url), ['remove-comment']);
      const { comment: other } = await ada.client.addComment(post.id, 'More pills!');
      assert.equal((await run('comments', 'delete', other.url, comment.url, ...why)).deleted, 2);
    }
    for (const url of ['https://other.example/a/b', `${ada.blogUrl}/none`]) {
      const refused = await admin(the(), {}, 'hide', url, ...why);
      assert.deepEqual([refused.code === 0, /There is no post at/.test(refused.stderr)], [false, true]);
    }
  });
});
