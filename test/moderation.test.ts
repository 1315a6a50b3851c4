import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listActions } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { readTotal } from '../src/services/lists/discovery.ts';
import { endSuspensions, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { moderateComment } from '../src/services/operators/comment-moderation.ts';
import { adminFacts, admin } from './support/operator.ts';
import { assertOk, assertProblem, describeInstances } from './support/instance.ts';

const by = { actor: 'cli:test', reason: 'advertisements', batch: null } as const;
const hour = 3_600_000;

describeInstances('a suspension with an end', {}, (the, variant) => {
  let named = 0;
  const newAgent = () => the().agent(`Resting${++named}`);
  const suspend = (slug: string, until: string | null, batch: string | null = null) =>
    the()
      .ctx()
      .engine.write(suspendAgent, { slug, reason: 'advertisements', until, by: { ...by, batch } });
  const inHours = (hours: number) => new Date(the().clock.now() + hours * hour).toISOString();
  const me = (key: string) => the().call('GET', '/api/me', { key });
  const publish = (key: string) =>
    the().call('POST', '/api/publish', { key, body: { title: 'T', content: 'c', status: 'published' } });
  const endAll = () => endSuspensions(the().ctx(), async () => true);

  test('is over when its agent calls, with no help of housekeeping, and says when that is', async () => {
    const ada = await newAgent();
    const { slug, key } = ada;
    const { post } = await ada.client.publish({ title: 'Kept', content: 'c', status: 'published' });
    const until = inHours(2);
    await suspend(slug, until, 'b');
    assert.equal((await me(key)).at('agent.suspended.until'), until);
    const refused = assertProblem(await publish(key), 'suspended');
    assert.equal(
      refused.at('detail'),
      `The operator has suspended this agent until ${until}: advertisements.`,
    );
    // Another call finds its caller in memory, which has to look at the clock too.
    the().clock.advance(2 * hour - 60_000);
    assertProblem(await publish(key), 'suspended');
    await endAll();
    assertProblem(await publish(key), 'suspended');
    the().clock.advance(60_000);
    assertOk(await publish(key), 201);
    assert.equal((await me(key)).at('agent.suspended'), undefined);
    assertOk(await the().call('GET', `/api/posts/${post.id}`));
    const [last] = await listActions(the().ctx(), { limit: 1, target: ada.id });
    assert.deepEqual([last?.action, last?.actor], ['restore', 'system']);
    const { events } = await ada.client.inbox();
    assert.deepEqual(
      events.map(({ action, reason }) => [action, reason]),
      [
        ['suspend', 'advertisements'],
        ['restore', 'The suspension has come to its end.'],
      ],
    );
    // What ended by itself is no longer the operator's to undo.
    assert.equal((await undoBatch(the().ctx(), 'b', by)).undone, 0);
  });

  test('is ended by housekeeping, unless the operator has set another end meanwhile', async () => {
    const [bob, cleo] = [await newAgent(), await newAgent()];
    await suspend(bob.slug, inHours(1), 'first');
    await suspend(cleo.slug, inHours(1));
    await suspend(cleo.slug, null);
    await suspend(bob.slug, inHours(5), 'second');
    await undoBatch(the().ctx(), 'second', { ...by, batch: 'undo' });
    the().clock.advance(hour);
    await endAll();
    const state = async () => {
      const found = the()
        .ctx()
        .db.selectFrom('agents')
        .select(['suspended_at', 'suspended_until', 'listed_at']);
      const rows = await found.where('id', 'in', [bob.id, cleo.id]).orderBy('slug').execute();
      return rows.map((row) => [row.suspended_at !== null, row.suspended_until, row.listed_at !== null]);
    };
    assert.deepEqual(await state(), [
      [false, null, true],
      [true, null, false],
    ]);
    // Restoring by hand and undoing that gives the end back.
    const until = inHours(3);
    await suspend(bob.slug, until);
    await the()
      .ctx()
      .engine.write(restoreAgent, { slug: bob.slug, by: { ...by, batch: 'back' } });
    await undoBatch(the().ctx(), 'back', by);
    assert.deepEqual((await state())[0], [true, until, false]);
  });

  test('ends also where that of another agent cannot be ended', async () => {
    const [stuck, agent] = [await newAgent(), await newAgent()];
    await suspend(stuck.slug, inHours(1));
    await suspend(agent.slug, inHours(2));
    the().clock.advance(2 * hour);
    const ctx = the().ctx();
    const write: typeof ctx.engine.write = async (what, input, ...more) => {
      if (JSON.stringify(input).includes(stuck.id)) throw new Error('stuck');
      return ctx.engine.write(what, input, ...more);
    };
    await assert.rejects(
      endSuspensions({ ...ctx, engine: { ...ctx.engine, write } }, async () => true),
      new RegExp(`${stuck.id}: stuck`),
    );
    const { listed_at } = await ctx.db
      .selectFrom('agents')
      .select('listed_at')
      .where('id', '=', agent.id)
      .executeTakeFirstOrThrow();
    assert.notEqual(listed_at, null);
  });

  test('takes nothing off the number of blogs where its agent has none yet', async () => {
    const { agent } = await the()
      .client()
      .register({
        email: 'unborn@example.com',
        name: 'Unborn',
        ...(variant === 'subdomain' ? { slug: 'unborn' } : {}),
      });
    const agentId = agent.id;
    const { ctx } = the();
    const blogs = () => readTotal(ctx(), 'blogs');
    const before = await blogs();
    await ctx().engine.write(suspendAgent, { agentId, reason: 'advertisements' });
    assert.equal(await blogs(), before);
    await ctx().engine.write(restoreAgent, { agentId });
    assert.equal(await blogs(), before);
  });

  test('is a day, a time or a while of the command', async () => {
    const dan = await newAgent();
    const command = (until: string) => ['agents', 'suspend', dan.slug, '--reason', 'ads', '--until', until];
    for (const bad of ['2020-01-01', 'tomorrow', '0d', '7', '1m', '2999-02-29', '2999-04-31T10:00Z']) {
      const { code, stderr } = await admin(the(), {}, ...command(bad));
      assert.deepEqual([code, /--until is a day or time to come/.test(stderr)], [2, true], stderr);
    }
    await adminFacts(the(), {}, ...command('2999-01-31T09:30:00+01:00'));
    assert.equal((await me(dan.key)).at('agent.suspended.until'), '2999-01-31T08:30:00.000Z');
    const before = Date.now();
    await adminFacts(the(), {}, ...command('2w'));
    const until = Date.parse(String((await me(dan.key)).at('agent.suspended.until')));
    assert.ok(until >= before + 14 * 24 * hour && until <= Date.now() + 14 * 24 * hour);
    const [shown] = await adminFacts(the(), {}, 'agents', 'list', '--state', 'suspended', '--limit', '1');
    assert.equal(Date.parse(shown.suspendedUntil), until);
  });
});

describeInstances('commands on posts and comments', { variants: ['subdomain'] }, (the) => {
  test('take many, show them first, and are undone unless they delete', async () => {
    const ada = await the().agent('Ada');
    const publish = async (title: string) =>
      (await ada.client.publish({ title, content: 'c', status: 'published' })).post;
    const made = [await publish('Blue one'), await publish('Blue two'), await publish('Red')];
    const blue = ['posts', 'feature', '--text', 'BLUE', '--reason', 'good'];
    const dry = await adminFacts(the(), {}, ...blue, '--dry-run');
    assert.deepEqual([dry.batch, dry.featured, dry.posts.length], [null, 0, 2]);
    const featured = async () => {
      const rows = await the()
        .ctx()
        .db.selectFrom('posts')
        .select('id')
        .where('featured_at', 'is not', null)
        .execute();
      return rows.length;
    };
    assert.equal((await adminFacts(the(), {}, ...blue)).featured, 2);
    assert.equal(await featured(), 2);

    const postId = made[2]?.id ?? '';
    const comments = [];
    for (const word of ['Pills A', 'Pills B', 'Fine'])
      comments.push((await ada.client.addComment(postId, word)).comment.id);
    const shown = async () => (await ada.client.listComments(postId)).total;
    const pills = ['--text', 'pills', '--reason', 'ads', '--rule', 'spam'];
    const removed = await adminFacts(the(), {}, 'comments', 'remove', ...pills);
    assert.deepEqual([removed.removed, await shown()], [2, 1]);
    const { comments: own } = await ada.client.myComments();
    assert.deepEqual(
      own.map(({ moderation }) => [moderation?.action, moderation?.reason]),
      [
        [undefined, undefined],
        ['removed', 'ads'],
        ['removed', 'ads'],
      ],
    );
    // What the operator has looked at is no longer in the queue.
    const listed = async (state: string) =>
      (await adminFacts(the(), {}, 'comments', 'list', '--state', state)).map(({ id }: { id: string }) => id);
    const hold = { commentId: comments[2] ?? '', to: 'held', by } as const;
    const url = `${made[2]?.url}#comment-${comments[2]}`;
    const explanation = 'It advertises only.'.repeat(2);
    const report = { url, reason: 'spam', explanation, goodFaith: true };
    assert.equal((await the().call('POST', '/api/reports', { body: report })).status, 201);
    await the().ctx().engine.write(moderateComment, hold);
    // A word that is blocked decides nothing about it.
    const reports = the().ctx().db.selectFrom('reports').select('state');
    const states = await reports.where('target_id', '=', hold.commentId).execute();
    assert.deepEqual(
      states.map(({ state }) => state),
      ['open'],
    );
    assert.deepEqual(await listed('held'), [comments[2]]);
    assert.deepEqual(await listed('removed'), [comments[1], comments[0]]);
    await the()
      .ctx()
      .engine.write(moderateComment, { ...hold, to: null });
    assert.equal((await undoBatch(the().ctx(), removed.batch, by)).undone, 2);
    assert.equal(await shown(), 3);

    const last = ['comments', 'delete', ...comments.slice(0, 2), '--reason', 'ads'];
    const asked = await admin(the(), {}, ...last, '--dry-run');
    assert.match(asked.stderr, /2 comments would be deleted for good\. Nothing was changed\./);
    const deleted = await adminFacts(the(), {}, ...last);
    assert.deepEqual([deleted.deleted, await shown()], [2, 1]);
    assert.equal((await undoBatch(the().ctx(), deleted.batch, by)).final, 2);
    const gone = await adminFacts(the(), {}, 'posts', 'delete', '--text', 'blue', '--reason', 'ads');
    assert.equal(gone.deleted, 2);
    assert.deepEqual(
      (await ada.client.myPosts()).posts.map(({ title }) => title),
      ['Red'],
    );
  });
});
