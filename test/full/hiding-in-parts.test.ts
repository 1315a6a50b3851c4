import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import type { Caller } from '../../src/services/agents/callers.ts';
import { finishListing } from '../../src/services/agents/hiding.ts';
import { register } from '../../src/services/agents/registration.ts';
import {
  deleteAgent,
  eraseDeleted,
  eraseDue,
  finishErasing,
  undoDeletion,
} from '../../src/services/agents/self-deletion.ts';
import {
  deleteAgentByOperator,
  restoreAgent,
  suspendAgent,
  verifyByOperator,
} from '../../src/services/operators/moderation.ts';
import { deleteComment } from '../../src/services/community/comment-removal.ts';
import { storeComment } from '../../src/services/community/engagement.ts';
import { settleCommunity } from '../../src/services/community/settle.ts';
import { publish } from '../../src/services/posts/posts.ts';
import { deleteOwn, deletePost } from '../../src/services/trash/deletion.ts';
import { eraseTrash, eraseTrashPart, purgeTrash } from '../../src/services/trash/erasure.ts';
import { restorePost } from '../../src/services/trash/trash.ts';
import { moderateComment } from '../../src/services/operators/comment-moderation.ts';
import { findWrongCounts } from '../../src/services/upkeep/doctor.ts';
import { onFixture, type FixtureSettings } from '../support/fixtures.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const allOfThem = 330;
const goOn = async () => true;
const preconditions = { ifMatch: null, ifNoneMatch: null };
/** More than one write erases. */
const manyComments = 1_050;

