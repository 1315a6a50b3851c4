import type { Kysely } from 'kysely';
import { preparedChange, preparedInsert } from './prepared.ts';
import type { AgentRow, Tables } from './tables.ts';

type Total = Tables['counters'];

/** What the row of an agent counts of its posts. */
type Counts = Readonly<
  Pick<AgentRow, 'published_count' | 'moderated_count' | 'draft_count' | 'content_bytes' | 'revision_bytes'>
>;

/** What posts add to the counts of their agent, and when it published last from then on. */
export type PostCounts = Counts & Readonly<Pick<AgentRow, 'id' | 'last_published_at'>>;

/** What a write that succeeded leaves to be changed last. */
type Left = {
  readonly totals: readonly Total[];
  /** With whether they were stored at once. */
  readonly posts: readonly (PostCounts & { readonly isStored: boolean })[];
  readonly tags: Iterable<string>;
  /** Rows of agents that it read, if it changed none but by adding posts; else null. */
  readonly agents: readonly AgentRow[] | null;
};

/**
 * What a transaction changes last, once for all writes that share it: totals, since many transactions change the same
 * ones and would wait for each other, the rows of agents, which are in a dozen indexes, and the tags of what was changed.
 */
export type LastChanges = ReturnType<typeof createLastChanges>;

export function createLastChanges() {
  const totals = new Map<string, Total>();
  const posts = new Map<string, PostCounts>();
  /** When each was changed, epoch ms. */
  const changed = new Map<string, number>();
  /** Rows of agents as they are stored, which nobody changes as long as their locks are held. */
  const agents = new Map<string, AgentRow>();
  /** Stores what is added to the rows of agents, for writes that read them by other ways than `lockAgent`. */
  function storePostCounts(db: Kysely<Tables>): void {
    for (const added of inOrder(posts)) addPostCounts(db, added);
    posts.clear();
    agents.clear();
  }
  return {
    /** Adds those of a write that succeeded. */
    add(left: Left, at: number): void {
      for (const { name, shard, value } of left.totals) {
        const key = `${name} ${shard}`;
        totals.set(key, { name, shard, value: (totals.get(key)?.value ?? 0) + value });
      }
      if (left.agents === null) agents.clear();
      for (const agent of left.agents ?? []) agents.set(agent.id, agent);
      for (const { isStored, ...added } of left.posts) {
        if (isStored) agents.delete(added.id);
        const before = posts.get(added.id);
        if (!isStored) posts.set(added.id, before ? withAdded(before, added) : added);
        else if (before) posts.set(added.id, { ...before, last_published_at: added.last_published_at });
      }
      for (const tag of left.tags) changed.set(tag, at);
    },
    /** The row of an agent, as it was read, with the counts that are added to it at the end. */
    withPendingCounts(agent: AgentRow): AgentRow {
      const added = posts.get(agent.id);
      return added ? withAdded(agent, added) : agent;
    },
    /** The row of an agent that an earlier write read under a lock that is still held, as it was stored then and is now. */
    agent: (agentId: string): AgentRow | undefined => agents.get(agentId),
    /** Locks were freed. */
    forgetAgents: () => agents.clear(),
    /** Adds to the counts of an agent at once. */
    storeNow: addPostCounts,
    storePostCounts,
    store(db: Kysely<Tables>): void {
      storePostCounts(db);
      for (const total of inOrder(totals)) addTotal(db, total);
      const rows = Array.from(changed, ([tag, at]) => ({ tag, at }));
      insertChanges(db, rows);
    },
  };
}

/** In the same order in all processes, so that no two transactions wait for each other. */
function inOrder<T>(changes: ReadonlyMap<string, T>): T[] {
  return [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, change]) => change);
}

/** A row, or what is to be added to one, with what posts add. */
function withAdded<T extends PostCounts>(before: T, added: PostCounts): T {
  return {
    ...before,
    published_count: before.published_count + added.published_count,
    moderated_count: before.moderated_count + added.moderated_count,
    draft_count: before.draft_count + added.draft_count,
    content_bytes: before.content_bytes + added.content_bytes,
    revision_bytes: before.revision_bytes + added.revision_bytes,
    last_published_at: added.last_published_at,
  };
}

const insertChanges = preparedInsert('changes');

const addPostCounts = preparedChange((db, added: PostCounts) =>
  db
    .updateTable('agents')
    .set((row) => ({
      published_count: row('published_count', '+', added.published_count),
      moderated_count: row('moderated_count', '+', added.moderated_count),
      draft_count: row('draft_count', '+', added.draft_count),
      content_bytes: row('content_bytes', '+', added.content_bytes),
      revision_bytes: row('revision_bytes', '+', added.revision_bytes),
      last_published_at: added.last_published_at,
    }))
    .where('id', '=', added.id)
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
