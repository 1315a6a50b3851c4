import { sql } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import type { PostRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import type { Stored } from '../../markdown/pool/jobs.ts';
import { parseTags } from '../../rules/post-fields.ts';
import { lockCaller, type Caller } from '../agents/callers.ts';
import { readCursor, toPage, type Page } from '../lists/paging.ts';
import { openReports } from '../operators/report-targets.ts';
import type { Preconditions } from '../preconditions.ts';
import { requireOwnPost, storedText } from './find-post.ts';
import { countRevisionBytes, oldestKept, presentCause } from './post-history.ts';
import { revisionName } from './post-plan.ts';
import { publish, type Published } from './posts.ts';

/** A state of a post, present or former, without its text. */
type State = Pick<Tables['post_revisions'], (typeof stateColumns)[number]> & {
  /** Whether its row holds its text; else a later row does, or the post. */
  readonly holdsText: boolean;
  readonly isCurrent: boolean;
};

const stateColumns = [
  'revision',
  'at',
  'cause',
  'title',
  'slug',
  'status',
  'tags',
  'lang',
  'excerpt',
  'excerpt_given',
  'disclosure',
  'bytes',
  'erased_at',
] as const;

/** A revision in a list. */
export type RevisionEntry = Readonly<ReturnType<typeof entry>> & {
  /** Lines that this revision added to the text before and took from it; null where they were not counted. */
  readonly linesAdded: number | null;
  readonly linesRemoved: number | null;
};

/** Entries of a page whose lines are counted: each takes a look at two texts. */
const countedEntries = 20;

/** The revisions of a post of the caller's, the present one first. Throws not_found, forbidden. */
export async function listRevisions(
  ctx: Context,
  { agentId, postId }: { agentId: string; postId: string },
  { limit, cursor, signal }: { limit: number; cursor: string | null; signal: AbortSignal },
): Promise<Page<RevisionEntry> & { total: number }> {
  const post = await requireOwnPost(ctx, agentId, postId);
  const list = `revisions-${postId.slice(-8)}`;
  const [after = Number.MAX_SAFE_INTEGER] = readCursor(cursor, list, [0])?.map(Number) ?? [];
  const kept = await keptRows(ctx, postId);
  const all = [present(post), ...kept];
  const rows = all.filter(({ revision }) => revision < after);
  const order = { list, keyOf: (row: State) => [row.revision] };
  const page = toPage(rows.slice(0, limit + 1), limit, order, (row) => row);
  const items: RevisionEntry[] = [];
  for (const [n, row] of page.items.entries()) {
    const counted = n < countedEntries ? await countLines(ctx, post, all, row, signal) : null;
    items.push({
      ...entry(row),
      linesAdded: counted?.added ?? null,
      linesRemoved: counted?.removed ?? null,
    });
  }
  return { items, nextCursor: page.nextCursor, total: all.length };
}

/** One revision with its texts. Throws not_found, forbidden. */
export async function readRevision(ctx: ReadContext, agentId: string, postId: string, revision: number) {
  const { row, text } = stateAt(ctx, await statesOf(ctx, agentId, postId), revision);
  const content = await text.read();
  const { lang, excerpt, disclosure } = row;
  return { row, view: { ...entry(row), content, tags: parseTags(row.tags), lang, excerpt, disclosure } };
}

/** The former states of a post that are kept with their texts, newest first, read as they are consumed. */
export async function* formerRevisions(ctx: ReadContext, post: PostRow) {
  const kept = await keptRows(ctx, post.id);
  for (const row of kept) {
    const content = row.erased_at === null ? await textOf(ctx, post, kept, row) : null;
    if (content !== null) yield { row, content };
  }
}

/** What changed in the text from one revision to another (null: the present one). Throws not_found, forbidden, unrenderable. */
export async function diffRevisions(
  ctx: Context,
  { agentId, postId }: { agentId: string; postId: string },
  { from, to, signal }: { from: number; to: number | null; signal: AbortSignal },
): Promise<{ diff: string; truncated: boolean }> {
  const states = await statesOf(ctx, agentId, postId);
  const before = stateAt(ctx, states, from);
  const after = stateAt(ctx, states, to ?? states.post.revision);
  const names = [revisionName(before.row), revisionName(after.row)] as const;
  const read = async () => ({ before: await before.text.read(), after: await after.text.read(), names });
  const bytes = before.text.bytes + after.text.bytes;
  const { diff, truncated } = await ctx.renderer.diff({ bytes, read }, agentId, signal);
  return { diff: changedFields(before.row, after.row) + diff, truncated };
}

/** Title and tags where they differ, as lines that `patch` passes over. */
function changedFields(before: State, after: State): string {
  const tagsOf = ({ tags }: State) => parseTags(tags).join(', ') || 'none';
  const fields = [
    ['title', before.title, after.title],
    ['tags', tagsOf(before), tagsOf(after)],
  ] as const;
  return fields.map(([name, was, is]) => (was === is ? '' : `# ${name}: ${was} -> ${is}\n`)).join('');
}

/**
 * Makes title, text, tags, language, excerpt and disclosure those of a revision again, as a new one. Throws as
 * `publish` does.
 */
export async function restoreRevision(
  ctx: Context,
  caller: Caller,
  { postId, revision, ...options }: Restoring,
): Promise<Published> {
  const { row, text } = stateAt(ctx, await statesOf(ctx, caller.id, postId), revision);
  const { title, lang, disclosure } = row;
  const excerpt = row.excerpt_given === 1 ? row.excerpt : null;
  const fields = { title, tags: parseTags(row.tags), lang, excerpt, disclosure };
  return publish(ctx, caller, fields, { postId, ...options, restored: text });
}

type Restoring = {
  readonly postId: string;
  readonly revision: number;
  readonly preconditions: Preconditions;
  readonly ticket?: Ticket | undefined;
  readonly signal: AbortSignal;
};

/**
 * Erases the texts of one former revision, with those beside it that have the same text, or of all (null). Their numbers
 * and times stay. Returns how many were erased, and whether an open report has a copy of one. Throws not_found,
 * forbidden, invalid_input for the present one.
 */
export const eraseRevisions = defineWrite(
  'revisions.erase',
  async (tx, { agentId, postId, revision }: { agentId: string; postId: string; revision: number | null }) => {
    await lockCaller(tx, agentId);
    const post = await requireOwnPost(tx, agentId, postId);
    if (revision === post.revision) throw isPresent(revision);
    const kept = await keptRows(tx, postId);
    if (revision !== null && !kept.some((row) => row.revision === revision)) throw noSuchRevision(revision);
    const chosen = revision === null ? kept : sameText(kept, revision);
    const left = chosen.filter(({ erased_at }) => erased_at === null).map((row) => row.revision);
    if (left.length === 0) {
      await tx.confirmDurable();
      return { erased: 0, isPresentText: false, isReported: false };
    }
    await erase(tx, postId, left);
    await countRevisionBytes(tx, agentId);
    const newest = kept.find(({ holdsText }) => holdsText)?.revision ?? 0;
    const isPresentText = left.some((number) => number > newest);
    return { erased: left.length, isPresentText, isReported: await isCopied(tx, postId, left) };
  },
  { deletes: () => true },
);

/** Whether an open report has a copy of what one of these revisions said. */
async function isCopied(ctx: ReadContext, targetId: string, revisions: readonly number[]): Promise<boolean> {
  const reports = openReports(ctx, { targetId }).where('snapshot', 'is not', null);
  const one = await reports.where('revision', 'in', revisions).select('id').limit(1).executeTakeFirst();
  return one !== undefined;
}

async function erase(tx: WriteContext, postId: string, revisions: readonly number[]): Promise<void> {
  await tx.db
    .updateTable('post_revisions')
    .set({
      content: null,
      title: '',
      excerpt: '',
      tags: '[]',
      edit_hash: null,
      erased_at: timestamp(tx.now()),
    })
    .where('post_id', '=', postId)
    .where('revision', 'in', revisions)
    .execute();
}

/** The revisions around one that have its text: those up to the next later row that holds one. Newest first. */
function sameText(kept: readonly State[], revision: number): State[] {
  const at = kept.findIndex((row) => row.revision === revision);
  const holds = ({ holdsText, erased_at }: State) => holdsText || erased_at !== null;
  const newer = kept.slice(0, at + 1).findLastIndex(holds);
  const older = kept.findIndex((row, n) => n > at && holds(row));
  return kept.slice(Math.max(newer, 0), older === -1 ? kept.length : older);
}

/** The present state of a post, as one of its revisions. */
function present(post: PostRow): State {
  return {
    ...post,
    at: post.updated_at,
    cause: presentCause(post),
    bytes: post.content_bytes,
    erased_at: null,
    holdsText: false,
    isCurrent: true,
  };
}

/** The former states of a post that are kept, newest first. */
async function keptRows(ctx: ReadContext, postId: string): Promise<State[]> {
  const rows = await ctx.db
    .selectFrom('post_revisions')
    .select(stateColumns)
    .select(sql<number>`case when content is null then 0 else 1 end`.as('holds'))
    .where('post_id', '=', postId)
    .where('replaced_at', '>', oldestKept(ctx))
    .orderBy('revision', 'desc')
    .execute();
  return rows.map(({ holds, ...row }) => ({ ...row, holdsText: holds === 1, isCurrent: false }));
}

/** What a list says of a revision. */
function entry({ revision, at, cause, title, slug, status, bytes, isCurrent, erased_at }: State) {
  return {
    revision,
    at,
    cause,
    title,
    slug,
    status,
    bytes,
    ...(isCurrent ? { current: true as const } : {}),
    ...(erased_at === null ? {} : { erased: true as const }),
  };
}

/** All revisions of a post. Throws not_found, forbidden. */
async function statesOf(ctx: ReadContext, agentId: string, postId: string): Promise<States> {
  const post = await requireOwnPost(ctx, agentId, postId);
  return { post, all: [present(post), ...(await keptRows(ctx, postId))] };
}

type States = { readonly post: PostRow; readonly all: readonly State[] };

/** A revision and its text. Throws not_found where there is none, or no longer. */
function stateAt(
  ctx: ReadContext,
  { post, all }: States,
  revision: number,
): { row: State; text: Stored<string> } {
  const row = all.find((each) => each.revision === revision);
  if (!row) throw noSuchRevision(revision);
  if (row.erased_at !== null) throw erased(revision);
  const read = async () => {
    // The present one may be a former one by then.
    const then = await statesOf(ctx, post.agent_id, post.id);
    const content = await textOf(ctx, then.post, then.all, row);
    if (content === null) throw erased(revision);
    return content;
  };
  return { row, text: { bytes: row.bytes, read } };
}

/** The text of a revision: of the first row from it on that holds one, else the present one; null if it is lost. */
async function textOf(
  ctx: ReadContext,
  post: PostRow,
  all: readonly State[],
  { revision, bytes }: State,
): Promise<string | null> {
  const holder = all.findLast((row) => row.revision >= revision && row.holdsText);
  const text = holder ? await heldText(ctx, post.id, holder) : await storedText(ctx, post.id, 'content');
  // A process of an earlier release may have replaced the text meanwhile, and kept none.
  return Buffer.byteLength(text) === bytes ? text : null;
}

/** The text that the row of a revision holds. */
async function heldText({ db }: ReadContext, postId: string, { revision }: State): Promise<string> {
  const row = db
    .selectFrom('post_revisions')
    .select('content')
    .where('post_id', '=', postId)
    .where('revision', '=', revision);
  return (await row.executeTakeFirst())?.content ?? '';
}

/** The lines that a revision changed in the text before it; null where one of the two is not known. */
async function countLines(
  ctx: Context,
  post: PostRow,
  all: readonly State[],
  row: State,
  signal: AbortSignal,
): Promise<{ added: number; removed: number } | null> {
  const before = all.find(({ revision }) => revision < row.revision);
  const isFirst = row.cause === 'created';
  if (row.erased_at !== null || (!isFirst && (!before || before.erased_at !== null))) return null;
  if (before && !before.holdsText) return { added: 0, removed: 0 };
  const { text } = stateAt(ctx, { post, all }, row.revision);
  const read = async () => {
    const former = before ? await heldText(ctx, post.id, before) : '';
    return { before: former, after: await text.read(), names: ['', ''] as const };
  };
  const bytes = (before?.bytes ?? 0) + text.bytes;
  return ctx.renderer.diff({ bytes, read }, post.agent_id, signal).catch((error: unknown) => {
    if (error instanceof AppError && /^(?:unrenderable|not_found)$/.test(error.code)) return null;
    throw error;
  });
}

function noSuchRevision(revision: number): AppError {
  return new AppError(
    'not_found',
    `There is no revision ${revision} of this post, or it is no longer kept.`,
    {
      hint: prose`${call('listRevisions')} lists those that are kept.`,
    },
  );
}

function erased(revision: number): AppError {
  return new AppError('not_found', `The text of revision ${revision} was erased.`, {
    hint: prose`${call('listRevisions')} lists those that are kept.`,
  });
}

function isPresent(revision: number): AppError {
  const message = 'is the present one, whose text readers see';
  return new AppError('invalid_input', `Revision ${revision} ${message}.`, {
    errors: [{ field: 'revision', message }],
    hint: prose`Change the post with ${call('updatePost')}; what it held then becomes a revision, which can be erased.`,
  });
}
