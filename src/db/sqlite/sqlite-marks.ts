import type { DatabaseSync } from 'node:sqlite';
import { markerFile, writeMarker } from './instance-marker.ts';

/** Milliseconds from a commit until the marker says that the database has come so far. */
const markAfter = 1_000;

/** In `meta`: when it was last set, epoch ms, always higher than before. */
export const markKey = 'mark';

/** A mark as people read it. */
export function shownMark(mark: number): string {
  return mark === 0 ? 'its beginning' : new Date(mark).toISOString();
}

type MarkOptions = {
  readonly dataDir: string;
  /** Begins a transaction in its turn; `ended` gives the turn back. */
  readonly begin: () => void;
  readonly ended: () => void;
};

/**
 * Keeps the instance's marker at most a second behind what is committed: a database file without its `-wal`, or an
 * older copy, then stands below it, and a start refuses it.
 */
export function createMarks(raw: DatabaseSync, { dataDir, begin, ended }: MarkOptions) {
  const file = markerFile(dataDir);
  /** When the newest commit that the marker does not cover was asked for, epoch ms. */
  let unmarked: number | null = null;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();

  function schedule(): void {
    timer ??= setTimeout(() => {
      timer = null;
      void mark();
    }, markAfter);
  }

  function mark(): Promise<void> {
    // A marker that cannot be written stays behind, which is no fault: the next commit tries again.
    writing = writing.then(markNow).catch(() => undefined);
    return writing;
  }

  async function markNow(): Promise<void> {
    if (unmarked === null) return;
    if (raw.isTransaction) return schedule();
    const reached = advance(unmarked);
    unmarked = null;
    const id = raw.prepare(`select value from meta where key = 'instance_id'`).get()?.['value'];
    await writeMarker(file, { id: String(id), mark: reached });
  }

  function advance(at: number): number {
    begin();
    try {
      const row = raw
        .prepare(
          `insert into meta (key, value) values ('${markKey}', ?)
          on conflict (key) do update set value = cast(max(cast(value as integer) + 1, ?) as text) returning value`,
        )
        .get(String(at), at);
      raw.exec('commit');
      return Number(row?.['value']);
    } finally {
      if (raw.isTransaction) raw.exec('rollback');
      ended();
    }
  }

  return {
    /** To be called after a commit of what must not be missing, with the time of its newest request, epoch ms. */
    committed(at: number): void {
      unmarked = at;
      schedule();
    },
    /** Resolves when the marker names the last commit. */
    async close(): Promise<void> {
      if (timer !== null) clearTimeout(timer);
      await mark();
    },
  };
}
