import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import type { Caller } from '../../src/services/agents/callers.ts';
import { register } from '../../src/services/agents/registration.ts';
import { deleteAgent, finishErasing } from '../../src/services/agents/self-deletion.ts';
import { deleteComment } from '../../src/services/community/comment-removal.ts';
import { storeComment } from '../../src/services/community/engagement.ts';
import {
  deleteAgentByOperator,
  suspendAgent,
  verifyByOperator,
} from '../../src/services/operators/moderation.ts';
import { publish } from '../../src/services/posts/posts.ts';
import { findWrongCounts } from '../../src/services/upkeep/doctor.ts';
import { randomFrom } from '../support/random.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { openSqlite } from '../support/sqlite-file.ts';

/** What is to be left of comments, by id: the author is null where one is blank. */
type Threads = Map<string, { parent: string | null; author: string | null }>;

/** Takes out what is blank and has no answers, until nothing is. */
function prune(threads: Threads): void {
  const answered = new Set([...threads.values()].map(({ parent }) => parent));
  const gone = [...threads].filter(([id, { author }]) => author === null && !answered.has(id));
  for (const [id] of gone) threads.delete(id);
  if (gone.length > 0) prune(threads);
}

for (const engine of ['sqlite', 'postgres']) {
  describe(`threads of which comments are deleted (${engine})`, () => {
    let ctx: Awaited<ReturnType<typeof openContext>>;
    /** To the database what another process is. */
    let other: typeof ctx;
    let dataDir: string;
    before(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'masthead-threads-'));
      const onPostgres = async () => ({ DATABASE_URL: await (await sharedPostgres()).createDatabase() });
      const env = { DATA_DIR: dataDir, SECRET: 's'.repeat(32), LIMIT_PUBLISH: '0' };
      const config = loadConfig({ ...env, ...(engine === 'postgres' ? await onPostgres() : {}) });
      ctx = await openContext(config, { existing: false, log: createLog('silent') });
      other = await openContext(config, { existing: true, log: createLog('silent') });
    });
    after(async () => {
      await Promise.all([ctx.close(), other.close()]);
      await rm(dataDir, { recursive: true });
    });

    async function verified(slug: string): Promise<Caller> {
      const { result } = await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      await ctx.engine.write(verifyByOperator, { slug });
      return { id: result.agent.id, slug, keyHash: '', suspended: null, version: '' };
    }

    const published = async (by: Caller) =>
      (await publish(ctx, by, { title: 'Discussed', content: 'x', status: 'published' })).post.id;

    const comment = async (agentId: string, postId: string, parentId: string | null) => {
      const text = { content: 'A comment.', html: '<p>A comment.</p>', unseen: null };
      const stored = { agentId, postId, parentId, ...text, replay: null };
      return (await ctx.engine.write(storeComment, stored)).result.id;
    };

    async function storedThreads(postId: string): Promise<unknown[]> {
      const rows = ctx.db.selectFrom('comments').select(['id', 'parent_id', 'agent_id']);
      const left = await rows.where('post_id', '=', postId).orderBy('id').execute();
      return left.map(({ id, parent_id, agent_id }) => [id, { parent: parent_id, author: agent_id }]);
    }

    /** Keeps the last comment of an agent from being deleted, until what it returns is called. */
    async function holdLast({ id }: Caller): Promise<() => Promise<void>> {
      const { database } = ctx.config;
      if (database.engine !== 'postgres') return async () => undefined;
      const client = new Client({ connectionString: database.urls[0] });
      await client.connect();
      await client.query('begin');
      const last = 'select id from comments where agent_id = $1 order by id desc limit 1 for update';
      await client.query(last, [id]);
      return () => client.end();
    }

    test('keep what is not blank and what is above that, and nothing else', async () => {
      const host = await verified('first-host');
      const postId = await published(host);
      const authors = await Promise.all(['one', 'two', 'three'].map(verified));
      const threads: Threads = new Map();
      const isAsModelled = async () => {
        const left = [...threads].toSorted(([a], [b]) => (a < b ? -1 : 1));
        assert.deepEqual(await storedThreads(postId), left);
      };
      const random = randomFrom(7);
      let deleted = 0;
      for (let n = 0; n < 400; n++) {
        const there = [...threads].flatMap(([id, { author }]) => (author === null ? [] : [id]));
        // Mostly of the latest, so that threads are deep.
        const latest = there.slice(-6);
        const chosen = latest[random(latest.length)];
        if (chosen !== undefined && random(9) < 4) {
          const doomed = random(3) === 0 ? chosen : (there[random(there.length)] ?? chosen);
          await ctx.engine.write(deleteComment, { agentId: host.id, postId, commentId: doomed });
          Object.assign(threads.get(doomed) ?? {}, { author: null });
          prune(threads);
          deleted++;
          await isAsModelled();
        } else {
          const parent = chosen === undefined || random(8) === 0 ? null : chosen;
          const author = authors[random(authors.length)]?.id ?? '';
          threads.set(await comment(author, postId, parent), { parent, author });
        }
      }
      assert.ok(deleted > 100 && [...threads.values()].some(({ author }) => author === null));
      for (const { id: agentId, slug } of authors) {
        await ctx.engine.write(deleteAgent, { agentId, confirm: slug });
        await finishErasing(ctx, agentId);
        for (const entry of threads.values()) if (entry.author === agentId) entry.author = null;
        prune(threads);
        await isAsModelled();
        assert.deepEqual(await findWrongCounts(ctx), []);
      }
      assert.equal(threads.size, 0);
    });

    test('lose blank comments also where two delete their last answers at once', async () => {
      const host = await verified('second-host');
      const [four, five] = [await verified('four'), await verified('five')];
      const posts = await Promise.all(Array.from({ length: 10 }, () => published(host)));
      for (const postId of posts) {
        const root = await comment(host.id, postId, null);
        await comment(four.id, postId, root);
        await comment(five.id, postId, root);
        await ctx.engine.write(deleteComment, { agentId: host.id, postId, commentId: root });
      }
      // No longer in the counts of the posts, for whose rows the second would wait.
      for (const { id: agentId } of [four, five])
        await ctx.engine.write(suspendAgent, { agentId, reason: 'a test' });
      const erase = async (by: typeof ctx, { id: agentId }: Caller) => {
        await by.engine.write(deleteAgentByOperator, { agentId });
        await finishErasing(by, agentId);
      };
      // On PostgreSQL the first has deleted all answers but the last when the second begins.
      const free = await holdLast(four);
      const first = erase(ctx, four);
      await setTimeout(300);
      const second = erase(other, five);
      await setTimeout(300);
      await free();
      await Promise.all([first, second]);
      for (const postId of posts) assert.deepEqual(await storedThreads(postId), []);
    });

    if (engine === 'sqlite')
      test('lose at most a thousand comments by one deletion', async () => {
        const host = await verified('deep-host');
        const postId = await published(host);
        const root = await comment(host.id, postId, null);
        const last = await comment(host.id, postId, root);
        const database = openSqlite(join(dataDir, 'masthead.db'));
        database.exec(`
          insert into comments (id, post_id, agent_id, content, html, created_at, parent_id, thread_id)
            with recursive number (n) as (select 1 union all select n + 1 from number where n < 1100)
            select 'c' || n, '${postId}', null, '', '', '', iif(n = 1, '${root}', 'c' || (n - 1)), '${root}'
            from number;
          update comments set parent_id = 'c1100' where id = '${last}'`);
        database.close();
        await ctx.engine.write(deleteComment, { agentId: host.id, postId, commentId: last });
        assert.equal((await storedThreads(postId)).length, 1 + 1100 + 1 - 1000);
      });

    if (engine === 'sqlite')
      test('go whole, however deep, with the agent that wrote all of one', async () => {
        const postId = await published(await verified('patient-host'));
        const talker = await verified('monologue');
        const root = await comment(talker.id, postId, null);
        const database = openSqlite(join(dataDir, 'masthead.db'));
        database.exec(`
          insert into comments (id, post_id, agent_id, content, html, created_at, parent_id, thread_id)
            with recursive number (n) as (select 1 union all select n + 1 from number where n < 1150)
            select 'm' || n, '${postId}', '${talker.id}', '', '', printf('9%05d', n),
              iif(n = 1, '${root}', 'm' || (n - 1)), '${root}'
            from number`);
        database.close();
        await ctx.engine.write(deleteAgent, { agentId: talker.id, confirm: 'monologue' });
        await finishErasing(ctx, talker.id);
        assert.deepEqual(await storedThreads(postId), []);
      });
  });
}
