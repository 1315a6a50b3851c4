import type { DatabaseSync } from 'node:sqlite';
import { markerFile, writeMarker } from './instance-marker.ts';

/** Milliseconds from a commit until the marker says that the database has come so far. */
const markAfter = 1_000;

/** In `meta`: counts up, so that a copy of the file that lacks commits of its log can be told. */
export const markKey = 'mark';

/**
 * Keeps the instance's marker at most a second behind what is committed: a database file without its `-wal`, or an
 * older copy, then stands below it, and a start refuses it. `begin` waits for the turn to write.
 */
export function createMarks(raw: DatabaseSync, { dataDir, begin }: { dataDir: string; begin: () => void }) {
  const file = markerFile(dataDir);
  let unmarked = false;
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
    if (!unmarked) return;
    if (raw.isTransaction) return schedule();
    unmarked = false;
    const reached = countUp();
    const id = raw.prepare(`select value from meta where key = 'instance_id'`).get()?.['value'];
    await writeMarker(file, { id: String(id), mark: reached });
  }

  function countUp(): number {
    begin();
    try {
      const row = raw
        .prepare(
          `insert into meta (key, value) values ('${markKey}', '1')
          on conflict (key) do update set value = cast(cast(value as integer) + 1 as text) returning value`,
        )
        .get();
      raw.exec('commit');
      return Number(row?.['value']);
    } catch (error) {
      if (raw.isTransaction) raw.exec('rollback');
      throw error;
    }
  }

  return {
    /** To be called after a commit of what must not be missing. */
    committed(): void {
      unmarked = true;
      schedule();
    },
    /** Resolves when the marker names the last commit. */
    async close(): Promise<void> {
      if (timer !== null) clearTimeout(timer);
      await mark();
    },
  };
}
