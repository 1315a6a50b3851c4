import { prepared } from '../../db/prepared.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { WriteContext } from '../../context.ts';
import type { AgentRow, PostRow, Tables } from '../../db/tables.ts';
import { lockAgent, lockCaller } from '../agents/callers.ts';
import { mailboxHash, mailboxOf } from '../limits/mail-limits.ts';
import { findPost, noSuchPost, requireListed } from '../posts/find-post.ts';
import { hotRank } from '../posts/post-plan.ts';
import { blockedByOwner, isBlockedOn } from './blocks.ts';
import { noteVote } from './inbox-events.ts';
import { tally } from '../posts/post-views.ts';
import { day } from '../../platform/durations.ts';

// A vote is in the counts of its post unless its agent is suspended. In the rank it weighs once its agent's blog is a
// day old and trusted, unless the post is its agent's own, and of the votes from one mailbox only the first. What a vote has
// contributed is stored with it, and changes only under the lock of its agent (`counted`) or of its post (`ranked`).

export type Vote = Tables['votes']['vote'];

/** How old a blog must be for its votes to weigh in ranks, ms. */
const weighsAfter = day;

/** Votes that one write settles at most, so that others need not wait long. */
const batchLength = 250;

/** Sets the agent's vote on a published post, or takes it back (null). One vote each: a new one replaces the old. */
export const vote = defineWrite(
  'votes.set',
  async (tx, { agentId, postId, value }: { agentId: string; postId: string; value: Vote | null }) => {
    const [agent, found, [before], isBlocked] = await Promise.all([
      lockCaller(tx, agentId),
      findPost(tx, postId),
      voteOf(tx.db, { postId, agentId }),
      isBlockedOn(tx, { postId, agentId }),
    ]);
    const post = requireListed(found, postId, agentId);
    // A vote can still be taken back.
    if (isBlocked && value !== null) throw blockedByOwner();
    if ((before?.vote ?? null) === value) {
      await tx.confirmDurable();
      return { vote: value, votes: tally(post) };
    }
    const after = await changeTally(tx, postId, before ? countedOf(before) : null, value);
    if (!after) throw noSuchPost(postId);
    const lost = value === null ? await removeVote(tx, postId, agentId) : 0;
    if (value !== null)
      await tx.db
        .insertInto('votes')
        .values({
          post_id: postId,
          agent_id: agentId,
          vote: value,
          created_at: timestamp(tx.now()),
          counted: 1,
        })
        .onConflict((conflict) =>
          conflict.columns(['post_id', 'agent_id']).doUpdateSet({ vote: value, counted: 1 }),
        )
        .execute();
    await rankVotes(tx, after, await readyToWeigh(tx, agent), lost);
    if (!isBlocked) noteVote(tx, post, agentId);
    return { vote: value, votes: tally(after) };
  },
  { deletes: ({ value }) => value === null },
);

/** What is stored of an agent's vote on a post. */
export const voteOf = prepared((db, { postId, agentId }: { postId: string; agentId: string }) =>
  db
    .selectFrom('votes')
    .select(['vote', 'counted'])
    .where('post_id', '=', postId)
    .where('agent_id', '=', agentId)
    .compile(),
);

/** Deletes a vote. Returns what the rank of the post contained of it. */
async function removeVote(tx: WriteContext, postId: string, agentId: string): Promise<number> {
  const removed = await tx.db
    .deleteFrom('votes')
    .where('post_id', '=', postId)
    .where('agent_id', '=', agentId)
    .returning('ranked')
    .executeTakeFirst();
  return removed?.ranked ?? 0;
}

/** What the counts of its post contain of a vote. */
function countedOf({ vote: value, counted }: Pick<Tables['votes'], 'vote' | 'counted'>): Vote | null {
  return counted === 0 ? null : value;
}

