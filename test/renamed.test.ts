import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { indexRenamed, indexSomeRenamed } from '../src/services/posts/renamed.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';

const env = { LIMIT_PUBLISH: '0', LIMIT_API: '0' };

describeInstances('posts of an agent with a new name', { variants: ['subdomain'], env }, (the) => {
  let named = 0;

  /** An agent with published posts of so many bytes each. */
  async function writer(...sizes: number[]): Promise<TestAgent> {
    const agent = await the().agent(`Before${++named}`);
    for (const [n, size] of sizes.entries())
      await agent.client.publish({
        title: `Post ${n}`,
        content: 'tide '.repeat(size / 5),
        status: 'published',
      });
    return agent;
  }

  /** Names that the posts are found by, in the order of their creation. */
  async function names({ id }: TestAgent): Promise<string[]> {
    const posts = await the()
      .ctx()
      .db.selectFrom('posts')
      .innerJoin('search_docs', 'search_docs.post_id', 'posts.id')
      .select('digest')
      .where('agent_id', '=', id)
      .orderBy('created_at')
      .orderBy('posts.id')
      .execute();
    return posts.map(({ digest }) => / ((?:before|after|again)[0-9]*) /.exec(digest)?.[1] ?? '');
  }

  const noted = () =>
    the().ctx().db.selectFrom('meta').selectAll().where('key', 'like', 'renamed:%').execute();

  test('are indexed so many bytes and so many posts a write, one at least', async (t) => {
    const agent = await writer(150_000, 60_000, 60_000, 30_000, ...Array.from({ length: 55 }, () => 100));
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After' });
    const done = async () => (await names(agent)).filter((name) => name === 'after').length;
    const perWrite: number[] = [];
    let before = 0;
    await index(async () => {
      const now = await done();
      perWrite.push(now - before);
      before = now;
      return true;
    });
    assert.deepEqual(perWrite, [1, 1, 50, 7, 0]);
    assert.deepEqual(await noted(), []);
  });

  test('are looked for among so many a write, with drafts and those in the trash', async (t) => {
    const agent = await writer();
    for (let n = 0; n < 130; n++) {
      const { post } = await agent.client.publish({ title: `Draft ${n}`, content: 'x' });
      if (n % 2 === 0) await agent.client.deletePost(post.id);
    }
    await agent.client.publish({ title: 'Post', content: 'x', status: 'published' });
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After' });
    const done: string[][] = [];
    await index(async () => {
      done.push(await names(agent));
      return true;
    });
    assert.deepEqual(done, [[`before${named}`], ['after'], ['after']]);
    assert.deepEqual(await noted(), []);
  });

  test('are indexed in turns with those of other agents', async (t) => {
    const agents = [await writer(90_000, 90_000, 90_000, 90_000), await writer(5), await writer(5)];
    const index = alone(t, the());
    for (const { client } of agents) await client.updateMe({ name: 'After' });
    const seen: string[][] = [];
    await index(async () => {
      seen.push((await Promise.all(agents.map(names))).flat().filter((name) => name === 'after'));
      return seen.length < 3;
    });
    assert.equal(seen.length, 3);
    assert.deepEqual((await Promise.all(agents.slice(1).map(names))).flat(), ['after', 'after']);
    await index(async () => true);
    assert.deepEqual(await names(agents[0] as TestAgent), ['after', 'after', 'after', 'after']);
  });

  test('come to their end though the agent is renamed after every write, and have its last name then', async (t) => {
    const agent = await writer(90_000, 90_000, 90_000, 90_000);
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After0' });
    let writes = 0;
    await index(async () => {
      writes++;
      if (writes < 4) await agent.client.updateMe({ name: `After${writes}` });
      return writes < 20;
    });
    assert.deepEqual(await names(agent), ['after3', 'after3', 'after3', 'after3']);
    assert.deepEqual(await noted(), []);
    // The rest of the first time, and all once more.
    assert.equal(writes, 4 + 1 + 4 + 1);
  });

  test('are all indexed where one process ends between two writes and two go on', async (t) => {
    const agent = await writer(90_000, 90_000, 90_000, 5, 5);
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After' });
    await index(async () => false);
    assert.deepEqual(await names(agent), ['after', ...Array.from({ length: 4 }, () => `before${named}`)]);
    // As earlier releases noted it, so that an upgrade goes on from there.
    assert.match((await noted())[0]?.value ?? '', /^\["[^"]+","[^"]+"\]$/);
    await agent.client.updateMe({ name: 'Again' });
    await index(async () => false);
    await Promise.all([index(async () => true), index(async () => true)]);
    assert.deepEqual(await names(agent), ['again', 'again', 'again', 'again', 'again']);
    assert.deepEqual(await noted(), []);
  });

  test('are found by it also where they are taken from the trash meanwhile, or put into it', async (t) => {
    const agent = await writer(90_000, 90_000, 90_000, 90_000);
    const { posts } = await agent.client.myPosts();
    const [, third = '', second = ''] = posts.map(({ id }) => id);
    await agent.client.deletePost(second);
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After' });
    await index(async () => false);
    await agent.client.restorePost(second);
    await agent.client.deletePost(third);
    await index(async () => true);
    assert.deepEqual(await names(agent), ['after', 'after', 'after', 'after']);
  });

  test('are found by it once they are published again, where none was public when it was given', async () => {
    const agent = await writer(5, 5);
    const [first, second] = (await agent.client.myPosts()).posts;
    await agent.client.updatePost(first?.id ?? '', { status: 'draft' });
    await agent.client.deletePost(second?.id ?? '');
    await agent.client.updateMe({ name: 'After' });
    await indexRenamed(the().ctx(), async () => true);
    await agent.client.updatePost(first?.id ?? '', { status: 'published' });
    await agent.client.restorePost(second?.id ?? '');
    assert.deepEqual(await names(agent), ['after', 'after']);
  });

  test('of an agent that is deleted meanwhile are forgotten', async (t) => {
    const agent = await writer(90_000, 90_000);
    const index = alone(t, the());
    await agent.client.updateMe({ name: 'After' });
    await index(async () => false);
    await agent.client.updateMe({ name: 'Again' });
    await agent.client.deleteMe({ confirm: agent.slug });
    await index(async () => true);
    assert.deepEqual(await noted(), []);
  });
});

