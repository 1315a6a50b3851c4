import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { loadConfig } from '../../src/config/config.ts';
import type { Context } from '../../src/context.ts';
import { AppError } from '../../src/errors.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { deleteAgent } from '../../src/services/agents/self-deletion.ts';
import type { Caller } from '../../src/services/agents/callers.ts';
import { deleteComment } from '../../src/services/community/comment-removal.ts';
import { addComment } from '../../src/services/community/engagement.ts';
import { settleCommunity } from '../../src/services/community/settle.ts';
import { vote } from '../../src/services/community/votes.ts';
import { findWrongCounts } from '../../src/services/upkeep/doctor.ts';
import { restoreAgent, suspendAgent, verifyByOperator } from '../../src/services/operators/moderation.ts';
import { moderatePost } from '../../src/services/operators/post-moderation.ts';
import { deletePost } from '../../src/services/trash/deletion.ts';
import { publish } from '../../src/services/posts/posts.ts';
import { register } from '../../src/services/agents/registration.ts';
import { hotRank } from '../../src/services/posts/post-plan.ts';
import { noPreconditions } from '../../src/services/preconditions.ts';
import type { EngineName } from '../support/instance.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const engines: readonly EngineName[] = ['sqlite', 'postgres'];
const agents = 6;
const rounds = 5;
const hour = 3_600_000;

for (const engine of engines) {
  describe(`kept counts (${engine})`, () => {
    it('are what there is, whatever happened side by side', async () => {
      const dataDir = await mkdtemp(join(tmpdir(), 'masthead-counts-'));
      const env = { DATA_DIR: dataDir, SECRET: 's'.repeat(32), ...(await database(engine)) };
      // The blogs of half of the agents get old enough for their votes to weigh during the rounds.
      let ahead = 0;
      const now = () => Date.now() + ahead;
      const options = { existing: false, log: createLog('silent'), now };
      // Two contexts are to the database what two processes are.
      const first = await openContext(loadConfig(env), options);
      const second = await openContext(loadConfig(env), options);
      try {
        const callers: Caller[] = [];
        for (let n = 0; n < agents; n++) {
          if (n === agents / 2) ahead += 12 * hour;
          callers.push(await newAgent(first, `agent-${n}`, `box-${n % 3}+${n}@example.com`));
        }
        for (let round = 0; round < rounds; round++) {
          ahead += 6 * hour;
          await Promise.all(
            callers.flatMap((caller, n) => [
              live(first, caller, callers, round),
              live(second, caller, callers, round),
              ...(n < 2 ? [moderate(n === 0 ? first : second, caller.slug)] : []),
            ]),
          );
          await Promise.all([settle(first), settle(second)]);
          assert.deepEqual(await keptWrongly(first), []);
        }
        await Promise.all(
          callers
            .slice(0, 3)
            .flatMap((caller) => [
              passing(first.engine.write(deleteAgent, { agentId: caller.id, confirm: caller.slug })),
              live(second, caller, callers, rounds),
              live(first, callers[4] ?? caller, callers, rounds),
            ]),
        );
        await settle(second);
        assert.deepEqual(await keptWrongly(first), []);
      } finally {
        await first.close();
        await second.close();
        await rm(dataDir, { recursive: true });
      }
    });
  });
}

async function database(engine: EngineName): Promise<Record<string, string>> {
  return engine === 'postgres' ? { DATABASE_URL: await (await sharedPostgres()).createDatabase() } : {};
}

async function settle(ctx: Context): Promise<void> {
  await settleCommunity(ctx, async () => true);
}

async function newAgent(ctx: Context, slug: string, email: string): Promise<Caller> {
  const { result } = await register(ctx, { email, name: slug, slug });
  await ctx.engine.write(verifyByOperator, { slug });
  return { id: result.agent.id, slug, keyHash: '', suspended: null, version: '' };
}