// Without a server, whose housekeeping would go on with what is half done.
for (const engine of ['sqlite', 'postgres']) {
  describe(`an agent with more posts than one write changes (${engine})`, () => {
    let ctx: Awaited<ReturnType<typeof openContext>>;
    let dataDir: string;
    let settings: FixtureSettings;
    before(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'masthead-parts-'));
      const onPostgres = async () => ({ DATABASE_URL: await (await sharedPostgres()).createDatabase() });
      const env = { SECRET: 's'.repeat(32), LIMIT_PUBLISH: '0' };
      settings = { DATA_DIR: dataDir, ...(engine === 'postgres' ? await onPostgres() : {}) };
      const config = loadConfig({ ...env, ...settings });
      ctx = await openContext(config, { existing: false, log: createLog('silent') });
    });
    after(async () => {
      await ctx.close();
      await rm(dataDir, { recursive: true });
    });

    async function verified(slug: string): Promise<Caller> {
      const { result } = await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      await ctx.engine.write(verifyByOperator, { slug });
      return { id: result.agent.id, slug, keyHash: '', suspended: null, version: '' };
    }

    async function prolific(slug: string): Promise<Caller> {
      const caller = await verified(slug);
      const numbers = Array.from({ length: allOfThem }, (_, n) => n);
      await Promise.all(
        numbers.map((n) =>
          publish(ctx, caller, { title: `Post ${n}`, content: 'x', tags: ['many'], status: 'published' }),
        ),
      );
      await publish(ctx, caller, { title: 'Draft', content: 'x', tags: ['many'], status: 'draft' });
      return caller;
    }

    const comment = async (by: Caller, postId: string, parentId: string | null = null) => {
      const text = { content: 'A comment.', html: '<p>A comment.</p>', unseen: null };
      const stored = { agentId: by.id, postId, parentId, ...text, replay: null };
      return (await ctx.engine.write(storeComment, stored)).result.id;
    };

    /** An agent that has three comments on each of some posts: alone, answered, and answering. */
    async function talkative(slug: string): Promise<{ talker: Caller; host: Caller; posts: string[] }> {
      const host = await prolific(`${slug}-host`);
      const talker = await verified(slug);
      const some = await posts(host)
        .where('status', '=', 'published')
        .limit(allOfThem / 3)
        .execute();
      await Promise.all(
        some.map(async ({ id }) => {
          await comment(talker, id);
          await comment(host, id, await comment(talker, id));
          await comment(talker, id, await comment(host, id));
        }),
      );
      return { talker, host, posts: some.map(({ id }) => id) };
    }

    /** A post with many comments, of its agent and of one that is suspended, whose are in no count. */
    async function discussed(host: Caller): Promise<{ postId: string; left: () => Promise<number> }> {
      const result = await publish(ctx, host, { title: 'Discussed', content: 'x', status: 'published' });
      const postId = result.post.id;
      const talker = await verified(`${host.slug}-talker`);
      // One agent may have so many writes waiting.
      for (let n = 0; n < manyComments; n += 150)
        await Promise.all(
          Array.from({ length: 150 }, (_, i) => comment(i % 7 === 0 ? talker : host, postId)),
        );
      await ctx.engine.write(suspendAgent, { agentId: talker.id, reason: 'a test' });
      await settleCommunity(ctx, goOn);
      const comments = ctx.db.selectFrom('comments').select('id').where('post_id', '=', postId);
      return { postId, left: async () => (await comments.execute()).length };
    }

    const posts = ({ id }: Caller) => ctx.db.selectFrom('posts').select('id').where('agent_id', '=', id);
    const kept = async (agent: Caller) => (await posts(agent).execute()).length;
    const listed = async (agent: Caller) =>
      (await posts(agent).where('listed_at', 'is not', null).execute()).length;
    const tagged = async ({ id }: Caller) =>
      (await ctx.db.selectFrom('post_tags').select('post_id').where('agent_id', '=', id).execute()).length;
    const isThere = async ({ id }: Caller) =>
      (await ctx.db.selectFrom('agents').select('id').where('id', '=', id).execute()).length > 0;
    const countsAreRight = async () => assert.deepEqual(await findWrongCounts(ctx), []);
    const lastPublished = ({ id }: Caller) =>
      ctx.db.selectFrom('agents').select('last_published_at').where('id', '=', id).execute();

    /** What is left after a write must be a part of all posts, and not all of them. */
    function assertPart(left: number): void {
      assert.ok(left > 0 && left < allOfThem, `${left}`);
    }

    test('leaves the public in parts, whose counts are right, and comes back in parts', async () => {
      const agent = await prolific('leaving');
      const latest = await lastPublished(agent);
      await ctx.engine.write(deleteAgent, { agentId: agent.id, confirm: undefined });
      assertPart(await listed(agent));
      assert.equal(await tagged(agent), await listed(agent));
      await countsAreRight();
      await finishListing(ctx, agent.id);
      assert.deepEqual([await listed(agent), await tagged(agent)], [0, 0]);
      await countsAreRight();

      await ctx.engine.write(undoDeletion, { agentId: agent.id });
      assertPart(await listed(agent));
      assert.deepEqual(await lastPublished(agent), latest);
      await countsAreRight();
      // A change of one that is not back yet brings it back, and is counted once.
      const left = posts(agent)
        .select('slug')
        .where('status', '=', 'published')
        .where('listed_at', 'is', null);
      const { slug } = await left.executeTakeFirstOrThrow();
      await publish(ctx, agent, { slug, excerpt: 'Changed meanwhile.' });
      await finishListing(ctx, agent.id);
      assert.deepEqual([await listed(agent), await tagged(agent)], [allOfThem, allOfThem]);
      assert.deepEqual(await lastPublished(agent), latest);
      await countsAreRight();
    });

    test('is as the last call says, where another one came in between', async () => {
      const agent = await prolific('between');
      const suspend = () => ctx.engine.write(suspendAgent, { agentId: agent.id, reason: 'a test' });
      await suspend();
      await ctx.engine.write(restoreAgent, { agentId: agent.id });
      await finishListing(ctx, agent.id);
      assert.equal(await listed(agent), allOfThem);
      await countsAreRight();
      await suspend();
      await finishListing(ctx, agent.id);
      await ctx.engine.write(restoreAgent, { agentId: agent.id });
      await suspend();
      // The process that did it has ended: housekeeping does the rest.
      await settleCommunity(ctx, goOn);
      assert.deepEqual([await listed(agent), await tagged(agent)], [0, 0]);
      await countsAreRight();
    });

    test('is erased in parts, which nothing undoes, and goes on after a crash', async () => {
      const agent = await prolific('erased');
      const named = { agentId: agent.id };
      await ctx.engine.write(deleteAgent, { ...named, confirm: agent.slug });
      assertPart(await listed(agent));
      const row = ctx.db.selectFrom('agents').select('key_hash').where('id', '=', agent.id);
      assert.equal((await row.executeTakeFirstOrThrow()).key_hash, null);
      for (const write of [
        () => ctx.engine.write(undoDeletion, named),
        () => ctx.engine.write(deleteAgent, { ...named, confirm: undefined }),
      ])
        await assert.rejects(write, { code: 'unauthorized' });
      for (const write of [
        () => ctx.engine.write(suspendAgent, { ...named, reason: 'a test' }),
        () => ctx.engine.write(restoreAgent, named),
        () => ctx.engine.write(deleteAgentByOperator, named),
      ])
        await assert.rejects(write, { code: 'not_found' });
      await countsAreRight();
      let writes = 0;
      await eraseDue(ctx, async () => ++writes < 2);
      assert.equal(await listed(agent), 0);
      assertPart(await kept(agent));
      await countsAreRight();
      await eraseDue(ctx, goOn);
      assert.deepEqual([await kept(agent), await isThere(agent)], [0, false]);
      await countsAreRight();
    });

    test('has its comments leave the counts of posts in parts, and come back so, and each count is right', async () => {
      const { talker, host, posts: ids } = await talkative('counted');
      const named = { agentId: talker.id };
      const total = async () =>
        (await ctx.db.selectFrom('posts').select('comment_count').where('id', 'in', ids).execute())
          .map((row) => row.comment_count)
          .reduce((sum, count) => sum + count);
      const own = () =>
        ctx.db.selectFrom('comments').select(['id', 'post_id']).where('agent_id', '=', talker.id);
      const others = (await total()) - allOfThem;
      const isPart = async () => {
        assertPart((await total()) - others);
        await countsAreRight();
      };
      await ctx.engine.write(deleteAgent, { ...named, confirm: undefined });
      await isPart();
      // The owner of their posts deletes the first, which is in no count any more, and the last, which still is.
      for (const direction of ['asc', 'desc'] as const) {
        const { id, post_id } = await own()
          .orderBy('created_at', direction)
          .orderBy('id', direction)
          .executeTakeFirstOrThrow();
        await ctx.engine.write(deleteComment, { agentId: host.id, postId: post_id, commentId: id });
        await countsAreRight();
      }
      // Undone before all are out.
      await ctx.engine.write(undoDeletion, named);
      await comment(talker, ids[0] ?? '');
      await countsAreRight();
      await finishListing(ctx, talker.id);
      assert.equal(await total(), others + allOfThem - 1);
      await countsAreRight();

      await ctx.engine.write(deleteAgent, { ...named, confirm: undefined });
      await finishListing(ctx, talker.id);
      assert.equal(await total(), others);
      await ctx.engine.write(undoDeletion, named);
      await isPart();
      // A new one may come before the rest is back, or be held. The process that did it has ended: housekeeping goes on.
      const last = await comment(talker, ids[0] ?? '');
      await ctx.engine.write(moderateComment, { commentId: last, to: 'held' });
      await countsAreRight();
      await settleCommunity(ctx, goOn);
      assert.equal(await total(), others + allOfThem - 1);
      await countsAreRight();
    });

    test('has its comments erased in parts, of which those stay, blank, that others have answered', async () => {
      const { talker, posts: ids } = await talkative('talker');
      const left = () =>
        ctx.db.selectFrom('comments').select('id').where('agent_id', '=', talker.id).execute();
      await ctx.engine.write(deleteAgent, { agentId: talker.id, confirm: talker.slug });
      for (let writes = 0; (await left()).length === allOfThem && writes < 10; writes++)
        await ctx.engine.write(eraseDeleted, { agentId: talker.id });
      assertPart((await left()).length);
      await countsAreRight();
      await eraseDue(ctx, goOn);
      assert.equal(await isThere(talker), false);
      await countsAreRight();
      const rows = await ctx.db
        .selectFrom('comments')
        .select(['agent_id', 'content'])
        .where('post_id', 'in', ids)
        .execute();
      const blank = rows.filter(({ agent_id }) => agent_id === null);
      assert.deepEqual([rows.length, blank.length], [ids.length * 3, ids.length]);
      assert.ok(blank.every(({ content }) => content === ''));
    });

    test('empties its trash in parts', async () => {
      const agent = await prolific('untidy');
      const ids = (await posts(agent).limit(250).execute()).map(({ id }) => id);
      for (const postId of ids)
        await deletePost(ctx, { agentId: agent.id, postId, preconditions, permanent: false });
      assert.deepEqual(await ctx.engine.write(eraseTrashPart, { agentId: agent.id }), {
        erased: 100,
        more: true,
      });
      await countsAreRight();
      assert.equal(await eraseTrash(ctx, { agentId: agent.id }), 150);
      assert.equal(await kept(agent), allOfThem + 1 - 250);
      await countsAreRight();
    });

    test('erases a post with many comments in parts, which nobody finds after the first write', async () => {
      const host = await verified('hasty');
      const { postId, left } = await discussed(host);
      await countsAreRight();
      const deletion = { agentId: host.id, postId, preconditions, permanent: true };
      const { isUnfinished, restoreUntil } = await ctx.engine.write(deleteOwn, deletion);
      assert.deepEqual([isUnfinished, restoreUntil, await left()], [true, null, manyComments]);
      await countsAreRight();
      for (const again of [() => restorePost(ctx, host, { postId }), () => deletePost(ctx, deletion)])
        await assert.rejects(again, { code: 'not_found' });
      assert.deepEqual(await ctx.engine.write(eraseTrashPart, { agentId: host.id, postId }), {
        erased: 0,
        more: true,
      });
      assert.equal(await left(), 50);
      await countsAreRight();
      // As after a crash.
      while ((await ctx.engine.write(purgeTrash, null)) > 0);
      assert.deepEqual([await left(), await kept(host)], [0, 0]);
      await countsAreRight();
    });

    test('has its bytes back once where it deletes comments while the post with them is erased', async () => {
      const host = await verified('busy');
      const { postId, left } = await discussed(host);
      const own = ctx.db.selectFrom('comments').select('id').where('agent_id', '=', host.id).limit(60);
      const ids = (await own.execute()).map(({ id }) => id);
      const deletion = { agentId: host.id, postId, preconditions, permanent: true };
      await Promise.all([
        deletePost(ctx, deletion),
        // Each is there still, or gone with its post.
        Promise.allSettled(
          ids.map((commentId) => ctx.engine.write(deleteComment, { agentId: host.id, postId, commentId })),
        ),
      ]);
      assert.deepEqual([await left(), await kept(host)], [0, 0]);
      await countsAreRight();
    });

    test('cannot restore a post of its trash of which a part is erased', async () => {
      const host = await verified('torn');
      const { postId, left } = await discussed(host);
      await deletePost(ctx, { agentId: host.id, postId, preconditions, permanent: false });
      await publish(ctx, host, { title: 'Another', content: 'x', status: 'published' });
      assert.deepEqual(await ctx.engine.write(eraseTrashPart, { agentId: host.id }), {
        erased: 0,
        more: true,
      });
      await countsAreRight();
      await assert.rejects(() => restorePost(ctx, host, { postId }), { code: 'not_found' });
      assert.equal(await eraseTrash(ctx, { agentId: host.id }), 1);
      assert.deepEqual([await left(), await kept(host)], [0, 1]);
      await countsAreRight();
    });

    test('is erased in parts also where one post has many comments', async () => {
      const host = await verified('famous');
      const { left } = await discussed(host);
      await ctx.engine.write(deleteAgent, { agentId: host.id, confirm: 'famous' });
      assert.ok((await left()) > 0);
      await finishErasing(ctx, host.id);
      assert.deepEqual([await left(), await isThere(host)], [0, false]);
      await countsAreRight();
    });

    test('empties its trash in parts of so many bytes', async () => {
      const agent = await verified('verbose');
      for (let n = 0; n < 10; n++) {
        const { post } = await publish(ctx, agent, {
          title: `Long ${n}`,
          content: 'x'.repeat(500_000),
          status: 'draft',
        });
        await deletePost(ctx, { agentId: agent.id, postId: post.id, preconditions, permanent: false });
      }
      assert.deepEqual(await ctx.engine.write(eraseTrashPart, { agentId: agent.id }), {
        erased: 8,
        more: true,
      });
      assert.equal(await eraseTrash(ctx, { agentId: agent.id }), 2);
      await countsAreRight();
    });

    test('is erased in parts also where it had much mail', async () => {
      const agent = await verified('mailed');
      const mail = ctx.db.selectFrom('outbox').select('id').where('agent_id', '=', agent.id);
      await onFixture(
        settings,
        `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1050)
          insert into outbox (id, agent_id, mailbox, kind, created_at, delivered_at, route)
          select 'm' || n, id, '', 'key-replaced', created_at, created_at, 'smtp' from agents, numbers
          where id = '${agent.id}'`,
      );
      const all = (await mail.execute()).length;
      await ctx.engine.write(deleteAgent, { agentId: agent.id, confirm: 'mailed' });
      assert.deepEqual([(await mail.execute()).length, await isThere(agent)], [all - 1_000, true]);
      await finishErasing(ctx, agent.id);
      assert.deepEqual([await mail.execute(), await isThere(agent)], [[], false]);
    });

    test('is erased in parts also where it was hidden before', async () => {
      const agent = await prolific('hidden');
      await ctx.engine.write(suspendAgent, { agentId: agent.id, reason: 'a test' });
      await ctx.engine.write(deleteAgentByOperator, { agentId: agent.id });
      assertPart(await listed(agent));
      await finishErasing(ctx, agent.id);
      assert.deepEqual([await kept(agent), await isThere(agent)], [0, false]);
      await countsAreRight();
    });
  });
}
