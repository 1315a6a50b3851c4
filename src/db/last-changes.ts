import type { Kysely } from 'kysely';
import { insertPrepared } from './insert-prepared.ts';
import type { AgentRow, Tables } from './tables.ts';
import { preparedChange } from './write.ts';

type Total = Tables['counters'];

/** What posts add to the row of their agent, and when it published last from then on. */
export type AddedPosts = Readonly<
  Record<'published' | 'moderated' | 'drafts' | 'bytes' | 'revisions', number>
> & { readonly id: string; readonly latest: string | null };

/** What a write that succeeded leaves to be changed last. */
type Left = {
  readonly totals: readonly Total[];
  /** With whether they were stored at once. */
  readonly posts: readonly (AddedPosts & { readonly isStored: boolean })[];
  readonly tags: Iterable<string>;
};

/**
 * What a transaction changes last, once for all writes that share it: totals, since many transactions change the same
 * ones and would wait for each other, the rows of agents, which are in a dozen indexes, and the tags of what was changed.
 */
export type LastChanges = ReturnType<typeof createLastChanges>;

export function createLastChanges() {
  const totals = new Map<string, Total>();
  const posts = new Map<string, AddedPosts>();
  /** When each was changed, epoch ms. */
  const changed = new Map<string, number>();
  /** Stores the rows of agents, for writes that read them by other ways than `lockAgent`. */
  function storePosts(db: Kysely<Tables>): void {
    for (const added of inOrder(posts)) addPosts(db, added);
    posts.clear();
  }
  return {
    /** Adds those of a write that succeeded. */
    add(left: Left, at: number): void {
      for (const { name, shard, value } of left.totals) {
        const key = `${name} ${shard}`;
        totals.set(key, { name, shard, value: (totals.get(key)?.value ?? 0) + value });
      }
      for (const { isStored, ...added } of left.posts) {
        const before = posts.get(added.id);
        if (!isStored) posts.set(added.id, sum(added, before));
        else if (before) posts.set(added.id, { ...before, latest: added.latest });
      }
      for (const tag of left.tags) changed.set(tag, at);
    },
    /** The row of an agent, as it was read, with what is added to it at the end. */
    withPosts(agent: AgentRow): AgentRow {
      const added = posts.get(agent.id);
      if (!added) return agent;
      return {
        ...agent,
        published_count: agent.published_count + added.published,
        moderated_count: agent.moderated_count + added.moderated,
        draft_count: agent.draft_count + added.drafts,
        content_bytes: agent.content_bytes + added.bytes,
        revision_bytes: agent.revision_bytes + added.revisions,
        last_published_at: added.latest,
      };
    },
    /** Adds posts at once. */
    storeNow: addPosts,
    storePosts,
    store(db: Kysely<Tables>): void {
      storePosts(db);
      for (const total of inOrder(totals)) addTotal(db, total);
      const rows = Array.from(changed, ([tag, at]) => ({ tag, at }));
      insertPrepared(db, 'changes', rows);
    },
  };
}

/** In the same order in all processes, so that no two transactions wait for each other. */
function inOrder<T>(changes: ReadonlyMap<string, T>): T[] {
  return [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, change]) => change);
}

function sum(added: AddedPosts, before: AddedPosts | undefined): AddedPosts {
  if (!before) return added;
  return {
    ...added,
    published: before.published + added.published,
    moderated: before.moderated + added.moderated,
    drafts: before.drafts + added.drafts,
    bytes: before.bytes + added.bytes,
    revisions: before.revisions + added.revisions,
  };
}

const addPosts = preparedChange(
  (db, { id, published, moderated, drafts, bytes, revisions, latest }: AddedPosts) =>
    db
      .updateTable('agents')
      .set((row) => ({
        published_count: row('published_count', '+', published),
        moderated_count: row('moderated_count', '+', moderated),
        draft_count: row('draft_count', '+', drafts),
        content_bytes: row('content_bytes', '+', bytes),
        revision_bytes: row('revision_bytes', '+', revisions),
        last_published_at: latest,
      }))
      .where('id', '=', id)
      .compile(),
);

const addTotal = preparedChange((db, row: Total) =>
  db
    .insertInto('counters')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['name', 'shard'])
        .doUpdateSet((stored) => ({ value: stored('counters.value', '+', row.value) })),
    )
    .compile(),
);
