import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MastheadConnectionError, MastheadError, type MastheadClient } from '../../client/src/index.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { findWrongCounts } from '../../src/services/upkeep/doctor.ts';
import { expire } from '../../src/services/upkeep/expiry.ts';
import { engines, type EngineName } from '../support/instance.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { newAgent, unlimited } from '../support/writers.ts';

const kills = 3 * scale;
/** Clients that delete and restore at once, often the same post. */
const clients = 16;
/** Odd, so that each client deletes a post and restores it the next time that it comes to it. */
const posts = 41;
/** Deletions and restorations acknowledged between two kills. */
const between = 60;
const day = 24 * 3_600_000;

for (const engine of engines) {
  test(`kill -9 while ${clients} clients delete and restore leaves each post whole, public or in the trash (${engine})`, async (t) => {
    const { ada, ids, restart, stop } = await begin(t, engine);
    const hands = startHands(ada, ids);
    for (let kill = 0; kill < kills; kill++) {
      await hands.more(between);
      // At another moment of a call each time.
      await delay(kill % 7);
      await restart();
    }
    await hands.stop();
    const inTrash = await assertEachWhole(ada, ids);
    for (const id of inTrash) await ada.restorePost(id);
    assert.deepEqual(await assertEachWhole(ada, ids), []);
    await stop(async () => undefined);
    t.diagnostic(`${kills} kills, ${hands.done()} acknowledged, ${inTrash.length} were in the trash`);
  });

  test(`kill -9 before and while the trash is emptied loses nothing else, and leaves no part (${engine})`, async (t) => {
    const { ada, ids, restart, stop } = await begin(t, engine);
    const doomed = ids.slice(0, posts - 10);
    const emptied = doomed.slice(0, 25);
    for (const id of emptied) await ada.deletePost(id);
    await restart();
    const emptying = ada.emptyTrash().catch((error: unknown) => {
      if (!isCut(error)) throw error;
    });
    await delay(5);
    await restart();
    await emptying;
    await assertEachWhole(ada, ids, { erased: emptied });
    await ada.emptyTrash();
    // These are still there when their time is over, and the service has been killed since.
    for (const id of doomed.slice(25)) await ada.deletePost(id);
    await restart();
    assert.deepEqual((await assertEachWhole(ada, ids.slice(25))).toSorted(), doomed.slice(25).toSorted());
    await stop(async (ctx, later) => {
      later(31 * day);
      await expire(ctx, async () => true);
      for (const [table, column] of [
        ['posts', 'id'],
        ['post_bodies', 'post_id'],
        ['comments', 'post_id'],
        ['votes', 'post_id'],
      ] as const) {
        const rows = await ctx.db.selectFrom(table).select(`${column} as id`).execute();
        assert.deepEqual(rows.map(({ id }) => id).toSorted(), ids.slice(posts - 10).toSorted(), table);
      }
    });
  });
}

type Opened = Awaited<ReturnType<typeof openContext>>;

/** A service with posts, each with a tag, a comment and a vote. */
async function begin(t: TestContext, engine: EngineName) {
  const dataDir = scratchFolder('trash-crash');
  const env = {
    PORT: String(await freePort()),
    DATA_DIR: dataDir,
    MAIL_DIR: join(dataDir, 'mail'),
    ...unlimited,
    ...(engine === 'postgres'
      ? {
          DATABASE_URL: await (await sharedPostgres()).createDatabase(),
          SECRET: 's'.repeat(32),
          MEDIA_DIR: join(dataDir, 'media'),
        }
      : {}),
  };
  let server = await spawnServer({ env });
  t.after(() => server.kill('SIGKILL'));
  const ada = await newAgent(`http://localhost:${server.port}`, dataDir);
  const ids: string[] = [];
  for (let n = 0; n < posts; n++) {
    const { post } = await ada.publish({
      title: `Post ${n}`,
      content: textOf(n),
      status: 'published',
      tags: ['sea'],
    });
    await ada.addComment(post.id, `On ${n}`);
    await ada.vote(post.id, 1);
    ids.push(post.id);
  }
  return {
    ada,
    ids,
    restart: async () => {
      server.kill('SIGKILL');
      await server.exited;
      server = await spawnServer({ env, args: ['serve', '--existing'] });
    },
    /** Stops the service; `look` sees the database at a time of its choice, and every stored count is right. */
    stop: async (look: (ctx: Opened, later: (ms: number) => void) => Promise<void>) => {
      await server.stop();
      let offset = 0;
      const now = () => Date.now() + offset;
      const ctx = await openContext(loadConfig(env), { existing: true, log: createLog('silent'), now });
      t.after(() => ctx.close());
      await look(ctx, (ms) => {
        offset = ms;
      });
      assert.deepEqual(await findWrongCounts(ctx), []);
    },
  };
}