describeInstances('housekeeping', { variants: ['subdomain'], once: true }, (the) => {
  test('settles votes while posts are indexed by a new name, however long that takes', async (t) => {
    const agent = await the().agent('Renamed');
    const { post } = await agent.client.publish({ title: 'Post', content: 'c', status: 'published' });
    const { setTimeout: real } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (what: () => void, ms = 0, ...rest: never[]) =>
      (real as (...all: unknown[]) => NodeJS.Timeout)(what, ms === 10_000 ? 100 : ms, ...rest),
    );
    const { promise: indexed, resolve: end } = Promise.withResolvers<void>();
    try {
      await the().restart();
      const { engine, db } = the().ctx();
      const before = { ...engine };
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      t.mock.method(engine, 'write', async (which: never, ...rest: never[]) => {
        if (which === indexSomeRenamed) {
          begin();
          await indexed;
        }
        return before.write(which, ...(rest as [never]));
      });
      await agent.client.updateMe({ name: 'Another' });
      await begun;
      const voter = await the().agent('Voter');
      await voter.client.vote(post.id, 1);
      // Then its votes weigh.
      the().clock.advance(25 * 3_600_000);
      const due = () =>
        db.selectFrom('agents').select('votes_due').where('id', '=', voter.id).executeTakeFirst();
      for (let n = 0; (await due())?.votes_due !== null; n++) {
        assert.ok(n < 200, 'votes that are due are not settled');
        await delay(20);
      }
    } finally {
      end();
    }
  });
});

/** Keeps housekeeping from indexing; what is returned does it alone. */
function alone({ mock }: TestContext, instance: Instance) {
  const ctx = instance.ctx();
  const own = { ...ctx, engine: { ...ctx.engine } };
  mock.method(ctx.engine, 'write', async (which: never, ...rest: never[]) => {
    if (which === indexSomeRenamed) throw new Error('the test does it');
    return own.engine.write(which, ...(rest as [never]));
  });
  return (between: () => Promise<boolean>) => indexRenamed(own, between);
}
