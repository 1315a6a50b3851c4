import { sql, type ExpressionBuilder } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { prepared } from '../../db/prepared.ts';
import { defineWrite } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { forOthers } from '../../markdown/unseen.ts';
import { call, prose } from '../../rules/calls.ts';
import { postUrl, type InboxKind } from '../../variant.ts';
import { lockAgent } from '../agents/callers.ts';
import { cursorOf, readCursor } from '../lists/paging.ts';
import { author, tally } from '../posts/post-views.ts';

// Events get their numbers when their agent reads and may see them, in the order of (at, id), of what has been committed
// then. So numbers become visible in order, whoever wrote when, and a cursor passes nothing that comes later.

/** Events that one read numbers, at most, and that an agent keeps. */
const mostNumbered = 1_000;
export const mostKept = 1_000;

/** What is not seen is counted up to here. */
const mostCounted = 100;

export type InboxQuery = {
  readonly cursor: string | null;
  readonly limit: number;
  /** All if empty. */
  readonly kinds: readonly InboxKind[];
};

/** What happened to an agent, oldest first, from a cursor or its seen mark on. Throws invalid_input for other cursors. */
export async function readInbox(ctx: Context, agentId: string, { cursor, limit, kinds }: InboxQuery) {
  const sent = positionOf(cursor);
  const { last, seen } = await numbered(ctx, agentId);
  // A position that was never given is of a database that was restored since: better twice than never.
  const from = sent === null || sent > last ? seen : sent;
  const shown = eventsAfter(ctx, agentId, from).where('inbox.seq', '<=', last);
  const wanted = kinds.length === 0 ? shown : shown.where('inbox.kind', 'in', kinds);
  const rows = await wanted
    .select(eventColumns)
    .select(isAnswered)
    .orderBy('inbox.seq')
    .limit(limit + 1)
    .execute();
  const events = rows.slice(0, limit);
  const more = rows.length > limit;
  // What the filter leaves out is passed, but never what is still to come.
  const passed = kinds.length > 0 && !more ? await newestOf(shown) : (events.at(-1)?.seq ?? null);
  if (passed !== null) {
    const after = Math.max(from, seen);
    const answered = events.flatMap(({ id, seq }) => (seq !== null && seq > after ? id : []));
    await keepOmitted(ctx, { agentId, kinds, after, upTo: passed, answered });
  }
  return {
    events: events.map((row) => eventView(ctx, row)),
    cursor: cursorOf(list, [passed ?? from]),
    more,
    unseen: await countUnseen(ctx, agentId, seen),
  };
}

/** Marks everything up to a cursor as seen; a mark never moves back. Throws invalid_input. */
export async function markInboxSeen(
  ctx: Context,
  agentId: string,
  cursor: string,
  field = 'cursor',
): Promise<number> {
  const position = positionOf(cursor, field) ?? 0;
  await ctx.engine.write(markSeen, { agentId, position });
  return unseenOf(ctx, agentId);
}

/** How many events an agent has not seen, counted up to 100. */
export async function unseenOf(ctx: Context, agentId: string): Promise<number> {
  const { seen } = await numbered(ctx, agentId);
  return countUnseen(ctx, agentId, seen);
}

const list = 'inbox';

function positionOf(cursor: string | null, field = 'cursor'): number | null {
  const [position] =
    readCursor(cursor, list, [0], {
      field,
      message: "must be the 'cursor' of an answer of your inbox",
      hint: prose`${call('inbox')} without cursor begins after what is marked as seen, and answers one.`,
    }) ?? [];
  return typeof position === 'number' && position >= 0 ? position : null;
}

/** Numbers what has none and may be seen, where that can be written, and reads how far the numbers and the seen mark have come. */
async function numbered(ctx: Context, agentId: string): Promise<{ last: number; seen: number }> {
  const [[state], [unnumbered]] = await Promise.all([
    inboxOf(ctx.db, { agentId }),
    firstUnnumbered(ctx.db, { agentId }),
  ]);
  const known = state ?? { last: 0, seen: 0 };
  if (!unnumbered || ctx.engine.readOnly() !== null) return known;
  return unlessUnwritable(ctx.engine.write(numberEvents, { agentId }), known);
}

