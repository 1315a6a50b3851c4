import type { Context, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { nameKey } from '../../rules/text.ts';
import { finishAllListings } from '../agents/hiding.ts';
import { countComments } from '../limits/quota.ts';
import { agentsDue, doInParts, throwFirst, type Between, type Failures } from '../upkeep/one-by-one.ts';
import { mailboxKeyOf, settleVotes } from './votes.ts';

/** Agents that one write looks at. */
const agentsAtOnce = 200;

/**
 * Counts what earlier releases did not, and settles the posts and votes that are due: of agents that were suspended or
 * restored, or whose blogs are a day old by now. Any number of processes may do it, and any of them may crash. `between` is
 * called after each write, to let others go first; it returns whether to go on.
 */
export async function settleCommunity(ctx: Context, between: Between): Promise<void> {
  const failures: Failures = new Map();
  let goesOn = true;
  const asked = async () => (goesOn = await between());
  for (const step of [sortAllNames, countAll, finishAllListings, settleAllVotes])
    if (goesOn) await step(ctx, asked).catch((error: unknown) => failures.set(step.name, error));
  throwFirst(failures);
}

async function sortAllNames(ctx: Context, between: Between): Promise<void> {
  for (let more = await hasAny(unsortedAgents(ctx.db)); more;) {
    more = await ctx.engine.write(sortNames, null);
    if (!(await between())) return;
  }
}

async function countAll(ctx: Context, between: Between): Promise<void> {
  while (await hasAny(uncountedAgents(ctx.db))) {
    await ctx.engine.write(countUncounted, null);
    if (!(await between())) return;
  }
}

async function settleAllVotes(ctx: Context, between: Between): Promise<void> {
  while (await findUncountedVotes(ctx)) if (!(await between())) return;
  const due = agentsDue(ctx, 'votes_due', agentsAtOnce);
  await doInParts(due, ({ id: agentId }) => ctx.engine.write(settleVotes, { agentId }), between);
}

/** Asks in the order of their index: PostgreSQL reads the whole table where it expects to meet one soon. */
async function hasAny(agents: ReturnType<typeof uncountedAgents>): Promise<boolean> {
  return (await agents.select('id').orderBy('id').limit(1).executeTakeFirst()) !== undefined;
}

/** Who is not verified has neither votes nor comments, and a mailbox can have thousands of them. */
function uncountedAgents(db: Context['db']) {
  return db
    .selectFrom('agents')
    .where('verified_at', 'is not', null)
    .where((row) => row.or([row('mailbox_key', 'is', null), row('comment_bytes', 'is', null)]));
}

function unsortedAgents(db: Context['db']) {
  return db.selectFrom('agents').where('name_key', 'is', null).where('verified_at', 'is not', null);
}

/** Fills in what names are sorted by. Returns whether there may be more. */
export const sortNames = defineWrite('community.sort-names', async (tx) => {
  const agents = await unsortedAgents(tx.db)
    .select(['id', 'name'])
    .orderBy('id')
    .limit(agentsAtOnce)
    .execute();
  for (const { id, name } of agents)
    await tx.db
      .updateTable('agents')
      .set({ name_key: nameKey(name) })
      .where('id', '=', id)
      // It may be renamed at this moment.
      .where('name', '=', name)
      .execute();
  return agents.length === agentsAtOnce;
});

/** Fills in the mailbox of verified agents that have none, and counts their comments. */
export const countUncounted = defineWrite('community.count', async (tx) => {
  const agents = await uncountedAgents(tx.db)
    .select(['id', 'email', 'mailbox_key', 'comment_bytes'])
    // In the same order in all processes, so that two of them cannot deadlock.
    .orderBy('id')
    .limit(agentsAtOnce)
    .execute();
  for (const agent of agents) {
    if (agent.comment_bytes === null) await countComments(tx, agent.id);
    if (agent.mailbox_key !== null) continue;
    const mailbox_key = mailboxKeyOf(tx, agent);
    await tx.db.updateTable('agents').set({ mailbox_key }).where('id', '=', agent.id).execute();
    // Which of the votes from a mailbox weighs is known only now.
    await makeVotesDue(tx, [agent.id]);
  }
});

/** Makes votes due that processes of an earlier release have stored meanwhile. Returns whether there were any. */
async function findUncountedVotes(ctx: Context): Promise<boolean> {
  const voters = await ctx.db
    .selectFrom('votes')
    // Each has one. Where it knows nothing of the tables, PostgreSQL would begin an inner join with all agents.
    .leftJoin('agents', 'agents.id', 'votes.agent_id')
    .select('votes.agent_id')
    .distinct()
    .where('votes.counted', 'is', null)
    .where('agents.votes_due', 'is', null)
    .limit(agentsAtOnce)
    .execute();
  if (voters.length > 0) await ctx.engine.write(noteDue, { ids: voters.map((row) => row.agent_id) });
  return voters.length > 0;
}

export const noteDue = defineWrite('votes.due', async (tx, { ids }: { ids: readonly string[] }) =>
  makeVotesDue(tx, ids),
);

/** Where agents have voted, and it is not noted for when, notes that their votes are to be settled now. */
async function makeVotesDue(tx: WriteContext, ids: readonly string[]): Promise<void> {
  await tx.db
    .updateTable('agents')
    .set({ votes_due: timestamp(tx.now()), votes_after: null })
    .where('id', 'in', [...ids].toSorted())
    .where((agent) =>
      agent.exists(agent.selectFrom('votes').select('post_id').whereRef('agent_id', '=', 'agents.id')),
    )
    .execute();
}