/** What an agent does in a moment: some of it meets what the others do to the same posts. */
async function live(ctx: Context, caller: Caller, all: readonly Caller[], round: number): Promise<void> {
  const slug = `post-${round % 3}`;
  const post = { slug, title: slug, content: `Round ${round}`, tags: ['a', `b${round}`] };
  const saved = await passing(publish(ctx, caller, { ...post, status: round % 2 ? 'draft' : 'published' }));
  await passing(publish(ctx, caller, { slug, status: 'published', excerpt: String(round) }));
  const posts = await ctx.db.selectFrom('posts').select('id').orderBy('slug').limit(3).execute();
  const states = [{ state: 'hidden', reason: 'r' }, { state: 'held', reason: null }, null] as const;
  const to = states[(round + all.indexOf(caller)) % 3] ?? null;
  if (saved) await passing(ctx.engine.write(moderatePost, { postId: saved.post.id, to }));
  await passing(publish(ctx, caller, { slug, status: 'published', excerpt: 'once more' }));
  await Promise.all(
    posts.map(async ({ id: postId }, n) => {
      const comment = await passing(addComment(ctx, caller, postId, 'Well said'));
      await passing(ctx.engine.write(vote, { agentId: caller.id, postId, value: n % 2 ? 1 : -1 }));
      if (comment && n === 0) {
        const doomed = { agentId: caller.id, postId, commentId: comment.result.id };
        await Promise.all([
          passing(ctx.engine.write(deleteComment, doomed)),
          passing(ctx.engine.write(deleteComment, doomed)),
        ]);
      }
    }),
  );
  if (saved && caller === all[round % all.length])
    await passing(
      deletePost(ctx, {
        agentId: caller.id,
        postId: saved.post.id,
        preconditions: noPreconditions,
        permanent: round % 2 === 0,
      }),
    );
}

async function moderate(ctx: Context, slug: string): Promise<void> {
  await ctx.engine.write(suspendAgent, { slug, reason: 'a test' });
  await ctx.engine.write(restoreAgent, { slug });
}

/** Refusals are part of the game; anything unforeseen is not. */
async function passing<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof AppError && error.code !== 'unavailable') return null;
    throw error;
  }
}

/** Everything that is kept beside what it is derived from, and differs from it. */
async function keptWrongly(ctx: Context): Promise<unknown[]> {
  const { rows } = await sql`select 'tags' as what, posts.slug, tags, n from posts
    join (select id, (select count(*) from post_tags where post_id = posts.id) as n from posts) as t
    on t.id = posts.id where n <> case when listed_at is null then 0 else 2 end`.execute(ctx.db);
  return [...(await findWrongCounts(ctx)), ...rows, ...(await countedWrongly(ctx))];
}

/** Posts whose votes are not what their rows add up to, by the rules and not by what is noted beside each vote. */
async function countedWrongly(ctx: Context): Promise<unknown[]> {
  const posts = await ctx.db.selectFrom('posts').selectAll().where('published_at', 'is not', null).execute();
  const votes = await ctx.db
    .selectFrom('votes')
    .innerJoin('agents', 'agents.id', 'votes.agent_id')
    .select(['votes.post_id', 'votes.agent_id', 'votes.vote', 'votes.created_at'])
    .select(['agents.email', 'agents.verified_at'])
    .where('agents.suspended_at', 'is', null)
    .orderBy('votes.created_at')
    .orderBy('votes.agent_id')
    .execute();
  return posts.flatMap((post) => {
    const all = votes.filter((row) => row.post_id === post.id);
    const up = all.filter((row) => row.vote === 1).length;
    const firsts = new Map<string, number>();
    for (const row of all) {
      const isOld = Date.parse(row.verified_at ?? '') <= ctx.now() - 24 * hour;
      const mailbox = row.email.replace(/\+.*@/, '@');
      if (isOld && row.agent_id !== post.agent_id && !firsts.has(mailbox)) firsts.set(mailbox, row.vote);
    }
    const score = [...firsts.values()].reduce((sum, value) => sum + value, 0);
    const kept = [post.upvotes, post.downvotes, post.rank_score ?? 0, post.hot_rank];
    const right = [up, all.length - up, score, hotRank(score, post.published_at ?? '')];
    return String(kept) === String(right) ? [] : [{ slug: post.slug, kept, right }];
  });
}
