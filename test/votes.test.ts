import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from '../src/context.ts';
import { featurePost, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { settleCommunity } from '../src/services/community/settle.ts';
import { onFixture, settingsOf } from './support/fixtures.ts';
import { assertOk, describeInstances, type Instance, type TestAgent } from './support/instance.ts';

const day = 24 * 3_600_000;
const subdomain = { variants: ['subdomain'] } as const;

/** What housekeeping does from time to time. */
async function settle({ ctx }: Instance): Promise<void> {
  await settleCommunity(ctx(), async () => true);
}

async function agents(instance: Instance, ...names: string[]): Promise<TestAgent[]> {
  const all: TestAgent[] = [];
  for (const name of names) all.push(await instance.agent(name));
  return all;
}

async function published({ client }: TestAgent, title: string): Promise<string> {
  return (await client.publish({ title, content: 'c', status: 'published' })).post.id;
}

/** What a post has: its counts, and the sum of the votes that weigh in its rank. */
async function scores({ db }: Context, postId: string): Promise<[up: number, down: number, rank: number]> {
  const post = await db
    .selectFrom('posts')
    .select(['upvotes', 'downvotes', 'rank_score'])
    .where('id', '=', postId)
    .executeTakeFirstOrThrow();
  return [post.upvotes, post.downvotes, post.rank_score ?? 0];
}

async function featured(instance: Instance, limit: number): Promise<string[]> {
  return (await instance.client().featuredPosts({ limit })).posts.map(({ title }) => title);
}

describeInstances('votes in ranks', subdomain, (the) => {
  test('weigh once the blog is a day old, and not on one’s own post', async () => {
    const [ada, bob] = await agents(the(), 'Ada', 'Bob');
    assert.ok(ada && bob);
    the().clock.freeze();
    const post = await published(ada, 'First');
    await published(ada, 'Second');
    await bob.client.vote(post, 1);
    await ada.client.vote(post, 1);
    assert.deepEqual(await scores(the().ctx(), post), [2, 0, 0]);
    assert.deepEqual(await featured(the(), 1), ['Second']);
    the().clock.advance(day - 1000);
    await settle(the());
    assert.deepEqual(await scores(the().ctx(), post), [2, 0, 0]);
    the().clock.advance(1000);
    await settle(the());
    assert.deepEqual(await scores(the().ctx(), post), [2, 0, 1]);
    assert.deepEqual(await featured(the(), 1), ['First']);
    // From now on they weigh at once.
    await bob.client.vote(post, -1);
    assert.deepEqual(await scores(the().ctx(), post), [1, 1, -1]);
    await bob.client.unvote(post);
    assert.deepEqual(await scores(the().ctx(), post), [1, 0, 0]);
  });

  test('from one mailbox weigh once, in any spelling, and another one’s when the first goes', async () => {
    const [carol] = await agents(the(), 'Carol');
    assert.ok(carol);
    const [one, two, three] = [
      await the().agent('One', { email: 'some.box@gmail.com' }),
      await the().agent('Two', { email: 'somebox+two@gmail.com' }),
      await the().agent('Three', { email: 'SOMEBOX+three@googlemail.com' }),
    ];
    the().clock.advance(day);
    const post = await published(carol, 'Bundle');
    for (const { client } of [one, two, three]) await client.vote(post, 1);
    assert.deepEqual(await scores(the().ctx(), post), [3, 0, 1]);
    await two.client.vote(post, -1);
    assert.deepEqual(await scores(the().ctx(), post), [2, 1, 1]);
    await one.client.unvote(post);
    assert.deepEqual(await scores(the().ctx(), post), [1, 1, -1]);
    await the().ctx().engine.write(suspendAgent, { slug: 'two', reason: 'spam' });
    assert.deepEqual(await scores(the().ctx(), post), [1, 0, 1]);
    await three.client.deleteMe({ confirm: three.slug });
    assert.deepEqual(await scores(the().ctx(), post), [0, 0, 0]);
    await the().ctx().engine.write(restoreAgent, { slug: 'two' });
    assert.deepEqual(await scores(the().ctx(), post), [0, 1, -1]);
  });

  test('from one mailbox are looked up among its verified agents alone', async () => {
    const [gil] = await agents(the(), 'Gil');
    assert.ok(gil);
    const post = await published(gil, 'Besieged');
    const email = (n: number) => `box+${n}@example.org`;
    for (const n of [1, 2, 3]) {
      const body = { name: `Box-${n}`, slug: `box-${n}`, email: email(n) };
      assertOk(await the().call('POST', '/api/register', { body }));
    }
    const inMailbox = async () => {
      const agent = the().ctx().db.selectFrom('agents').where('email', 'like', 'box+%').orderBy('slug');
      const rows = await agent.select(['slug', 'mailbox_key', 'comment_bytes']).execute();
      return rows.map((row) => row.mailbox_key !== null && row.comment_bytes === 0);
    };
    await settle(the());
    assert.deepEqual(await inMailbox(), [false, false, false]);
    the().clock.advance(day);
    const one = await the().agent('Box-1', { email: email(1) });
    await settle(the());
    assert.deepEqual(await inMailbox(), [true, false, false]);
    the().clock.advance(day);
    await one.client.vote(post, 1);
    const two = await the().agent('Box-2', { email: email(2) });
    the().clock.advance(day);
    await two.client.vote(post, 1);
    assert.deepEqual(await scores(the().ctx(), post), [2, 0, 1]);
    await one.client.vote(post, -1);
    assert.deepEqual(await scores(the().ctx(), post), [1, 1, -1]);
  });

  test('below zero rank like none', async () => {
    const [dan, erin] = await agents(the(), 'Dan', 'Erin');
    assert.ok(dan && erin);
    the().clock.advance(day);
    the().clock.freeze();
    const [one, two] = [await published(dan, 'Disliked'), await published(dan, 'Unknown')];
    await erin.client.vote(one, -1);
    const ranks = await the()
      .ctx()
      .db.selectFrom('posts')
      .select(['id', 'hot_rank'])
      .where('id', 'in', [one, two])
      .execute();
    assert.equal(ranks[0]?.hot_rank, ranks[1]?.hot_rank);
    assert.deepEqual(await scores(the().ctx(), one), [0, 1, -1]);
    assertOk(await the().call('GET', '/api/posts/featured'));
  });
});

describeInstances('votes of an agent that is suspended', subdomain, (the) => {
  test('leave counts and ranks in batches, and come back; a stop in between loses nothing', async () => {
    const [ada, bob] = await agents(the(), 'Ada', 'Bob');
    assert.ok(ada && bob);
    the().clock.advance(day);
    const { engine } = the().ctx();
    const first = await published(ada, 'First');
    await bob.client.vote(first, 1);
    // More than fit a batch, as the rows that 1,050 calls would leave.
    await copyVotes(the(), first, 1050);
    const sums = async () => {
      const rows = await the().ctx().db.selectFrom('posts').select(['upvotes', 'rank_score']).execute();
      const sum = (numbers: (number | null)[]) => numbers.reduce<number>((all, n) => all + (n ?? 0), 0);
      return [sum(rows.map((row) => row.upvotes)), sum(rows.map((row) => row.rank_score))];
    };
    assert.deepEqual(await sums(), [1051, 1051]);
    await engine.write(suspendAgent, { slug: 'bob', reason: 'spam' });
    // The service looks for them too, a batch at a time.
    const areIn = (possible: readonly number[], [votes = -1, score]: number[]) =>
      assert.ok(possible.includes(votes) && votes === score, `${votes} and ${score}`);
    const leaving = [801, 551, 301, 51, 0];
    areIn(leaving, await sums());
    await the().restart();
    const left: number[] = [];
    await settleCommunity(the().ctx(), async () => {
      left.push((await sums())[0] ?? -1);
      return true;
    });
    for (const sum of left) areIn(leaving, [sum, sum]);
    assert.deepEqual(await sums(), [0, 0]);

    // Restored, and suspended again before all are back.
    const again = the().ctx().engine;
    await again.write(restoreAgent, { slug: 'bob' });
    areIn([250, 500, 750, 1_000, 1_051], await sums());
    await again.write(suspendAgent, { slug: 'bob', reason: 'spam' });
    await settle(the());
    assert.deepEqual(await sums(), [0, 0]);
    await again.write(restoreAgent, { slug: 'bob' });
    await settle(the());
    assert.deepEqual(await sums(), [1051, 1051]);
    await bob.client.deleteMe({ confirm: bob.slug });
    assert.deepEqual(await sums(), [0, 0]);
  });

  test('are settled by the service itself', async () => {
    const [carol, dan] = await agents(the(), 'Carol', 'Dan');
    assert.ok(carol && dan);
    const post = await published(carol, 'Hers');
    await dan.client.vote(post, 1);
    the().clock.advance(day);
    // A start looks for them soon.
    await the().restart();
    while ((await scores(the().ctx(), post))[2] !== 1)
      await new Promise((resolve) => setTimeout(resolve, 50));
  });
});

/** Stores copies of a post and of the votes on it, past the program: as many calls would leave. */
async function copyVotes(instance: Instance, postId: string, count: number): Promise<void> {
  const { ctx } = instance;
  const settings = settingsOf(instance);
  const row = await ctx().db.selectFrom('posts').selectAll().where('id', '=', postId).executeTakeFirst();
  const columns = Object.keys(row ?? {});
  // No id of a copy is that of the post.
  const ending = postId.at(-5) === 'a' ? 'b' : 'a';
  const copied = columns.map((name) => {
    if (name === 'id') return `'${postId.slice(0, -5)}${ending}' || substr(cast(10000 + n as text), 2)`;
    return name === 'slug' ? `'copy-' || cast(n as text)` : `"${name}"`;
  });
  const numbers = `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})`;
  await onFixture(
    settings,
    `${numbers} insert into posts (${columns.map((name) => `"${name}"`).join(', ')}) select ${copied.join(', ')} from posts, numbers where id = '${postId}'`,
  );
  await onFixture(
    settings,
    `insert into votes select posts.id, votes.agent_id, vote, votes.created_at, counted, ranked
      from votes, posts where post_id = '${postId}' and posts.slug like 'copy-%'`,
  );
}

describeInstances('featured posts', subdomain, (the) => {
  test('are of one agent at most two while others are left; what is pinned is not counted', async () => {
    const [ada, bob, carol] = await agents(the(), 'Ada', 'Bob', 'Carol');
    assert.ok(ada && bob && carol);
    for (let n = 0; n < 4; n++) await published(bob, `Old ${n}`);
    await published(carol, 'Hers');
    for (let n = 0; n < 9; n++) await published(ada, `New ${n}`);
    const limited = async (limit: number) => (await featured(the(), limit)).toSorted();
    assert.deepEqual(await limited(1), ['New 8']);
    assert.deepEqual(await limited(4), ['Hers', 'New 7', 'New 8', 'Old 3']);
    assert.deepEqual(await limited(5), ['Hers', 'New 7', 'New 8', 'Old 2', 'Old 3']);
    // Then the rest in order.
    assert.deepEqual(await limited(7), ['Hers', 'New 5', 'New 6', 'New 7', 'New 8', 'Old 2', 'Old 3']);
    assert.equal((await featured(the(), 50)).length, 14);
    const { posts } = await the().client().discoverPosts();
    for (const title of ['New 0', 'New 1', 'New 2']) {
      const postId = posts.find((post) => post.title === title)?.id ?? '';
      the().clock.advance(1_000);
      await the().ctx().engine.write(featurePost, { postId, featured: true });
    }
    assert.deepEqual(await limited(2), ['New 1', 'New 2']);
    assert.deepEqual(await limited(6), ['Hers', 'New 0', 'New 1', 'New 2', 'New 7', 'New 8']);
    const dates = (await the().client().featuredPosts()).posts.map((post) => post.publishedAt ?? '');
    assert.deepEqual(dates, dates.toSorted().toReversed());
  });
});
