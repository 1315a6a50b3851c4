import { sql, type RawBuilder, type SelectQueryBuilder } from 'kysely';
import { AppError } from '../../errors.ts';
import { longWork } from '../../platform/slices.ts';
import type { Prose } from '../../rules/calls.ts';
import { sha256 } from '../../rules/secrets.ts';
import { controlFault } from '../../rules/text.ts';

/** Where a page of a list begins: after a given row (cursor), or after a number of rows. */
export type PageQuery = { readonly limit: number; readonly offset: number; readonly cursor: string | null };

/** A page, and the cursor of the next one. */
export type Page<T> = { readonly items: T[]; readonly nextCursor: string | null };

/** Entries of a list, a batch at a time: the first, and what reads the next; null after the last. */
export type Batches<T> = { readonly first: readonly T[]; readonly next: () => Promise<readonly T[] | null> };

/** The values of a list's sort columns in one row: what a cursor holds. */
export type SortKey = readonly (string | number)[];

/** How the rows of a list are ordered; no two of them have the same values in both columns. */
export type Order<Row> = {
  /** Names the list in its cursors. */
  readonly list: string;
  readonly columns: readonly [string | RawBuilder<unknown>, string];
  readonly direction: 'asc' | 'desc';
  /** What a row has in the columns. */
  keyOf(row: Row): SortKey;
};

/** Reads a page of a list, `after` the sort key of a cursor. */
export async function readPage<DB, TB extends keyof DB, Row, T>(
  rows: SelectQueryBuilder<DB, TB, Row>,
  order: Order<NoInfer<Row>>,
  after: SortKey | null,
  { limit, offset = 0 }: { readonly limit: number; readonly offset?: number },
  view: (row: Row) => T,
): Promise<Page<T>> {
  const read = await inOrder(rows, order, after)
    .limit(limit + 1)
    .offset(offset)
    .execute();
  return toPage(read as Row[], limit, order, view);
}

/** The rows in their order, from the one after a sort key on. */
export function inOrder<DB, TB extends keyof DB, Row>(
  rows: SelectQueryBuilder<DB, TB, Row>,
  { columns, direction }: Pick<Order<never>, 'columns' | 'direction'>,
  after: SortKey | null,
): SelectQueryBuilder<DB, TB, Row> {
  const [first, id] = columns;
  const column = typeof first === 'string' ? sql.ref(first) : first;
  const rest = after ? rows.where(compared({ columns }, direction === 'asc' ? '>' : '<', after)) : rows;
  return rest.orderBy(column, direction).orderBy(sql.ref(id), direction);
}

/** Rows of a list that are looked at in one go, where many of them may be passed over. */
const partLength = 200;

/**
 * The first rows `after` a sort key, where `all` has many between them that are passed over: these are looked at in
 * parts, other work between them, and `most` of them at all.
 */
export async function readInParts<DB, TB extends keyof DB, Row, All extends keyof DB>(
  rows: SelectQueryBuilder<DB, TB, Row>,
  all: SelectQueryBuilder<DB, All, object>,
  order: Pick<Order<never>, 'columns' | 'direction'>,
  { after, limit, most = Infinity }: { after: SortKey | null; limit: number; most?: number },
): Promise<Row[]> {
  const nextTurn = longWork();
  const read: Row[] = [];
  for (let from = after, left = most; ; left -= partLength) {
    const end = await endOfPart(all, order, from, Math.min(left, partLength));
    const part =
      end === null ? rows : rows.where(compared(order, order.direction === 'asc' ? '<=' : '>=', end));
    const some = await inOrder(part, order, from)
      .limit(limit - read.length)
      .execute();
    read.push(...(some as Row[]));
    if (end === null || read.length === limit || left <= partLength) return read;
    from = end;
    await nextTurn();
  }
}

