import type { Context, ReadContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { textFieldNames } from '../../rules/post-fields.ts';
import { lockAgent } from '../agents/callers.ts';
import { noteSchedule } from '../community/inbox-events.ts';
import { noPreconditions } from '../preconditions.ts';
import { keptPosts } from '../posts/find-post.ts';
import { refuseStoredKeys } from '../posts/post-input.ts';
import { savePostOf } from '../posts/post-store.ts';
import { doEach, type Between } from '../upkeep/one-by-one.ts';

/** Posts that are looked at in one go. */
const postsAtOnce = 50;

/**
 * Publishes the drafts whose time has come, in the order of their times. Any number of processes may do it, and any of
 * them may crash. `between` is called after each write, to let others go first; it returns whether to go on. One that fails
 * is tried again in a second, and not in the way of the others: the first failure is thrown at the end.
 */
export async function publishDue(ctx: Context, between: Between): Promise<void> {
  await doEach(
    (after: Due | null) => dueAfter(ctx, after),
    (post) => publishOne(ctx, post),
    between,
  );
}

/** Drafts whose time of publication has come, of agents that are not suspended. */
export function duePosts({ db }: ReadContext, at: string) {
  // Each has one. Where it knows nothing of the tables, PostgreSQL would begin an inner join with all agents.
  return keptPosts(db)
    .leftJoin('agents', 'agents.id', 'posts.agent_id')
    .where('posts.publishAt', 'is not', null)
    .where('posts.publishAt', '<=', at)
    .where('posts.status', '=', 'draft')
    .where('agents.suspended_at', 'is', null);
}

type Due = { readonly id: string; readonly agentId: string; readonly publishAt: string | null };

async function dueAfter(ctx: Context, after: Due | null): Promise<Due[]> {
  return duePosts(ctx, timestamp(ctx.now()))
    .select(['posts.id', 'posts.agent_id as agentId', 'posts.publishAt'])
    .$if(after !== null, (posts) =>
      posts.where((row) =>
        row.or([
          row('posts.publishAt', '>', after?.publishAt ?? ''),
          row.and([
            row('posts.publishAt', '=', after?.publishAt ?? ''),
            row('posts.id', '>', after?.id ?? ''),
          ]),
        ]),
      ),
    )
    .orderBy('posts.publishAt')
    .orderBy('posts.id')
    .limit(postsAtOnce)
    .execute();
}

async function publishOne(ctx: Context, { id: postId, agentId }: Due): Promise<void> {
  const failure = await leakIn(ctx, postId);
  await ctx.engine.write(publishScheduled, { agentId, postId, failure });
}

/** What keeps a post from being published: a key or token in it that works by now. */
async function leakIn(ctx: Context, postId: string): Promise<string | null> {
  const post = await keptPosts(ctx.db)
    .select(['id', ...textFieldNames])
    .where('id', '=', postId)
    .executeTakeFirst();
  try {
    if (post) await refuseStoredKeys(ctx, post);
    return null;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'leaked_key') throw error;
    const [fault] = error.extra.errors ?? [];
    return `'${fault?.field ?? 'content'}' contains a key or token that works here; take it out, then schedule the post again`;
  }
}

/**
 * Publishes a draft if its time has come, or takes its time off if something keeps it back. Returns whether that was to
 * do: another process may have done it, and its agent may have changed its mind.
 */
export const publishScheduled = defineWrite(
  'posts.publish-scheduled',
  async (tx, { agentId, postId, failure }: { agentId: string; postId: string; failure: string | null }) => {
    await lockAgent(tx, agentId);
    const due = await duePosts(tx, timestamp(tx.now()))
      .select('posts.id')
      .where('posts.id', '=', postId)
      .executeTakeFirst();
    if (!due) return false;
    const change = failure === null ? ({ status: 'published' } as const) : { publishAt: null };
    const sent = { ...change, content: null, rendered: null };
    await savePostOf(tx, { agentId, postId, sent, preconditions: noPreconditions });
    noteSchedule(tx, agentId, { postId, failure });
    return true;
  },
);
