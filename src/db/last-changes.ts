import type { Kysely } from 'kysely';
import { insertPrepared } from './insert-prepared.ts';
import type { Tables } from './tables.ts';
import { preparedChange } from './write.ts';

type Total = Tables['counters'];

/**
 * What a transaction changes last, once for all writes that share it: totals, since many transactions change the same
 * ones and would wait for each other, and the tags of what was changed.
 */
export type LastChanges = ReturnType<typeof createLastChanges>;

export function createLastChanges() {
  const totals = new Map<string, Total>();
  /** When each was changed, epoch ms. */
  const changed = new Map<string, number>();
  return {
    /** Adds those of a write that succeeded. */
    add(more: readonly Total[], tags: Iterable<string>, at: number): void {
      for (const { name, shard, value } of more) {
        const key = `${name} ${shard}`;
        totals.set(key, { name, shard, value: (totals.get(key)?.value ?? 0) + value });
      }
      for (const tag of tags) changed.set(tag, at);
    },
    /** Totals in one order, so that no two transactions wait for each other. */
    store(db: Kysely<Tables>): void {
      for (const [, total] of [...totals].toSorted(([a], [b]) => (a < b ? -1 : 1))) addTotal(db, total);
      const rows = Array.from(changed, ([tag, at]) => ({ tag, at }));
      insertPrepared(db, 'changes', rows);
    },
  };
}

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