/** The sort key of the last of so many rows; null where there are fewer. */
async function endOfPart<DB, TB extends keyof DB>(
  all: SelectQueryBuilder<DB, TB, object>,
  order: Pick<Order<never>, 'columns' | 'direction'>,
  after: SortKey | null,
  length: number,
): Promise<SortKey | null> {
  const [first, id] = order.columns;
  const column = typeof first === 'string' ? sql.ref<string>(first) : first;
  const last = await inOrder(all.select([column.as('first'), sql.ref<string>(id).as('last')]), order, after)
    .$castTo<{ first: string | number; last: string }>()
    .limit(1)
    .offset(length - 1)
    .executeTakeFirst();
  return last ? [last.first, last.last] : null;
}

/** Whether a row stands before or after a sort key, or at it. */
function compared(
  { columns: [first, id] }: Pick<Order<never>, 'columns'>,
  how: '<' | '>' | '<=' | '>=',
  key: SortKey,
): RawBuilder<boolean> {
  const column = typeof first === 'string' ? sql.ref(first) : first;
  return sql<boolean>`(${column}, ${sql.ref(id)}) ${sql.raw(how)} (${key[0]}, ${key[1]})`;
}

/** What to say of a cursor that is not of its list. */
export type CursorFault = { readonly field: string; readonly message: string; readonly hint: Prose };

const ofLists: CursorFault = {
  field: 'cursor',
  message: "must be a 'nextCursor' of the same list with the same filters",
  hint: 'Leave cursor out to start from the beginning.',
};

/** The sort key that a cursor holds, checked against the kind of list that made it. Throws invalid_input. */
export function readCursor(
  cursor: string | null,
  list: string,
  like: SortKey = ['', ''],
  fault: CursorFault = ofLists,
): SortKey | null {
  if (cursor === null) return null;
  try {
    const [madeBy, ...key] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    const fits =
      madeBy === list &&
      key.length === like.length &&
      key.every((value, i) => typeof value === typeof like[i] && isSortValue(value));
    if (fits) return key as SortKey;
  } catch {
    // Answered below, like every cursor that is not ours.
  }
  const { field, message, hint } = fault;
  throw new AppError('invalid_input', `'${field}' ${message}.`, { errors: [{ field, message }], hint });
}

/** Whether a sort column can have this value: others make PostgreSQL fail. */
function isSortValue(value: unknown): boolean {
  return typeof value === 'string'
    ? controlFault(value, { multiline: false }) === null
    : typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31;
}

/** The name of a list with filters, which its cursors keep: with another filter they would skip or repeat rows. */
export function filtered(list: string, filters: Readonly<Record<string, string | null>>): string {
  const given = Object.entries(filters).filter(([, value]) => value !== null);
  return given.length === 0 ? list : `${list}-${sha256(JSON.stringify(given)).slice(0, 8)}`;
}

/** How many rows there are: where no stored count tells. */
export async function countRows<DB, TB extends keyof DB>(
  rows: SelectQueryBuilder<DB, TB, object>,
): Promise<number> {
  const counted = rows.select(sql`count(*)`.as('count')).$castTo<{ count: number }>();
  return (await counted.executeTakeFirstOrThrow()).count;
}

/** Drops the row read beyond the limit, which only shows that there are more. */
export function toPage<R, T>(
  rows: readonly R[],
  limit: number,
  { list, keyOf }: Pick<Order<NoInfer<R>>, 'list' | 'keyOf'>,
  view: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: shown.map(view), nextCursor: more ? cursorOf(list, keyOf(last)) : null };
}

/** What {@link readCursor} reads back. */
export function cursorOf(list: string, key: SortKey): string {
  return Buffer.from(JSON.stringify([list, ...key])).toString('base64url');
}

/** Reads rows in batches, other work between them; `read` gets the last row before, at first `from`. The last batch is shorter, maybe empty. */
export async function* inBatches<Row>(
  length: number,
  read: (after: Row | undefined) => Promise<Row[]>,
  from?: Row,
): AsyncGenerator<Row[], undefined> {
  const nextTurn = longWork();
  for (let after = from; ;) {
    const rows = await read(after);
    yield rows;
    if (rows.length < length) return;
    await nextTurn();
    after = rows.at(-1);
  }
}