/** The agent with its mailbox filled in. Notes when its votes are to be settled, if they do not weigh yet. */
async function readyToWeigh(tx: WriteContext, agent: AgentRow): Promise<AgentRow> {
  const mailbox_key = agent.mailbox_key ?? mailboxKeyOf(tx, agent);
  const votes_due = agent.votes_due ?? weighsLater(tx, agent);
  if (mailbox_key !== agent.mailbox_key || votes_due !== agent.votes_due)
    await tx.db.updateTable('agents').set({ mailbox_key, votes_due }).where('id', '=', agent.id).execute();
  return { ...agent, mailbox_key, votes_due };
}

/** What the agents of one mailbox have in common. No address can be guessed from it without the secret. */
export function mailboxKeyOf(tx: WriteContext, agent: Pick<AgentRow, 'email'>): string {
  return mailboxHash(tx, mailboxOf(agent).mailboxKey);
}

/** When the votes of an agent begin to weigh; null if they do already. */
function weighsLater(tx: WriteContext, { verified_at }: Pick<AgentRow, 'verified_at'>): string | null {
  const at = Date.parse(verified_at ?? timestamp(tx.now())) + weighsAfter;
  return at > tx.now() ? timestamp(at) : null;
}

/** A post whose row is locked by this transaction, as its votes see it. */
type RankedPost = Pick<PostRow, 'id' | 'agent_id' | 'upvotes' | 'downvotes' | 'published_at' | 'rank_score'>;

/** Adjusts the vote counts of a post, after a vote `from` became `to`, and locks it. Undefined if it is gone. */
async function changeTally(
  tx: WriteContext,
  postId: string,
  from: Vote | null,
  to: Vote | null,
): Promise<RankedPost | undefined> {
  const change = (of: Vote) => Number(to === of) - Number(from === of);
  const [post] = await addToTally(tx.db, { postId, up: change(1), down: change(-1) });
  if (post && from !== to) tx.changed(`post:${postId}`);
  return post;
}

const addToTally = prepared((db, { postId, up, down }: { postId: string; up: number; down: number }) =>
  db
    .updateTable('posts')
    .set((row) => ({ upvotes: row('upvotes', '+', up), downvotes: row('downvotes', '+', down) }))
    .where('id', '=', postId)
    .returning(['id', 'agent_id', 'upvotes', 'downvotes', 'published_at', 'rank_score'])
    .compile(),
);

/**
 * Brings what a post's rank contains of the votes from one mailbox up to date, after one of them changed. The post is
 * locked by {@link changeTally}. `lost` is what the rank contained of a vote that is deleted.
 */
async function rankVotes(
  tx: WriteContext,
  post: RankedPost,
  { id: agentId, mailbox_key: mailbox }: Pick<AgentRow, 'id' | 'mailbox_key'>,
  lost = 0,
): Promise<void> {
  const votes = await votesFromMailbox(tx.db, { postId: post.id, agentId, mailbox });
  const since = timestamp(tx.now() - weighsAfter);
  const weighing = votes
    .filter((row) => row.agent_id !== post.agent_id && row.counted !== 0 && row.suspended_at === null)
    .filter((row) => row.probation === null)
    .find((row) => row.verified_at !== null && row.verified_at <= since);
  let added = -lost;
  for (const row of votes) {
    const ranked = row === weighing ? row.vote : 0;
    added += ranked - (row.ranked ?? 0);
    if (ranked !== row.ranked) await setRanked(tx.db, { postId: post.id, agentId: row.agent_id, ranked });
  }
  if (post.published_at === null || (added === 0 && post.rank_score !== null)) return;
  const score = (post.rank_score ?? 0) + added;
  await setRank(tx.db, { postId: post.id, score, rank: hotRank(score, post.published_at) });
  tx.changed(`post:${post.id}`);
}

