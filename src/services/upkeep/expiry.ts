import { sql } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { endSuspensions } from '../operators/moderation.ts';
import { dropWaiting, mostKept } from '../community/inbox.ts';
import { eraseDue } from '../agents/self-deletion.ts';
import { endProbations } from '../trust/probation.ts';
import { removeOrphaned } from '../media/picture-sweep.ts';
import { expireAppeals } from '../operators/appeals.ts';
import { expireReports } from '../operators/reports.ts';
import { purgeTrash } from '../trash/erasure.ts';
import { forgetRevisions, oldestKept } from '../posts/post-history.ts';
import { throwFirst, type Between, type Failures } from './one-by-one.ts';
import { day } from '../../platform/durations.ts';

/** Posts of the trash that are erased in one go, since each may have thousands of comments. */
const postsAtOnce = 100;
/** Revisions that one write looks at. */
const revisionsAtOnce = 100;

/** Events of inboxes that one write deletes, and how long they are kept, ms. */
const eventsAtOnce = 500;
const eventsKeptFor = 90 * day;

/** Unread events that one query counts, of one agent or several: more than an agent keeps. */
const eventsCounted = 2 * mostKept;

/**
 * Ends suspensions and probations, and deletes what has been stored for as long as the settings say. Any number of processes may do
 * it, and any of them may crash. `between` is called after each write, to let others go first; it returns whether to go on.
 * What fails holds up nothing else: the first failure is thrown at the end.
 */
export async function expire(ctx: Context, between: Between): Promise<void> {
  let goesOn = true;
  const asked = async () => (goesOn = await between());
  const writes = [ageOutRevisions, expireEvents, expireActions, expireReports, expireAppeals];
  const steps = [
    endSuspensions,
    endProbations,
    ...writes.map((write) => async () => {
      for (let more = true; more;) {
        more = await ctx.engine.write(write, null);
        more = (await asked()) && more;
      }
    }),
    removePictures,
    dropUnread,
    purge,
    eraseDue,
  ];
  const failures: unknown[] = [];
  for (const step of steps) {
    await step(ctx, asked).catch(async (error: unknown) => {
      failures.push(error);
      await asked();
    });
    if (!goesOn) break;
  }
  if (failures.length > 0) throw failures[0];
}

/** Removes files that no picture is stored in. Throws at the end if one could not be removed. */
async function removePictures(ctx: Context, between: Between): Promise<void> {
  let first: string | null = null;
  for (let goesOn = true; goesOn;) {
    const { more, failed } = await ctx.engine.write(removeOrphaned, null);
    first ??= failed;
    goesOn = (await between()) && more;
  }
  if (first !== null) throw new Error(first);
}

async function purge(ctx: Context, between: Between): Promise<void> {
  for (let erased = 0; erased < postsAtOnce;) {
    const last = await ctx.engine.write(purgeTrash, null);
    erased += last;
    if (!(await between()) || last === 0) return;
  }
}

/** Bounds the inboxes that nobody reads. One that fails holds up no other. */
async function dropUnread(ctx: Context, between: Between): Promise<void> {
  const failures: Failures = new Map();
  let goesOn = true;
  for (let after: string | null = ''; after !== null && goesOn;) {
    const { full, next }: Counted = await countWaiting(ctx, after);
    goesOn = await between();
    for (const agentId of full) {
      for (let more = goesOn; more;) {
        more = await ctx.engine.write(dropWaiting, { agentId }).catch((error: unknown) => {
          failures.set(agentId, error);
          return false;
        });
        goesOn = await between();
        more &&= goesOn;
      }
    }
    after = next;
  }
  throwFirst(failures);
}

/** Agents that have more events without a number than are kept, and after which agent to go on; null at the end. */
type Counted = { readonly full: readonly string[]; readonly next: string | null };

/** Counts the events without a number of some agents, in the order of ids. */
async function countWaiting({ db }: ReadContext, after: string): Promise<Counted> {
  const some = db
    .selectFrom('inbox')
    .select('agent_id')
    .where('seq', 'is', null)
    .where('agent_id', '>', after)
    // As their index has them: SQLite reads those with a number too for less.
    .orderBy('agent_id')
    .orderBy('at')
    .orderBy('id')
    .limit(sql.lit(eventsCounted));
  const agents = await db
    .selectFrom(some.as('some'))
    .select((row) => ['agent_id as id', row.fn.countAll<number>().as('events')])
    .groupBy('agent_id')
    .orderBy('agent_id')
    .execute();
  const isLast = agents.reduce((sum, { events }) => sum + events, 0) < eventsCounted;
  // The last one may have more, and is counted again unless it is the only one.
  const whole = isLast || agents.length === 1 ? agents : agents.slice(0, -1);
  return {
    full: whole.filter(({ events }) => events > mostKept).map(({ id }) => id),
    next: isLast ? null : (whole.at(-1)?.id ?? null),
  };
}

/** Deletes revisions that were replaced too long ago. Returns whether there may be more. */
export const ageOutRevisions = defineWrite('revisions.age-out', async (tx) => {
  const old = await tx.db
    .selectFrom('post_revisions')
    .select(['agent_id as agentId', 'post_id as postId', 'revision as upTo'])
    .where('replaced_at', '<=', oldestKept(tx))
    .orderBy('replaced_at')
    .limit(revisionsAtOnce)
    .execute();
  // In the order of agents, so that two processes cannot deadlock.
  for (const row of old.toSorted((a, b) => (a.agentId < b.agentId ? -1 : 1))) {
    await lockAgent(tx, row.agentId);
    forgetRevisions(tx, row);
  }
  return old.length === revisionsAtOnce;
});

/** Deletes the oldest entries of the audit that are kept no longer, and blocks that ended as long ago. Returns whether there may be more. */
export const expireActions = defineWrite('audit.expire', async (tx) => {
  const old = tx.db
    .selectFrom('audit')
    .select('id')
    .where('at', '<', timestamp(tx.now() - tx.config.auditDays * day))
    .orderBy('at')
    .limit(sql.lit(eventsAtOnce));
  const { numDeletedRows } = await tx.db.deleteFrom('audit').where('id', 'in', old).executeTakeFirstOrThrow();
  await tx.db
    .deleteFrom('source_blocks')
    .where('ended_at', '<', timestamp(tx.now() - tx.config.auditDays * day))
    .execute();
  return numDeletedRows === BigInt(eventsAtOnce);
});

/** Deletes the oldest events that are kept no longer. Returns whether there may be more. */
export const expireEvents = defineWrite('inbox.expire', async (tx) => {
  const old = tx.db
    .selectFrom('inbox')
    .select('id')
    .where('at', '<', timestamp(tx.now() - eventsKeptFor))
    .orderBy('at')
    .limit(sql.lit(eventsAtOnce));
  const { numDeletedRows } = await tx.db.deleteFrom('inbox').where('id', 'in', old).executeTakeFirstOrThrow();
  return numDeletedRows === BigInt(eventsAtOnce);
});