function textOf(n: number): string {
  return `A nautical text, number ${n}.`;
}

/** Whether no answer came, or one of a service that is ending. */
function isCut(error: unknown): boolean {
  return error instanceof MastheadConnectionError || (error instanceof MastheadError && error.status >= 500);
}

/** Deletes and restores posts at random, until it is stopped. */
function startHands(client: MastheadClient, ids: readonly string[]) {
  const done: string[] = [];
  const stop = new AbortController();
  async function work(_: unknown, hand: number): Promise<void> {
    for (let n = hand; !stop.signal.aborted; n += 7) {
      const id = ids[n % ids.length] ?? '';
      try {
        await (n % 2 === 0 ? client.deletePost(id) : client.restorePost(id));
        done.push(id);
      } catch (error) {
        // Another was first, or the service was killed.
        const isLate = error instanceof MastheadError && ['not_found', 'slug_taken'].includes(error.code);
        if (!isLate && !isCut(error)) throw error;
        await delay(isLate ? 0 : 20);
      }
    }
  }
  const running = Promise.all(Array.from({ length: clients }, work));
  return {
    done: () => done.length,
    async more(count: number): Promise<void> {
      const wanted = done.length + count;
      while (done.length < wanted) await Promise.race([delay(5), running]);
    },
    async stop(): Promise<void> {
      stop.abort();
      await running;
    },
  };
}

/** Asserts that each post is public with all it had, or in the trash, and nowhere half. Returns those in the trash. */
async function assertEachWhole(
  ada: MastheadClient,
  ids: readonly string[],
  { erased = [] }: { readonly erased?: readonly string[] } = {},
): Promise<string[]> {
  const inTrash: string[] = [];
  for await (const { id } of ada.iterateTrash()) inTrash.push(id);
  const found: string[] = [];
  for await (const { id } of ada.iteratePosts({ limit: 1000 })) found.push(id);
  const all = [...inTrash, ...found];
  assert.equal(new Set(all).size, all.length, 'a post is there twice');
  const missing = ids.filter((id) => !all.includes(id));
  assert.deepEqual(
    missing.filter((id) => !erased.includes(id)),
    [],
    'a post is lost',
  );
  const { posts: searched } = await ada.search('nautical', { limit: 100 });
  assert.deepEqual(searched.map(({ id }) => id).toSorted(), found.toSorted());
  assert.equal((await ada.discoverPosts({ limit: 1 })).total, found.length);
  assert.equal((await ada.me()).agent.postCount, found.length);
  for (const [n, id] of ids.entries()) {
    if (!found.includes(id)) continue;
    const { post } = await ada.getPost(id);
    assert.ok(post.content.startsWith('A nautical text'), `post ${n}`);
    assert.deepEqual(post.tags, ['sea']);
    assert.equal((await ada.listComments(id)).comments.length, 1);
  }
  const { posts: votes } = await ada.discoverPosts({ tag: 'sea', limit: 100 });
  assert.deepEqual(votes.map(({ id }) => id).toSorted(), found.toSorted());
  for (const post of votes) assert.deepEqual([post.comments, post.votes.upvotes], [1, 1]);
  return inTrash;
}
