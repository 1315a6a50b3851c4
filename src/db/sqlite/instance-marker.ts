import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** What the file `instance` in DATA_DIR says of the database that belongs there. */
export type InstanceMarker = {
  /** The instance's id. */
  readonly id: string;
  /** A mark that the database has reached: one that stands below it lacks commits. */
  readonly mark: number;
};

/** The marker's place. */
export function markerFile(dataDir: string): string {
  return join(dataDir, 'instance');
}

/** The marker, or null if there is none. Throws if the folder cannot be read. */
export function readMarker(file: string): InstanceMarker | null {
  if (!statSync(file, { throwIfNoEntry: false })) return null;
  const [id = '', ...rest] = readFileSync(file, 'utf8').trim().split(/\s+/);
  return { id, mark: Number(/^mark (\d+)$/.exec(rest.join(' '))?.[1] ?? 0) };
}

/**
 * Replaces the marker atomically and durably: with a lost or half-written one, a database could not be recognised as
 * this instance's.
 */
export async function writeMarker(file: string, { id, mark }: InstanceMarker): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, `${id}\nmark ${mark}\n`, { mode: 0o600, flush: true });
    await rename(draft, file);
    await syncFolder(dirname(file));
  } finally {
    await rm(draft, { force: true });
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
