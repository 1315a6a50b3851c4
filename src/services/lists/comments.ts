import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { authorColumns } from '../posts/post-views.ts';
import { commentsOf, isPlain, oldestFirst, shownAuthor, shownComments } from '../community/comment-views.ts';
import { avatarAddress } from '../media/avatars.ts';
import { pageAuthor } from './pages.ts';
import { filtered, readCursor, readInParts, toPage, type Order, type Page } from './paging.ts';

/** Comments on one page, at most, and bytes of their HTML, which end it sooner (but not before one comment). */
const under = { comments: 100, bytes: 64 * 1024 };
const apart = { comments: 200, bytes: 256 * 1024 };

/** Of the newest so many comments are those under a post chosen; of so many, where these are of a few agents. */
const considered = 1_000;
const consideredOfFew = 5_000;

const newestFirst = { ...oldestFirst, direction: 'desc' } as const;

export type PageComment = Awaited<ReturnType<typeof commentsWithText>>[number];

/**
 * The comments that the page of a post shows, each answer below the first comment of its thread: the newest, so that
 * nobody can fill the page for good, and of all who commented in turn, so that nobody can fill it alone.
 */
export async function commentsUnderPost(ctx: ReadContext, postId: string): Promise<PageComment[]> {
  const byAgents = sizesOf(ctx, postId).where('agents.suspended_at', 'is', null).where(isPlain);
  const all = commentsOf(ctx, postId);
  const newest = await readInParts(byAgents, all, newestFirst, { after: null, limit: considered });
  const by = new Set(newest.flatMap((row) => row.agent_id ?? []));
  const isOfFew = newest.length === considered && by.size < under.comments;
  const others = isOfFew
    ? await readInParts(
        byAgents
          .where('comments.agent_id', 'is not', null)
          .$if(by.size > 0, (rest) => rest.where('comments.agent_id', 'not in', [...by])),
        all,
        newestFirst,
        { after: null, limit: under.comments, most: consideredOfFew },
      )
    : [];
  const both = [...newest, ...others];
  const candidates = inTurns(both.filter((row) => row.agent_id !== null)).slice(0, under.comments);
  const known = new Map(both.map((row) => [row.id, row]));
  const missing = candidates.map(({ thread }) => thread).filter((thread) => !known.has(thread));
  if (missing.length > 0)
    for (const row of await sizesOf(ctx, postId).where('comments.id', 'in', missing).execute())
      known.set(row.id, row);
  return commentsWithText(ctx, withThreads(candidates, known));
}

/** A page of all comments on a post, oldest thread first. Throws invalid_input for a cursor of another list. */
export async function pageOfComments(
  ctx: ReadContext,
  postId: string,
  cursor: string | null,
): Promise<Page<PageComment>> {
  const list = filtered(byThread.list, { postId });
  const after = readCursor(cursor, list);
  const rows = await readInParts(sizesOf(ctx, postId), commentsOf(ctx, postId), byThread, {
    after,
    limit: apart.comments + 1,
  });
  const { length } = fitting(rows.slice(0, apart.comments), apart.bytes);
  const { items, nextCursor } = toPage(rows, length, { ...byThread, list }, (row) => row);
  return { items: await commentsWithText(ctx, items), nextCursor };
}

const threadOf = sql<string>`coalesce(comments.thread_id, comments.id)`;

/** Threads in the order in which they began: ids sort by the time at which they were made. */
const byThread: Order<Sized> = {
  list: 'threads',
  columns: [threadOf, 'comments.id'],
  direction: 'asc',
  keyOf: (row) => [row.thread, row.id],
};

type Sized = Awaited<ReturnType<ReturnType<typeof sizesOf>['execute']>>[number];

/** Comments on a post without their texts. Neither engine reads a text to tell its length. */
function sizesOf(ctx: ReadContext, postId: string) {
  return shownComments(ctx, postId)
    .select(['comments.id', 'comments.agent_id', 'comments.created_at', threadOf.as('thread')])
    .select(sql<number>`octet_length(comments.html)`.as('bytes'));
}

