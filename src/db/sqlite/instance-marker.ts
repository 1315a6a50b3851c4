import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { writePrivateFile } from '../../platform/private-file.ts';
import { readMeta } from './sqlite.ts';

/** What the file `instance` in DATA_DIR says of the database that belongs there. */
export type InstanceMarker = {
  /** The instance's id. */
  readonly id: string;
  /** A mark that the database has reached: one with a lower mark lacks commits. Epoch ms, strictly increasing. */
  readonly mark: number;
};

/** The key in `meta` of the database's own mark. */
export const markKey = 'mark';
/** Milliseconds from a commit until the marker covers it, at most. */
const markAfter = 1_000;

/** The marker's path. */
export function markerFile(dataDir: string): string {
  return join(dataDir, 'instance');
}

/** The marker, or null if there is none. Throws if the folder cannot be read. */
export function readMarker(file: string): InstanceMarker | null {
  if (!statSync(file, { throwIfNoEntry: false })) return null;
  const [id = '', ...rest] = readFileSync(file, 'utf8').trim().split(/\s+/);
  return { id, mark: Number(/^mark (\d+)$/.exec(rest.join(' '))?.[1] ?? 0) };
}

/** Replaces the marker atomically: with half of one, a database could not be recognised as this instance's. */
export function writeMarker(file: string, { id, mark }: InstanceMarker): Promise<void> {
  return writePrivateFile(file, `${id}\nmark ${mark}\n`);
}

/** A mark for people. */
export function shownMark(mark: number): string {
  return mark === 0 ? 'its beginning' : new Date(mark).toISOString();
}

type MarkOptions = {
  readonly dataDir: string;
  /** Begins a transaction when it is this writer's turn; `ended` ends the turn. */
  readonly begin: () => void;
  readonly ended: () => void;
};

/**
 * Keeps the instance's marker at most a second behind the last commit. A database file without its `-wal`, or an
 * older copy, then has a lower mark, and a start refuses it.
 */
export function createMarks(raw: DatabaseSync, { dataDir, begin, ended }: MarkOptions) {
  const marks = {
    /** Set by a commit that a copy must contain, until the marker covers it: the time of its newest request, epoch ms. */
    unmarked: null as number | null,
    /** Resolves when the marker covers the last commit. */
    async close(): Promise<void> {
      clearInterval(timer);
      await mark();
    },
  };
  let writing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => void mark(), markAfter).unref();

  function mark(): Promise<void> {
    // A marker that cannot be written is merely out of date: a later round tries again.
    writing = writing.then(markNow).catch(() => undefined);
    return writing;
  }

  async function markNow(): Promise<void> {
    if (marks.unmarked === null || raw.isTransaction) return;
    const reached = advance(marks.unmarked);
    marks.unmarked = null;
    const id = readMeta(raw, 'instance_id') ?? '';
    await writeMarker(markerFile(dataDir), { id, mark: reached });
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

  return marks;
}