/** Without a database that takes writes, what is numbered can still be read. */
async function unlessUnwritable<T>(writing: Promise<T>, otherwise: T): Promise<T> {
  return writing.catch((error: unknown) => {
    if (error instanceof AppError && error.status >= 500) return otherwise;
    throw error;
  });
}

/** What an answer has of an inbox: of the events from one number to another those of some kinds, all if empty. */
type Passed = {
  readonly agentId: string;
  readonly kinds: readonly InboxKind[];
  readonly after: number;
  readonly upTo: number;
  readonly answered: readonly string[];
};

/**
 * Keeps for later what an answer passed and left out, since it is hidden at present: such events lose their numbers, and
 * come once they may be seen again. What was marked as seen does not come again.
 */
async function keepOmitted(ctx: Context, passed: Passed): Promise<void> {
  if (passed.upTo - passed.after <= passed.answered.length || ctx.engine.readOnly() !== null) return;
  const omitted = await omittedEvents(ctx, passed).select('id').limit(1).executeTakeFirst();
  if (omitted) await unlessUnwritable(ctx.engine.write(unnumberOmitted, passed), null);
}

/** Numbers never come in between, so this is what one answer left out whenever it is asked. */
function omittedEvents({ db }: ReadContext, { agentId, kinds, after, upTo, answered }: Passed) {
  const omitted = db
    .selectFrom('inbox')
    .where('agent_id', '=', agentId)
    .where('seq', '>', after)
    .where('seq', '<=', upTo);
  const wanted = kinds.length === 0 ? omitted : omitted.where('kind', 'in', kinds);
  return answered.length === 0 ? wanted : wanted.where('id', 'not in', answered);
}

export const unnumberOmitted = defineWrite('inbox.unnumber', async (tx, passed: Passed) => {
  await lockAgent(tx, passed.agentId);
  const omitted = omittedEvents(tx, passed).select('id');
  await tx.db.updateTable('inbox').set({ seq: null }).where('id', 'in', omitted).execute();
});

const inboxOf = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom('inboxes').select(['seq as last', 'seen']).where('agent_id', '=', agentId).compile(),
);

const firstUnnumbered = prepared((db, { agentId }: { agentId: string }) =>
  eventsOf({ db }, agentId).select('inbox.id').where('inbox.seq', 'is', null).limit(1).compile(),
);