/** The votes on a post of an agent and of those with the same mailbox, the first one first. */
const votesFromMailbox = prepared(
  (db, { postId, agentId, mailbox }: { postId: string; agentId: string; mailbox: string | null }) =>
    db
      .selectFrom('votes')
      .innerJoin('agents', 'agents.id', 'votes.agent_id')
      .select(['votes.agent_id', 'votes.vote', 'votes.counted', 'votes.ranked'])
      .select(['agents.suspended_at', 'agents.verified_at', 'agents.probation'])
      .where('votes.post_id', '=', postId)
      .where('votes.agent_id', 'in', (of) =>
        of
          .selectFrom('agents')
          .select('id')
          .where((row) => row.or([row('id', '=', agentId), row('mailbox_key', '=', mailbox)])),
      )
      .orderBy('votes.created_at')
      .orderBy('votes.agent_id')
      .compile(),
);

const setRanked = prepared(
  (db, { postId, agentId, ranked }: { postId: string; agentId: string; ranked: number }) =>
    db
      .updateTable('votes')
      .set({ ranked })
      .where('post_id', '=', postId)
      .where('agent_id', '=', agentId)
      .compile(),
);

const setRank = prepared((db, { postId, score, rank }: { postId: string; score: number; rank: number }) =>
  db.updateTable('posts').set({ rank_score: score, hot_rank: rank }).where('id', '=', postId).compile(),
);

/** Settles the next votes of an agent that are due. Returns whether there are more. */
export const settleVotes = defineWrite('votes.settle', async (tx, { agentId }: { agentId: string }) => {
  const agent = await lockAgent(tx, agentId);
  // Another process may have finished.
  if (!agent?.votes_due || agent.votes_due > timestamp(tx.now())) return false;
  return (await settleBatch(tx, agent)) !== null;
});

/**
 * Puts the next votes of an agent, which is locked, into the counts and ranks of their posts, or takes them out, as its
 * state demands; repeating it changes nothing. Returns where to go on, which is stored too; null when all are done.
 */
export async function settleBatch(tx: WriteContext, agent: AgentRow): Promise<string | null> {
  const votes = await votesAfter(tx.db, { agentId: agent.id, after: agent.votes_after ?? '' });
  const counted = agent.suspended_at === null ? 1 : 0;
  const known = { ...agent, mailbox_key: agent.mailbox_key ?? mailboxKeyOf(tx, agent) };
  // Statements about all of them travel together: every other agent that voted for the same posts waits for their rows.
  const posts = await Promise.all(
    votes.map((row) => changeTally(tx, row.post_id, countedOf(row), counted === 1 ? row.vote : null)),
  );
  await Promise.all(
    votes.map(async ({ post_id: postId, counted: was }, n) => {
      const post = posts[n];
      if (!post) return;
      const isSet = was === counted ? [] : [setCounted(tx.db, { postId, agentId: agent.id, counted })];
      await Promise.all([...isSet, rankVotes(tx, post, known)]);
    }),
  );
  const next = votes.length === batchLength ? (votes.at(-1)?.post_id ?? null) : null;
  const { id, mailbox_key } = known;
  const isOver = next === null && agent.suspended_at !== null;
  const votes_due = next !== null ? agent.votes_due : isOver ? null : weighsLater(tx, agent);
  await tx.db
    .updateTable('agents')
    .set({ mailbox_key, votes_after: next, votes_due })
    .where('id', '=', id)
    .execute();
  return next;
}

const votesAfter = prepared((db, { agentId, after }: { agentId: string; after: string }) =>
  db
    .selectFrom('votes')
    .select(['post_id', 'vote', 'counted'])
    .where('agent_id', '=', agentId)
    .where('post_id', '>', after)
    .orderBy('post_id')
    .limit(batchLength)
    .compile(),
);

const setCounted = prepared(
  (db, { postId, agentId, counted }: { postId: string; agentId: string; counted: number }) =>
    db
      .updateTable('votes')
      .set({ counted })
      .where('post_id', '=', postId)
      .where('agent_id', '=', agentId)
      .compile(),
);
