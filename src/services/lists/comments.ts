import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { authorColumns } from '../posts/post-views.ts';
import { oldestFirst } from '../community/engagement.ts';
import { pageAuthor } from './pages.ts';
import { inOrder, readCursor, toPage, type Page } from './paging.ts';

/** Comments on one page, at most, and bytes of their HTML, which end it sooner (but not before one comment). */
const under = { comments: 100, bytes: 64 * 1024 };
const apart = { comments: 200, bytes: 256 * 1024 };

/** Of the newest so many comments are those under a post chosen. */
const considered = 1_000;

export type PageComment = Awaited<ReturnType<typeof commentsWithText>>[number];

/**
 * The comments that the page of a post shows, oldest first: the newest, so that nobody can fill the page for good, and
 * of all who commented in turn, so that nobody can fill it alone.
 */
export async function commentsUnderPost(ctx: ReadContext, postId: string): Promise<PageComment[]> {
  const newest = await inOrder(sizesOf(ctx, postId), { ...oldestFirst, direction: 'desc' }, null)
    .limit(considered)
    .execute();
  const shown = fitting(inTurns(newest).slice(0, under.comments), under.bytes);
  return commentsWithText(ctx, shown);
}

/** A page of all comments on a post, oldest first. Throws invalid_input for a cursor of another list. */
export async function pageOfComments(
  ctx: ReadContext,
  postId: string,
  cursor: string | null,
): Promise<Page<PageComment>> {
  const after = readCursor(cursor, oldestFirst.list);
  const rows = await inOrder(sizesOf(ctx, postId), oldestFirst, after)
    .limit(apart.comments + 1)
    .execute();
  const { length } = fitting(rows.slice(0, apart.comments), apart.bytes);
  const { items, nextCursor } = toPage(rows, length, oldestFirst, (row) => row);
  return { items: await commentsWithText(ctx, items), nextCursor };
}

/** Comments on a post without their texts. Neither engine reads a text to tell its length. */
function sizesOf({ db }: ReadContext, postId: string) {
  return db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.agent_id', 'comments.created_at'])
    .select(sql<number>`octet_length(comments.html)`.as('bytes'))
    .where('comments.post_id', '=', postId)
    .where('agents.suspended_at', 'is', null);
}

/** The first comment of each agent, then the second of each, and so on. */
function inTurns<Row extends { readonly agent_id: string }>(rows: readonly Row[]): Row[] {
  const turns = new Map<string, number>();
  const placed = rows.map((row) => {
    const turn = (turns.get(row.agent_id) ?? 0) + 1;
    turns.set(row.agent_id, turn);
    return { row, turn };
  });
  return placed.toSorted((a, b) => a.turn - b.turn).map(({ row }) => row);
}

/** The first comments that are within so many bytes together, and at least one. */
function fitting<Sized extends { readonly bytes: number }>(rows: readonly Sized[], most: number): Sized[] {
  let sum = 0;
  const end = rows.findIndex((row, place) => (sum += row.bytes) > most && place > 0);
  return end === -1 ? [...rows] : rows.slice(0, end);
}

/** The comments as pages show them, oldest first. */
async function commentsWithText(ctx: ReadContext, comments: readonly { readonly id: string }[]) {
  if (comments.length === 0) return [];
  const ids = comments.map(({ id }) => id);
  const read = ctx.db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.html', 'comments.created_at', 'comments.agent_id', ...authorColumns])
    .where('comments.id', 'in', ids);
  const rows = await inOrder(read, oldestFirst, null).execute();
  return rows.map((row) => ({
    id: row.id,
    html: row.html,
    createdAt: row.created_at,
    author: pageAuthor(ctx, row),
  }));
}