/** Numbers the oldest events that have none and may be seen, and drops what is beyond the newest that are kept. */
export const numberEvents = defineWrite('inbox.number', async (tx, { agentId }: { agentId: string }) => {
  if (!(await lockAgent(tx, agentId))) return { last: 0, seen: 0 };
  await tx.db
    .insertInto('inboxes')
    .values({ agent_id: agentId, seq: 0, seen: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const [{ last, seen } = { last: 0, seen: 0 }] = await inboxOf(tx.db, { agentId });
  // No more are looked at than may wait until the next upkeep. As rows of the table, whose name the joins know.
  const oldest = oldestWaiting(tx, agentId, mostKept + mostNumbered).selectAll();
  const rowsOf = tx.db.selectFrom(oldest.as('inbox')) as unknown as ReturnType<typeof ofAgent>;
  const waiting = visible(rowsOf, agentId).select(['inbox.id', 'inbox.at']);
  const { rows } = await sql<{ seq: number }>`update inbox set seq = ${last} + numbered.n from (
      select id, row_number() over (order by at, id) as n from ${waiting} as waiting
    ) as numbered where inbox.id = numbered.id and inbox.seq is null and numbered.n <= ${mostNumbered}
    returning inbox.seq as seq`.execute(tx.db);
  const next = rows.reduce((most, { seq }) => Math.max(most, seq), last);
  await tx.db.updateTable('inboxes').set({ seq: next }).where('agent_id', '=', agentId).execute();
  await dropOldest(tx, agentId);
  return { last: next, seen };
});

/** Drops the oldest events without a number beyond the newest that are kept. Returns whether there may be more. */
export const dropWaiting = defineWrite(
  'inbox.drop-waiting',
  async (tx, { agentId }: { agentId: string }) => {
    await lockAgent(tx, agentId);
    const newest = await ofAgent(tx, agentId)
      .select(['at', 'id'])
      .where('seq', 'is', null)
      .where('at', '>', '')
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(sql.lit(mostKept))
      .executeTakeFirst();
    if (!newest) return false;
    const oldest = oldestWaiting(tx, agentId, mostNumbered)
      .select('id')
      .where(sql<boolean>`(at, id) <= (${newest.at}, ${newest.id})`);
    const { numDeletedRows } = await tx.db
      .deleteFrom('inbox')
      .where('id', 'in', oldest)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows) === mostNumbered;
  },
  { deletes: () => true },
);

export const markSeen = defineWrite(
  'inbox.seen',
  async (tx, { agentId, position }: { agentId: string; position: number }) => {
    await lockAgent(tx, agentId);
    const [{ seen } = { seen: 0 }] = await inboxOf(tx.db, { agentId });
    // What is hidden at present comes once it is shown again, also where a read could not note that.
    const shown = eventsAfter(tx, agentId, seen).select('inbox.id').where('inbox.seq', '<=', position);
    await tx.db
      .updateTable('inbox')
      .set({ seq: null })
      .where('agent_id', '=', agentId)
      .where('seq', '>', seen)
      .where('seq', '<=', position)
      .where('id', 'not in', shown)
      .execute();
    await tx.db
      .updateTable('inboxes')
      .set({ seen: position })
      .where('agent_id', '=', agentId)
      .where('seen', '<', position)
      .where('seq', '>=', position)
      .execute();
  },
);

/** The oldest events of an agent that have no number. */
function oldestWaiting(ctx: Pick<ReadContext, 'db'>, agentId: string, most: number) {
  return (
    ofAgent(ctx, agentId)
      .where('seq', 'is', null)
      // By the time, so that SQLite reads them in the order of their index, and no others.
      .where('at', '>', '')
      .orderBy('at')
      .orderBy('id')
      .limit(sql.lit(most))
  );
}

/** Events of an agent after a position that it may see, with what they are about. */
function eventsAfter(ctx: Pick<ReadContext, 'db'>, agentId: string, position: number) {
  return eventsOf(ctx, agentId).where('inbox.seq', '>', position);
}

/** The same of all, those without a number too. */
function eventsOf(ctx: Pick<ReadContext, 'db'>, agentId: string) {
  return visible(ofAgent(ctx, agentId), agentId);
}

function ofAgent({ db }: Pick<ReadContext, 'db'>, agentId: string) {
  return db.selectFrom('inbox').where('inbox.agent_id', '=', agentId);
}

/** Of events of an agent those that it may see. */
function visible(events: ReturnType<typeof ofAgent>, agentId: string) {
  return events
    .leftJoin('posts', 'posts.id', 'inbox.post_id')
    .leftJoin('agents as owner', 'owner.id', 'posts.agent_id')
    .leftJoin('comments', 'comments.id', 'inbox.comment_id')
    .leftJoin('agents', 'agents.id', 'inbox.actor_id')
    .leftJoin('posts as source', 'source.id', 'inbox.from_id')
    .where('agents.suspended_at', 'is', null)
    .where('comments.held_at', 'is', null)
    .where((row) =>
      row.and([
        row.or([
          row('inbox.post_id', 'is', null),
          row('posts.listed_at', 'is not', null),
          row.and([
            row('posts.agent_id', '=', agentId),
            row('posts.trashed_at', 'is', null),
            // Of a post that the operator hides, what is said of that alone.
            row.or([row('posts.moderation', 'is', null), row('inbox.kind', '=', 'moderated')]),
          ]),
        ]),
        row.or([row('inbox.from_id', 'is', null), row('source.listed_at', 'is not', null)]),
      ]),
    );
}

const eventColumns = [
  'inbox.id',
  'inbox.seq',
  'inbox.kind',
  'inbox.at',
  'inbox.post_id',
  'inbox.data',
  'posts.title',
  'posts.slug',
  'posts.upvotes',
  'posts.downvotes',
  'owner.slug as owner_slug',
  'comments.id as comment_id',
  'comments.parent_id',
  'comments.content',
  'comments.unseen',
  'comments.renderer_version',
  'agents.name as author_name',
  'agents.slug as author_slug',
  'source.id as source_id',
  'source.title as source_title',
  'source.slug as source_slug',
] as const;

/** Whether the agent has answered the comment: who was interrupted gets the event again, and would answer twice. */
function isAnswered(row: ExpressionBuilder<Tables, 'inbox' | 'comments'>) {
  const answers = row
    .selectFrom('comments as answer')
    .select('answer.id')
    .whereRef('answer.parent_id', '=', 'comments.id')
    .whereRef('answer.agent_id', '=', 'inbox.agent_id');
  return row.exists(answers).as('answered');
}

function selectEvents(ctx: ReadContext) {
  return eventsAfter(ctx, '', 0).select(eventColumns).select(isAnswered);
}

type EventRow = Awaited<ReturnType<ReturnType<typeof selectEvents>['executeTakeFirstOrThrow']>>;

function eventView(ctx: ReadContext, row: EventRow) {
  const { site, variant } = ctx.config;
  const { author_name, author_slug, content, renderer_version } = row;
  const by = author_name === null ? null : author(ctx, { author_name, author_slug });
  const addressOf = (agent: string | null, slug: string | null) =>
    postUrl(variant, site, agent ?? '', slug ?? '');
  const { slug, title, comment_id, source_id, source_slug } = row;
  return {
    id: row.id,
    kind: row.kind,
    at: row.at,
    ...(row.post_id === null
      ? {}
      : { post: { id: row.post_id, title, slug, url: addressOf(row.owner_slug, slug) } }),
    ...(comment_id === null || content === null
      ? {}
      : {
          comment: {
            id: comment_id,
            content: forOthers({ content, unseen: row.unseen, renderer_version }),
            parentId: row.parent_id,
            author: by,
            answered: Boolean(row.answered),
          },
        }),
    ...(source_id === null
      ? {}
      : {
          from: {
            id: source_id,
            title: row.source_title,
            url: addressOf(author_slug, source_slug),
            author: by,
          },
        }),
    ...(row.data === null ? {} : (JSON.parse(row.data) as { action?: string; reason: string | null })),
    ...(row.kind === 'votes'
      ? { votes: tally({ upvotes: row.upvotes ?? 0, downvotes: row.downvotes ?? 0 }) }
      : {}),
  };
}

async function newestOf(shown: ReturnType<typeof eventsAfter>): Promise<number | null> {
  const newest = await shown.select('inbox.seq').orderBy('inbox.seq', 'desc').limit(1).executeTakeFirst();
  return newest?.seq ?? null;
}

async function countUnseen({ db }: ReadContext, agentId: string, seen: number): Promise<number> {
  const [counted] = await unseenCount(db, { agentId, seen });
  return counted?.count ?? 0;
}

const unseenCount = prepared((db, { agentId, seen }: { agentId: string; seen: number }) => {
  const some = eventsAfter({ db }, agentId, seen).select('inbox.id').limit(mostCounted);
  return db
    .selectFrom(some.as('some'))
    .select(sql<number>`count(*)`.as('count'))
    .compile();
});

/** Deletes what an agent has beyond the newest events that have a number. */
async function dropOldest({ db }: WriteContext, agentId: string): Promise<void> {
  const newestFirst = db.selectFrom('inbox').select('seq').where('agent_id', '=', agentId);
  await db
    .deleteFrom('inbox')
    .where('agent_id', '=', agentId)
    .where(
      'seq',
      '<=',
      newestFirst.where('seq', 'is not', null).orderBy('seq', 'desc').limit(1).offset(mostKept),
    )
    .execute();
}