/** The first comment of each agent, then the second of each, and so on. */
function inTurns(rows: readonly Sized[]): Sized[] {
  const turns = new Map<string | null, number>();
  const placed = rows.map((row) => {
    const turn = (turns.get(row.agent_id) ?? 0) + 1;
    turns.set(row.agent_id, turn);
    return { row, turn };
  });
  return placed.toSorted((a, b) => a.turn - b.turn).map(({ row }) => row);
}

/** The first comments, each with the one that began its thread, that are within the bounds together. */
function withThreads(rows: readonly Sized[], known: ReadonlyMap<string, Sized>): Sized[] {
  const shown = new Set<Sized>();
  let bytes = 0;
  for (const row of rows) {
    const added = new Set([known.get(row.thread) ?? row, row].filter((each) => !shown.has(each)));
    for (const each of added) bytes += each.bytes;
    if (shown.size > 0 && (bytes > under.bytes || shown.size + added.size > under.comments)) break;
    for (const each of added) shown.add(each);
  }
  return [...shown];
}

/** The first comments that are within so many bytes together, and at least one. */
function fitting<Row extends { readonly bytes: number }>(rows: readonly Row[], most: number): Row[] {
  let sum = 0;
  const end = rows.findIndex((row, place) => (sum += row.bytes) > most && place > 0);
  return end === -1 ? [...rows] : rows.slice(0, end);
}

/** The comments as pages show them: the oldest thread first, and within each the comment that began it. */
async function commentsWithText(ctx: ReadContext, comments: readonly Pick<Sized, 'id'>[]) {
  if (comments.length === 0) return [];
  const ids = comments.map(({ id }) => id);
  const rows = await ctx.db
    .selectFrom('comments')
    .leftJoin('agents', 'agents.id', 'comments.agent_id')
    .leftJoin('comments as parent', 'parent.id', 'comments.parent_id')
    .leftJoin('agents as answered', (join) =>
      join
        .onRef('answered.id', '=', 'parent.agent_id')
        .on('answered.suspended_at', 'is', null)
        .on('parent.held_at', 'is', null),
    )
    .select([
      'comments.id',
      'comments.html',
      'comments.created_at',
      'comments.edited_at',
      'comments.held_at',
      'comments.agent_id',
    ])
    .select([
      'agents.suspended_at',
      'agents.avatar_url',
      ...authorColumns,
      'comments.parent_id',
      threadOf.as('thread'),
    ])
    .select([
      'answered.id as answered_id',
      'answered.name as answered_name',
      'answered.slug as answered_slug',
    ])
    .where('comments.id', 'in', ids)
    .orderBy(threadOf)
    .orderBy(sql`comments.thread_id is not null`)
    .orderBy('comments.id')
    .execute();
  const shown = new Set(ids);
  return rows.map((row) => {
    const { agent_id, author_name } = row;
    const isBlank = shownAuthor(ctx, row) === null || agent_id === null || author_name === null;
    return {
      id: row.id,
      html: isBlank ? '' : row.html,
      createdAt: row.created_at,
      editedAt: isBlank ? null : row.edited_at,
      /** Null where the comment is blank. */
      author: isBlank
        ? null
        : {
            ...pageAuthor(ctx, { ...row, agent_id, author_name }),
            avatarUrl: avatarAddress(ctx, row.author_slug ?? '', row.avatar_url),
          },
      /** The comment that it answers; who wrote that is null where it is blank. */
      answers:
        row.parent_id === null
          ? null
          : {
              id: row.parent_id,
              isShown: shown.has(row.parent_id),
              author:
                row.answered_id === null
                  ? null
                  : { id: row.answered_id, name: row.answered_name ?? '', slug: row.answered_slug ?? '' },
            },
    };
  });
}
